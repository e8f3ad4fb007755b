import { IMAGE_POLICY_PLUGIN } from '#shared/webhook/image-policy.ts'
import type { Webhook, WebhookConfiguration } from '#shared/webhook/types.ts'
import type { Io } from '../io.ts'
import { faultList } from '../output.ts'
import type { OutputFile } from './files.ts'
import type { ImagePolicyPlan } from './image-policy.ts'
import type { Plan } from './plan.ts'

/** What the cluster will ask, for people: every webhook with what it is about, what is left out, and which files say so. The token is not in it. */
export function planText(
  io: Io,
  plan: Plan,
  files: readonly OutputFile[],
  where: string | undefined,
): string {
  const { bold } = io.colors
  const { mutating, validating } = plan.webhooks ?? {}
  const wide = Math.max(0, ...files.map(({ name }) => name.length))
  const lines = files.map(({ name, isForServer, isSecret }) => {
    const use = isForServer ? 'for the API server' : 'kubectl apply'
    return `  ${name.padEnd(wide)}  ${use}${isSecret ? ', holds the token of the cluster' : ''}\n`
  })
  return [
    `${bold(`cluster ${plan.cluster.name}`)}, ${plan.flavour}\n`,
    ...(mutating === undefined ? [] : [configurationText(io, mutating)]),
    ...(validating === undefined ? [] : [configurationText(io, validating)]),
    ...plan.companion.map(({ kind, metadata }) => `${kind} ${metadata.name}\n`),
    ...(plan.imagePolicy === undefined ? [] : [imagePolicyText(io, plan.imagePolicy)]),
    plan.notes.length === 0 ? '' : `${bold('notes')}\n${faultList(plan.notes)}`,
    where === undefined ? '' : `${bold('files')} in ${where}\n${lines.join('')}`,
  ].join('')
}

function imagePolicyText(io: Io, { policy }: ImagePolicyPlan): string {
  const { allowTTL, denyTTL, retryBackoff } = policy
  const kept = [allowTTL, denyTTL].map((seconds) => (seconds < 0 ? 'nothing' : `${seconds} s`))
  return [
    `${io.colors.bold(IMAGE_POLICY_PLUGIN)}\n`,
    `  keeps yes ${kept[0]} and no ${kept[1]}, first retry after ${retryBackoff} ms, defaultAllow: false\n`,
    '    calls /image-review\n',
    '    about core: pods,pods/ephemeralcontainers (CREATE,UPDATE)\n',
  ].join('')
}

function configurationText(io: Io, { kind, metadata, webhooks }: WebhookConfiguration): string {
  const head = `${io.colors.bold(kind)} ${metadata.name}\n`
  if (webhooks.length === 0) return `${head}  no policy needs it\n`
  return head + webhooks.map(webhookText).join('')
}

function webhookText(webhook: Webhook): string {
  const { name, rules, failurePolicy, timeoutSeconds, matchPolicy, matchConditions = [] } = webhook
  const about = rules
    .map(({ apiGroups, resources, operations }) => {
      const group = apiGroups.map((each) => each || 'core').join()
      return `${group}: ${resources.join()} (${operations.join()})`
    })
    .join('; ')
  const facts = [
    failurePolicy,
    `${timeoutSeconds} s`,
    matchPolicy,
    ...(matchConditions.length > 0 ? [counted(matchConditions.length)] : []),
  ]
  return `  ${name}  ${facts.join(', ')}\n    calls ${policiesText(webhook)}\n    about ${about}\n`
}

/** The end of the path: what stands before it holds the token. */
function policiesText({ clientConfig }: Webhook): string {
  const called = clientConfig.url ?? clientConfig.service?.path ?? ''
  return /\/n?ivpol\/(?:mutate|validate)\/.*$/.exec(called)?.[0] ?? ''
}

function counted(conditions: number): string {
  return conditions === 1 ? '1 condition' : `${conditions} conditions`
}
