import type { ClusterConfig } from '#functions/config.ts'
import { type Deployment, policiesOf } from '#functions/deployment.ts'
import { endpointsOf } from '#functions/endpoints.ts'
import { countedFaults } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { NEWEST_MINOR, OLDEST_MINOR } from '#shared/cel/profiles.ts'
import { AdmissionError } from '#shared/errors.ts'
import { type CompiledPolicy, type LabelSelector, policyKey } from '#shared/policy/types.ts'
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
import { targetOf } from './target.ts'
import { type TokenSource, type UrlToken, urlToken } from './token.ts'

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

/** Whoever can label a namespace can take it out of image verification; that is what the label is for. */
const BREAK_GLASS_LABEL = 'countersign.dev/break-glass'
const SYSTEM_NAMESPACES = ['kube-node-lease', 'kube-system']

/** Namespaces that must work while the functions do not. */
const SAFE_NAMESPACES: LabelSelector = {
  matchExpressions: [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: SYSTEM_NAMESPACES },
    { key: BREAK_GLASS_LABEL, operator: 'DoesNotExist' },
  ],
}

/** First version with manifest-based admission, and the first that has it without a feature gate. */
const STATIC_MINOR = 36
const STATIC_DEFAULT_MINOR = 37

/**
 * What a cluster has to apply, checked. Throws `CONFIG_INVALID` or `POLICY_INVALID` with every fault of the config, the policies and the
 * configurations; `now` is epoch milliseconds.
 */
export async function planWebhooks(io: Io, options: PlanOptions, now: number): Promise<Plan> {
  const { deployment } = await readDeployment(options.config)
  const { config } = deployment
  const cluster = clusterNamed(config, options.cluster, options.config)
  const minor = minorOf(options.kubernetes ?? cluster.kubernetes)
  // What there is to say about the policies themselves, `lint` and `build` say.
  const notes: WebhookNote[] = []
  const about = (message: string) => notes.push({ path: `cluster ${cluster.name}`, message })
  if (options.flavour === 'static') checkStatic(options, minor, about)
  const wantsImagePolicy = options.flavour === 'image-policy' || options.imagePolicy
  if (wantsImagePolicy) {
    refuse(cluster, imagePolicyRefusals(options, cluster, config.clusters.indexOf(cluster)))
  }
  const token = await urlToken(io, options, cluster)
  for (const note of token.notes) about(note)
  const caPath = caFileOf(options, cluster)
  const ca = caPath === undefined ? undefined : await readCaBundle(caPath, now)
  const credentials = credentialsOf(cluster)
  const endpoints = endpointsOf(config.endpoint)
  const caBundle = ca && { caBundle: ca.base64 }
  const imagePolicy = wantsImagePolicy
    ? planImagePolicy({
        cluster,
        endpoints,
        token: token.text,
        credentials,
        folder: options.serverFolder,
        ...caBundle,
      })
    : undefined
  const target = targetOf(options, endpoints, `/v1/${cluster.name}/${token.text}`)
  const webhookOptions = optionsFor(options, cluster, {
    target,
    ...(minor !== undefined && { minor }),
    ...caBundle,
  })
  const webhooks =
    options.flavour === 'image-policy'
      ? undefined
      : await generateWebhooks(policiesFor(deployment, cluster), webhookOptions)
  const companion =
    options.companion && webhooks !== undefined
      ? await companionPolicies(webhooks.mutating, webhookOptions)
      : undefined
  const parts = [webhooks, companion, imagePolicy]
  refuse(
    cluster,
    parts.flatMap((part) => part?.faults ?? []),
  )
  notes.push(...(webhooks?.notes ?? []), ...(companion?.notes ?? []))
  if (webhooks !== undefined) for (const message of safetyNotes(options, cluster)) about(message)
  for (const message of imagePolicyNotes(options, imagePolicy)) {
    notes.push({ path: IMAGE_POLICY_PLUGIN, message })
  }
  return {
    cluster,
    target,
    flavour: options.flavour,
    token,
    ...(webhooks && { webhooks }),
    companion: companion?.objects ?? [],
    ...(imagePolicy && { imagePolicy }),
    credentials,
    ...(ca !== undefined && { ca }),
    notes,
  }
}

