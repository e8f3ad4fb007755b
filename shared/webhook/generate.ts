import { loadRegex } from '../cel/regex.ts'
import {
  DEFAULT_TIMEOUT_SECONDS,
  MAX_TIMEOUT_SECONDS,
  MAX_WEBHOOK_URL_CHARS,
  WEBHOOK_CLIENTS,
} from '../limits.ts'
import { type CompiledPolicy, compareTexts } from '../policy/types.ts'
import { bootstrapCondition } from './bootstrap.ts'
import { webhookEnvironment } from './conditions.ts'
import { type Entry, entriesFor, type Prepared, preparePolicies } from './entries.ts'
import { configurationName, DEFAULT_BASE_NAME, entryNames } from './names.ts'
import { type PolicySource, policySources } from './sources.ts'
import type {
  ByPhase,
  ClientConfig,
  GeneratedWebhooks,
  Webhook,
  WebhookCondition,
  WebhookConfiguration,
  WebhookNote,
  WebhookOptions,
  WebhookPhase,
} from './types.ts'
import { STATIC_SUFFIX, validateWebhookConfiguration } from './validate.ts'

/**
 * The webhook configurations of a cluster for these policies (specs/image-validating-policy.md 7), the same to the byte for any order of
 * them. `faults` is what keeps the configurations from being right: policies of one name, selectors that exclude everything, and
 * whatever the API server would refuse.
 */
export async function generateWebhooks(
  policies: readonly CompiledPolicy[],
  options: WebhookOptions,
): Promise<GeneratedWebhooks> {
  const regex = await loadRegex()
  const { sources, faults } = policySources(policies)
  const notes: WebhookNote[] = []
  const environment = webhookEnvironment(options.minor, regex)
  const prepared = await preparePolicies(sources, environment, options, { notes, faults })
  const needing = options.onMissing === 'deny' ? sources : ivpolsNeedingMutation(sources)
  const inMutate = prepared.filter(({ source }) => needing.includes(source))
  const mutating = await configurationFor('mutate', inMutate, options)
  const validating = await configurationFor('validate', prepared, options)
  const rules = { regex, ...(options.minor !== undefined && { minor: options.minor }) }
  for (const configuration of [mutating, validating]) {
    faults.push(
      ...validateWebhookConfiguration(configuration, {
        ...rules,
        isStatic: options.isStatic ?? false,
      }),
    )
    faults.push(...longUrls(configuration))
    notes.push(...manyClients(configuration))
  }
  return { mutating, validating, notes, faults }
}

/** The policies that the mutate phase is called for: those that have digests pinned (7.2). */
export function ivpolsNeedingMutation(sources: readonly PolicySource[]): PolicySource[] {
  return sources.filter(({ base }) => base.mutateDigest)
}

async function configurationFor(
  phase: WebhookPhase,
  policies: readonly Prepared[],
  options: WebhookOptions,
): Promise<WebhookConfiguration> {
  const { baseName = DEFAULT_BASE_NAME, labels, annotations, isStatic } = options
  const entries = await entriesFor(policies)
  const names = await entryNames(
    entries.map(({ identity }) => identity),
    phase,
    baseName,
  )
  const webhooks = entries.map((entry, index) =>
    webhookOf(entry, names[index] ?? '', phase, options),
  )
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: phase === 'mutate' ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration',
    metadata: {
      name: `${configurationName(phase, baseName)}${isStatic ? STATIC_SUFFIX : ''}`,
      labels: { ...inOrder(labels ?? {}) },
      ...(annotations === undefined ? {} : { annotations: inOrder(annotations) }),
    },
    webhooks: webhooks.sort((a, b) => compareTexts(a.name, b.name)),
  }
}

function inOrder(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => compareTexts(a, b)))
}

function webhookOf(
  entry: Entry,
  name: string,
  phase: WebhookPhase,
  options: WebhookOptions,
): Webhook {
  const { identity, rules, matchPolicy, selectors } = entry
  const conditions = withBootstrap(entry, options)
  return {
    name,
    clientConfig: clientConfigOf(entry, phase, options),
    rules,
    failurePolicy: identity.failure === 'fail' ? 'Fail' : 'Ignore',
    matchPolicy,
    namespaceSelector: selectors.namespaceSelector ?? {},
    objectSelector: selectors.objectSelector ?? {},
    ...(conditions.length === 0 ? {} : { matchConditions: conditions }),
    // The seal is made for objects as they are when this phase is done with them: whoever changes one later has it called again.
    ...(phase === 'mutate' ? { reinvocationPolicy: 'IfNeeded' as const } : {}),
    // A call stores nothing. With `Some` or `Unknown` the API server would refuse every dry run.
    sideEffects: 'NoneOnDryRun',
    timeoutSeconds: timeoutOf(entry, phase, options),
    admissionReviewVersions: ['v1'],
  }
}

function timeoutOf(
  { timeoutSeconds }: Entry,
  phase: WebhookPhase,
  { timeouts }: WebhookOptions,
): number {
  const seconds = timeoutSeconds ?? timeouts?.[`${phase}Seconds`] ?? DEFAULT_TIMEOUT_SECONDS
  return Math.min(MAX_TIMEOUT_SECONDS, Math.max(1, seconds))
}

function clientConfigOf(
  { identity, policies }: Entry,
  phase: WebhookPhase,
  { target, caBundle }: WebhookOptions,
): ClientConfig {
  const path = `/${identity.route}/${phase}/${policies.join('/')}`
  const ca = caBundle === undefined ? {} : { caBundle }
  const below = (base: ByPhase) => {
    const start = typeof base === 'string' ? base : base[phase]
    return `${start.replace(/\/+$/, '')}${path}`
  }
  if (target.kind === 'url') return { url: below(target.base), ...ca }
  const { namespace, name, port = 443 } = target
  return { service: { namespace, name, path: below(target.path ?? ''), port }, ...ca }
}

function withBootstrap(
  { conditions, identity }: Entry,
  options: WebhookOptions,
): WebhookCondition[] {
  const bootstrap = identity.failure === 'fail' ? bootstrapCondition(options) : undefined
  return bootstrap === undefined ? conditions : [...conditions, bootstrap]
}

/** URLs that gateways in front of functions would refuse. */
function longUrls({ kind, webhooks }: WebhookConfiguration): WebhookNote[] {
  return webhooks.flatMap(({ name, clientConfig }, index) => {
    const { length } = clientConfig.url ?? clientConfig.service?.path ?? ''
    if (length <= MAX_WEBHOOK_URL_CHARS) return []
    const message = `the URL of ${name} has ${length} characters, and gateways take about ${MAX_WEBHOOK_URL_CHARS}: give some of its policies a selector or a timeout of their own`
    return [{ path: `${kind} webhooks[${index}].clientConfig`, message }]
  })
}

/** More places to call than an API server keeps connections for (specs/serverless.md 1). */
function manyClients({ kind, webhooks }: WebhookConfiguration): WebhookNote[] {
  const called = new Set(webhooks.map(({ clientConfig }) => JSON.stringify(clientConfig)))
  if (called.size <= WEBHOOK_CLIENTS) return []
  const message = `${called.size} webhooks are more than the ${WEBHOOK_CLIENTS} that an API server keeps connections for: policies without timeouts, match conditions and matchPolicy of their own share one`
  return [{ path: kind, message }]
}
