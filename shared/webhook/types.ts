import type { LabelSelector } from '../policy/types.ts'

/** The two phases, which are the two kinds of configurations. */
export type WebhookPhase = 'mutate' | 'validate'

/** `RuleWithOperations` of admissionregistration, with its scope. */
export interface WebhookRule {
  apiGroups: string[]
  apiVersions: string[]
  operations: string[]
  resources: string[]
  scope: 'Cluster' | 'Namespaced' | '*'
}

/** A match condition: CEL that the API server evaluates before it calls. */
export interface WebhookCondition {
  name: string
  expression: string
}

/** Where the API server calls: a URL or a Service, never both. */
export interface ClientConfig {
  url?: string
  service?: { namespace: string; name: string; path: string; port: number }
  /** Base64 of PEM. */
  caBundle?: string
}

/** One entry of a configuration. Nothing is left to the API server's defaults, so that what is stored is what is written. */
export interface Webhook {
  name: string
  clientConfig: ClientConfig
  rules: WebhookRule[]
  failurePolicy: 'Fail' | 'Ignore'
  matchPolicy: 'Exact' | 'Equivalent'
  namespaceSelector: LabelSelector
  objectSelector: LabelSelector
  sideEffects: 'NoneOnDryRun'
  /** 1 to 30. */
  timeoutSeconds: number
  admissionReviewVersions: ['v1']
  /** Mutating webhooks only. */
  reinvocationPolicy?: 'IfNeeded'
  matchConditions?: WebhookCondition[]
}

/** A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration. */
export interface WebhookConfiguration {
  apiVersion: 'admissionregistration.k8s.io/v1'
  kind: 'MutatingWebhookConfiguration' | 'ValidatingWebhookConfiguration'
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> }
  webhooks: Webhook[]
}

/** One text for both phases, or one for each. */
export type ByPhase = string | Readonly<Record<WebhookPhase, string>>

/** What API servers call: a base URL, or a Service in the cluster with the path that leads to the functions. */
export type WebhookTarget =
  | { kind: 'url'; base: ByPhase }
  | { kind: 'service'; namespace: string; name: string; port?: number; path?: ByPhase }

/** How webhook configurations are made for one cluster. */
export interface WebhookOptions {
  target: WebhookTarget
  /** Names end in it; `kyverno.svc` gives the names of Kyverno, everything else our own. */
  baseName?: string
  /** Base64 of PEM; system roots count when absent. */
  caBundle?: string
  /** Merged into the selectors of every policy. */
  namespaceSelector?: LabelSelector
  objectSelector?: LabelSelector
  /** Every entry ignores failures, whatever policies say. */
  forceIgnore?: boolean
  /** Entries that fail closed leave out what a cluster needs to start: nodes and certificate requests. */
  excludeBootstrap?: boolean
  /** Of entries of policies that name none. */
  timeouts?: { mutateSeconds?: number; validateSeconds?: number }
  /** As the functions have it. With `deny`, the mutate phase is called for every policy: validate takes nothing that it has not sealed. */
  onMissing?: 'verify' | 'deny'
  /** Minor version of the cluster's Kubernetes; what is not known to every supported one stays with the function when absent. */
  minor?: number
  /** Labels and annotations of both objects. */
  labels?: Readonly<Record<string, string>>
  annotations?: Readonly<Record<string, string>>
  /** Names of both objects for `.static.k8s.io`, which manifest-based admission asks for. */
  isStatic?: boolean
}

/** Something that an operator should know of, or has to mend. */
export interface WebhookNote {
  /** `policy <key> (<file:line>)`, or the path in a configuration. */
  path: string
  message: string
}

/** Both configurations of a cluster. With faults, they are not to be applied. */
export interface GeneratedWebhooks {
  mutating: WebhookConfiguration
  validating: WebhookConfiguration
  notes: readonly WebhookNote[]
  faults: readonly WebhookNote[]
}