/** Throws where there are faults, with all of them. */
function refuse({ name }: ClusterConfig, faults: readonly WebhookNote[]): void {
  if (faults.length === 0) return
  const message = `webhooks of ${name}: ${countedFaults(faults)}`
  throw new AdmissionError('CONFIG_INVALID', message, { faults })
}

function policiesFor(deployment: Deployment, cluster: ClusterConfig): CompiledPolicy[] {
  const { granted } = policiesOf(deployment, cluster, nodeHash)
  return deployment.policies.filter((policy) => granted.has(policyKey(policy)))
}

function optionsFor(
  { baseName, forceIgnore, safeSelectors, flavour }: PlanOptions,
  { name, webhooks = {}, timeouts }: ClusterConfig,
  more: Pick<WebhookOptions, 'target' | 'minor' | 'caBundle'>,
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

/** Throws where the API server would not read the files at all. */
function checkStatic(
  { service }: PlanOptions,
  minor: number | undefined,
  about: (message: string) => void,
): void {
  if (service !== undefined) {
    throw refusal('manifest-based admission calls URLs only: leave --service out')
  }
  if (minor === undefined) {
    about(
      `manifest-based admission takes Kubernetes 1.${STATIC_MINOR} or newer; say which one the cluster has (clusters[].kubernetes or --kubernetes)`,
    )
  } else if (minor < STATIC_MINOR) {
    throw refusal(
      `manifest-based admission takes Kubernetes 1.${STATIC_MINOR} or newer, and the cluster has 1.${minor}: its API server would not start with these files; use --flavour url`,
    )
  } else if (minor < STATIC_DEFAULT_MINOR) {
    about(
      `Kubernetes 1.${minor} reads manifests with the feature gate ManifestBasedAdmissionControlConfig alone`,
    )
  }
}

/** The minor version to write for; newer ones than are known take what the newest known takes. */
function minorOf(version: string | undefined): number | undefined {
  if (version === undefined) return undefined
  const minor = Number(/^1\.([0-9]{1,2})$/.exec(version)?.[1] ?? Number.NaN)
  if (Number.isNaN(minor)) throw refusal(`Kubernetes ${version}: expected a version such as 1.31`)
  if (minor < OLDEST_MINOR) {
    throw refusal(
      `Kubernetes ${version}: what its API server takes is known from 1.${OLDEST_MINOR} on`,
    )
  }
  return Math.min(minor, NEWEST_MINOR)
}

function credentialsOf({ mtls, bearer }: ClusterConfig): CallerCredential[] {
  return [
    ...(mtls === undefined ? [] : ['certificate' as const]),
    ...(bearer === undefined ? [] : ['bearer' as const]),
  ]
}

function safetyNotes(
  { safeSelectors, forceIgnore, imagePolicy }: PlanOptions,
  { webhooks, imageReview }: ClusterConfig,
): string[] {
  const system = SYSTEM_NAMESPACES.join(' and ')
  const notes = [
    safeSelectors
      ? `nothing in ${system}, and nothing in namespaces with the label ${BREAK_GLASS_LABEL}, is verified: keep the right to label namespaces to few`
      : `${system} are asked about like all namespaces: while the functions are down, policies that fail closed may keep the cluster from mending itself`,
  ]
  if (webhooks?.objectSelector !== undefined) {
    notes.push(
      'webhooks.objectSelector leaves objects out by labels, which whoever makes them may choose',
    )
  }
  if (forceIgnore) {
    notes.push(
      'every webhook fails open: while the functions are down, everything is admitted unverified',
    )
  }
  if (imageReview !== undefined && !imagePolicy) {
    notes.push(
      'imageReview is on, and nothing here makes the API server ask: --image-policy writes that, too',
    )
  }
  return notes
}

function imagePolicyNotes(
  { service }: PlanOptions,
  imagePolicy: ImagePolicyPlan | undefined,
): string[] {
  if (imagePolicy === undefined) return []
  if (service === undefined) return [...imagePolicy.notes]
  return [
    ...imagePolicy.notes,
    `calls endpoint itself, and not --service ${service}: a kubeconfig of an API server names no Services`,
  ]
}

function refusal(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
