import type { ClusterConfig, Config } from '#functions/config.ts'
import { type Deployment, policiesOf } from '#functions/deployment.ts'
import { type Endpoints, endpointOf, endpointsOf } from '#functions/endpoints.ts'
import { nodeHash } from '#functions/hash-node.ts'
import type { Fault } from '#shared/errors.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import type { CallerCredential } from '#shared/webhook/caller.ts'
import { type Companion, companionPolicies } from '#shared/webhook/companion.ts'
import { generateWebhooks } from '#shared/webhook/generate.ts'
import { IMAGE_POLICY_PLUGIN } from '#shared/webhook/image-policy.ts'
import { UPSTREAM_BASE_NAME } from '#shared/webhook/names.ts'
import { mergeSelectors } from '#shared/webhook/selectors.ts'
import type {
  GeneratedWebhooks,
  WebhookNote,
  WebhookOptions,
  WebhookTarget,
} from '#shared/webhook/types.ts'
import { clusterNamed, readDeployment } from '../deployment.ts'
import type { Io } from '../io.ts'
import { type CaBundle, caFileOf, readCaBundle } from './ca.ts'
import { type ImagePolicyPlan, imagePolicyRefusals, planImagePolicy } from './image-policy.ts'
import { Refusals } from './refusals.ts'
import { imagePolicyNotes, SAFE_NAMESPACES, safetyNotes } from './safety.ts'
import { targetOf } from './target.ts'
import { type TokenSource, type UrlToken, urlToken } from './token.ts'
import { minorOf, staticNotes } from './version.ts'

/** How the configurations get to the API server. */
export type Flavour = 'url' | 'static' | 'kustomize' | 'image-policy'
export const FLAVOURS: readonly Flavour[] = ['url', 'static', 'kustomize', 'image-policy']

/** The options of the command that say what is made. */
export interface PlanOptions extends TokenSource {
  config: string
  cluster: string
  flavour: Flavour
  baseName?: string
  caBundle?: string
  service?: string
  kubernetes?: string
  forceIgnore?: true
  safeSelectors: boolean
  companion?: true
  imagePolicy?: true
  /** Where files of the API server will be on its machine. */
  serverFolder: string
}

/** Everything there is to write for one cluster. */
export interface Plan {
  cluster: ClusterConfig
  /** What webhooks call. */
  target: WebhookTarget
  flavour: Flavour
  token: UrlToken
  /** Absent where ImagePolicyWebhook alone is wanted. */
  webhooks?: Pick<GeneratedWebhooks, 'mutating' | 'validating'>
  companion: Companion['objects']
  imagePolicy?: ImagePolicyPlan
  /** How the API server shows who it is. */
  credentials: readonly CallerCredential[]
  ca?: CaBundle
  /** Said aloud: who is not asked about, and what may surprise. */
  notes: readonly WebhookNote[]
}

/**
 * What a cluster has to apply, checked. Throws `CONFIG_INVALID` or `POLICY_INVALID` with every fault of the config, the policies and the
 * configurations; `now` is epoch milliseconds.
 */
export async function planWebhooks(io: Io, options: PlanOptions, now: number): Promise<Plan> {
  const { deployment } = await readDeployment(options.config)
  const { clusters } = deployment.config
  const cluster = clusterNamed(deployment.config, options.cluster, options.config)
  const refusals = new Refusals(cluster.name)
  const asked = await askedFor(refusals, options, cluster, clusters.indexOf(cluster))
  refusals.add(endFaults(cluster, clusters.indexOf(cluster), now))
  const token = await refusals.from(() => urlToken(io, options, cluster))
  const caPath = caFileOf(options, cluster)
  const ca = caPath === undefined ? undefined : await refusals.from(() => readCaBundle(caPath, now))
  const given: Given = {
    options,
    cluster,
    endpoints: endpointsOf(endpointOf(deployment.config, cluster)),
    credentials: credentialsOf(cluster),
    policies: policiesFor(deployment, cluster),
    onMissing: deployment.config.outcomes.onMissing,
    ...(asked?.minor !== undefined && { minor: asked.minor }),
    ...(ca && { caBundle: ca.base64 }),
  }
  const parts = asked && (await checkedParts(refusals, given, token))
  refusals.throwIfAny()
  if (!asked || !token || !parts) throw new TypeError('refused without a reason')
  const { target, webhooks, companion, imagePolicy } = parts
  return {
    cluster,
    target,
    flavour: options.flavour,
    token,
    ...(webhooks && { webhooks }),
    companion: companion?.objects ?? [],
    ...(imagePolicy && { imagePolicy }),
    credentials: given.credentials,
    ...(ca && { ca }),
    notes: notesOn(given, parts, [...asked.notes, ...token.notes]),
  }
}

/** What the options ask for, or undefined where this cluster or its API server cannot have it. What is said about it is for people. */
async function askedFor(
  refusals: Refusals,
  options: PlanOptions,
  cluster: ClusterConfig,
  index: number,
): Promise<{ minor: number | undefined; notes: readonly string[] } | undefined> {
  const asked = await refusals.from(() => {
    const minor = minorOf(options.kubernetes ?? cluster.kubernetes)
    return { minor, notes: options.flavour === 'static' ? staticNotes(options, minor) : [] }
  })
  if (wantsImagePolicy(options)) refusals.add(imagePolicyRefusals(options, cluster, index))
  return refusals.isEmpty ? asked : undefined
}

