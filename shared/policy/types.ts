import type { CheckedExpression } from '../cel/types.ts'
import type { CredentialNames } from '../registry/types.ts'
import type { Attestation, Attestor, AttestorDraft } from '../signature/types.ts'

/** A label selector as Kubernetes spells it. */
export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: {
    key: string
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
    values?: string[]
  }[]
}

/** NamedRuleWithOperations of admissionregistration. */
export interface ResourceRule {
  apiGroups: string[]
  apiVersions: string[]
  operations: string[]
  resources: string[]
  resourceNames?: string[]
  scope?: 'Cluster' | 'Namespaced' | '*'
}

export interface MatchConstraints {
  resourceRules: ResourceRule[]
  excludeResourceRules: ResourceRule[]
  /** Decides what the API server sends; nothing here depends on it. */
  matchPolicy?: 'Exact' | 'Equivalent'
  objectSelector?: LabelSelector
  /** Of labels other than the name, which no review tells, the namespace is looked up. */
  namespaceSelector?: LabelSelector
}

/** The two groups of Pod controllers that Kyverno generates policies for. */
export type AutogenConfig = 'defaults' | 'cronjobs'

export type ValidationAction = 'Deny' | 'Audit' | 'Warn'

export type PolicyKind = 'ImageValidatingPolicy' | 'NamespacedImageValidatingPolicy'

/**
 * An image policy ready to run: plain JSON, made by `load.ts` at build time. What a policy about Pods means for their controllers
 * is a policy of its own with the same key.
 */
export interface CompiledPolicy {
  kind: PolicyKind
  /** The policy is about files, not about requests; no deployment has one. */
  mode?: 'JSON'
  apiVersion: string
  name: string
  /** Of a NamespacedImageValidatingPolicy, and of no other. */
  namespace?: string
  /** The group of Pod controllers that this variant of the policy is about; absent in the policy as it was written. */
  autogen?: AutogenConfig
  /** SHA-256 hex of the spec with its defaults and of everything else its verdict depends on. */
  hash: string
  /** `file.yaml:12`, for messages to the operator. */
  source: string
  failurePolicy: 'Fail' | 'Ignore'
  validationActions: readonly ValidationAction[]
  matchConstraints: MatchConstraints
  matchConditions: readonly CompiledCondition[]
  matchImageReferences: readonly ({ glob: string } | { expression: CheckedExpression })[]
  /** Custom extractors (`spec.images`): name → expression giving a list of strings. */
  images: readonly { name: string; expression: CheckedExpression }[]
  variables: readonly { name: string; expression: CheckedExpression }[]
  attestors: readonly PolicyAttestor[]
  attestations: readonly Attestation[]
  validations: readonly {
    expression: CheckedExpression
    message?: string
    messageExpression?: CheckedExpression
  }[]
  auditAnnotations: readonly { key: string; valueExpression: CheckedExpression }[]
  /** Logins for all registry calls of this policy, in place of the registries' own. */
  credentials?: CredentialNames
  /** More signatures can only help it (`counts.ts`): one that could not be checked may be left out of a count. */
  moreNeverHurts: boolean
  mutateDigest: boolean
  verifyDigest: boolean
  required: boolean
  /** By name. */
  exceptions: readonly CompiledException[]
  /** `webhookConfiguration.timeoutSeconds`, 1 to 30. */
  timeoutSeconds?: number
}

/** A condition that must hold for a request. */
export interface CompiledCondition {
  name: string
  expression: CheckedExpression
}

/**
 * An exception, attached to every policy it refers to and to their variants. Its conditions see `object`, `oldObject`, `request` and
 * `namespaceObject`. Only one with neither `images` nor `allowedValues` may skip a policy.
 */
export interface CompiledException {
  /** `namespace/name`. */
  name: string
  /** `file.yaml:12`, for messages to the operator. */
  source: string
  /** All of them must hold; without any it always applies. */
  matchConditions: readonly CompiledCondition[]
  /** Globs of the images it is about, at least one. */
  images?: readonly string[]
  /** What an expression finds in `exceptions.allowedValues`, at least one. */
  allowedValues?: readonly string[]
  reportResult: 'skip' | 'pass'
  /** Epoch milliseconds: the last instant at which it exempts anything. */
  expiresAt?: number
}

/** An attestor of a policy: as it was written out, or with texts that only a request gives. */
export type PolicyAttestor = Attestor | UnresolvedAttestor

/** An attestor with keys, certificates or names that expressions give: what it comes to is found out in each request. */
export interface UnresolvedAttestor {
  kind: 'unresolved'
  name: string
  draft: AttestorDraft
  /** At least one. */
  expressions: readonly AttestorExpression[]
  /** SHA-256 hex of the draft and the sources: part of the hash of the policy. */
  hash: string
}

/** Where one text of an attestor comes from. */
export interface AttestorExpression {
  /** What it gives, as upstream calls it in messages: `key`, `cert chain`. */
  gives: string
  /** Where in the draft the text belongs. */
  at: readonly (string | number)[]
  expression: CheckedExpression
}

/** What is known of an attestor before any request: its kind, and all that is written out. */
export function draftOf(attestor: PolicyAttestor): AttestorDraft {
  return attestor.kind === 'unresolved' ? attestor.draft : attestor
}

/** What a policy is called among all of a deployment: `name`, or `namespace/name` of a namespaced one. Its variants are called the same. */
export function policyKey({ name, namespace }: Pick<CompiledPolicy, 'name' | 'namespace'>): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** The keys of the policies, each once: variants have those of what they were generated from. */
export function policyKeys(policies: readonly CompiledPolicy[]): string[] {
  return [...new Set(policies.map(policyKey))]
}

/** Order of two texts by code units: the same everywhere, whatever the locale. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** Everything a folder of policy documents gave: the policies, what is wrong, and what an operator should know. */
export interface LoadedPolicies {
  policies: readonly CompiledPolicy[]
  faults: readonly PolicyFault[]
  warnings: readonly PolicyFault[]
}

/** One thing wrong with (or notable about) a document. */
export interface PolicyFault {
  /** `POLICY_NOTE`: nothing is wrong, but somebody should know. Only warnings have it. */
  code:
    | 'POLICY_NOTE'
    | 'POLICY_INVALID'
    | 'POLICY_UNSUPPORTED'
    | 'CEL_PARSE'
    | 'CEL_CHECK'
    | 'CEL_PROGRAM'
  file: string
  /** One-based; 0 when there is no place. */
  line: number
  column: number
  /** `spec.validations[0].expression`. */
  path: string
  message: string
}