function endFaults({ name, notAfter }: ClusterConfig, index: number, now: number): Fault[] {
  if (notAfter === undefined || Date.parse(notAfter) > now) return []
  const message = `the functions know no cluster ${name} since ${notAfter}, so that webhooks with failurePolicy Fail would let nothing in: give it a later end, build and deploy`
  return [{ path: `clusters[${index}].notAfter`, message }]
}

function wantsImagePolicy({ flavour, imagePolicy }: PlanOptions): boolean {
  return flavour === 'image-policy' || imagePolicy === true
}

/** Everything that parts are made from but the token. */
interface Given {
  options: PlanOptions
  cluster: ClusterConfig
  endpoints: Endpoints
  credentials: readonly CallerCredential[]
  policies: readonly CompiledPolicy[]
  onMissing: Config['outcomes']['onMissing']
  minor?: number
  caBundle?: string
}

interface Parts {
  target: WebhookTarget
  webhooks: GeneratedWebhooks | undefined
  companion: Companion | undefined
  imagePolicy: ReturnType<typeof planImagePolicy> | undefined
}

/** Stands for a token that is not known yet: an API server never sees the placeholder. */
const STAND_IN = 'a'.repeat(32)

async function checkedParts(
  refusals: Refusals,
  given: Given,
  token: UrlToken | undefined,
): Promise<Parts | undefined> {
  const isKnown = token !== undefined && !token.isPlaceholder
  const checked = await refusals.from(() => partsOf(given, isKnown ? token.text : STAND_IN))
  if (checked === undefined) return undefined
  const { webhooks, companion, imagePolicy } = checked
  refusals.add([webhooks, companion, imagePolicy].flatMap((part) => part?.faults ?? []))
  return token === undefined || isKnown ? checked : partsOf(given, token.text)
}

async function partsOf(given: Given, token: string): Promise<Parts> {
  const { options, cluster, endpoints, credentials, policies, onMissing, minor, caBundle } = given
  const ca = caBundle === undefined ? {} : { caBundle }
  const target = targetOf(options, endpoints, `/v1/${cluster.name}/${token}`)
  const how = optionsFor(options, cluster, {
    target,
    onMissing,
    ...(minor !== undefined && { minor }),
    ...ca,
  })
  const webhooks =
    options.flavour === 'image-policy' ? undefined : await generateWebhooks(policies, how)
  const companion =
    options.companion && webhooks && (await companionPolicies(webhooks.mutating, how))
  const folder = options.serverFolder
  const imagePolicy = wantsImagePolicy(options)
    ? planImagePolicy({ cluster, policies, endpoints, token, credentials, folder, ...ca })
    : undefined
  return { target, webhooks, companion, imagePolicy }
}

/** What there is to say, first about the cluster. What there is to say about the policies themselves, `lint` and `build` say. */
function notesOn(
  { options, cluster }: Given,
  { webhooks, companion, imagePolicy }: Parts,
  first: readonly string[],
): WebhookNote[] {
  const about = (messages: readonly string[], path = `cluster ${cluster.name}`) =>
    messages.map((message) => ({ path, message }))
  return [
    ...about(first),
    ...(webhooks?.notes ?? []),
    ...(companion?.notes ?? []),
    ...(webhooks ? about(safetyNotes(options, cluster)) : []),
    ...(imagePolicy ? about(imagePolicyNotes(options, imagePolicy), IMAGE_POLICY_PLUGIN) : []),
  ]
}

function policiesFor(deployment: Deployment, cluster: ClusterConfig): CompiledPolicy[] {
  const { granted } = policiesOf(deployment, cluster, nodeHash)
  return deployment.policies.filter((policy) => granted.has(policyKey(policy)))
}

function optionsFor(
  { baseName, forceIgnore, safeSelectors, flavour }: PlanOptions,
  { name, webhooks = {}, timeouts }: ClusterConfig,
  more: Pick<WebhookOptions, 'target' | 'onMissing' | 'minor' | 'caBundle'>,
): WebhookOptions {
  const safe = safeSelectors ? SAFE_NAMESPACES : undefined
  const namespaceSelector = mergeSelectors(webhooks.namespaceSelector, safe)
  const { objectSelector, excludeBootstrap } = webhooks
  return {
    ...more,
    ...(baseName !== undefined && { baseName }),
    ...(namespaceSelector !== undefined && { namespaceSelector }),
    ...(objectSelector !== undefined && { objectSelector }),
    ...(forceIgnore !== undefined && { forceIgnore }),
    ...(excludeBootstrap !== undefined && { excludeBootstrap }),
    timeouts,
    isStatic: flavour === 'static',
    labels:
      baseName === UPSTREAM_BASE_NAME
        ? { 'webhook.kyverno.io/managed-by': 'kyverno' }
        : { 'app.kubernetes.io/managed-by': 'countersign', 'countersign.dev/cluster': name },
    // Keeps the admissions enforcer of AKS from rewriting the selectors.
    annotations: { 'admissions.enforcer/disabled': 'true' },
  }
}

function credentialsOf({ mtls, bearer }: ClusterConfig): CallerCredential[] {
  return [
    ...(mtls === undefined ? [] : ['certificate' as const]),
    ...(bearer === undefined ? [] : ['bearer' as const]),
  ]
}
