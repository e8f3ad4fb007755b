import type { Config } from '#functions/config.ts'
import type { Deployment } from '#functions/deployment.ts'
import { contextNeeds } from '#shared/policy/outside.ts'
import { draftOf, type PolicyAttestor } from '#shared/policy/types.ts'
import type { AttestorDraft } from '#shared/signature/types.ts'

/** The package of the KMS client. */
export const KMS_CLIENT = '@aws-sdk/client-kms'
/** The part of the key cache that is for AWS KMS, as it imports it. */
const AWS_MODULE = './kms-aws.ts'
/** The part of the key cache, and of the ports, that is for Vault: as both import it. */
const VAULT_MODULE = './kms-vault.ts'
/** As `signature/verify.ts` imports it. */
const NOTARY_MODULE = './notary/image.ts'
/** As `signature/check.ts` imports them. */
const SIGSTORE_MODULES = ['./sigstore/check.ts', './sigstore/attestor.ts']
/** As `signature/revocation/load.ts` imports it. */
const REVOCATION_MODULE = './lookup.ts'
/** As `signature/attestation.ts` imports them. */
const ATTESTATION_MODULES = ['./attestation-statement.ts', './attestation-payload.ts']
const REFERRER_MODULE = './attestation-referrer.ts'
/** As `events.ts` imports it. */
const SINKS_MODULE = './sinks/set.ts'
/** As `policy/prepare.ts` and `engine/answers.ts` import them. */
const UNRESOLVED_MODULES = ['./attestor-values.ts', './unresolved.ts']
/** What answers policies that ask for more than images, as `engine/answers.ts`, `compose.ts` and `policy/prepare.ts` import it. */
const CONTEXT_MODULES = [
  '../cluster/session.ts',
  './cluster/ports.ts',
  '../cel/library/kyverno-host.ts',
]
/** Parts of it that few of these need, as `cluster/session.ts` and `lambda-platform.ts` import them. */
const CONTEXT_PARTS = { random: './random.ts', yaml: './yaml.ts', gzip: './gzip.ts' }
const AUTHORITIES_MODULE = './cluster/https.ts'
/** As `flows.ts` imports it. */
const IMAGE_REVIEW_MODULE = './image-review-answer.ts'
/** As `policy-bundle/follow.ts` imports it. */
const BUNDLES_MODULE = './keeper.ts'

/** True when a cluster asks for image reviews: what answers them is in no other deployment. */
export function reviewsImages({ clusters }: Config): boolean {
  return clusters.some(({ imageReview }) => imageReview !== undefined)
}

/** Modules that are loaded when first needed, by the specifier they are imported with, and what a deployment lacks that needs none. */
export function unneededModules(
  deployment: Deployment,
  isWorker: boolean,
): ReadonlyMap<string, string> {
  if (deployment.config.policyBundle !== undefined) return unneededWhatever(deployment, isWorker)
  const unneeded = unneededByConfig(deployment.config).set(BUNDLES_MODULE, 'a policyBundle')
  if (!usesKms(deployment)) unneeded.set(KMS_CLIENT, 'KMS keys')
  if (!keyReferences(deployment).some(isAws)) unneeded.set(AWS_MODULE, 'attestors in KMS')
  if (keyReferences(deployment).every(isAws)) unneeded.set(VAULT_MODULE, 'Vault keys')
  if (!usesNotary(deployment)) unneeded.set(NOTARY_MODULE, 'notary attestors')
  if (!deployment.policies.some(({ attestors }) => attestors.some(isUnresolved))) {
    for (const each of UNRESOLVED_MODULES) unneeded.set(each, 'attestors with expressions')
  }
  if (!looksUpRevocation(deployment)) unneeded.set(REVOCATION_MODULE, 'revocation')
  if (!draftsIn(deployment).some(usesSigstore)) {
    for (const each of SIGSTORE_MODULES) unneeded.set(each, 'certificates, logs and timestamps')
  }
  const attestations = deployment.policies.flatMap((policy) => policy.attestations)
  if (attestations.length === 0) {
    for (const each of ATTESTATION_MODULES) unneeded.set(each, 'attestations')
  }
  if (!attestations.some((attestation) => 'referrer' in attestation)) {
    unneeded.set(REFERRER_MODULE, 'referrers as attestations')
  }
  for (const [specifier, lacking] of unneededContext(deployment)) unneeded.set(specifier, lacking)
  return unneeded
}

/**
 * The same for policies that nobody knows yet: only what the config would have to give is left out, and of Workers the parser of YAML, a fifth of
 * all, unless a policy of the build asks for it. A bundle with a policy that does is then refused.
 */
function unneededWhatever(
  { config, policies }: Deployment,
  isWorker: boolean,
): Map<string, string> {
  const unneeded = unneededByConfig(config)
  const readsYaml = policies.some((policy) => contextNeeds(policy).has('yaml'))
  if (isWorker && !readsYaml) unneeded.set(CONTEXT_PARTS.yaml, 'policies that parse YAML')
  if (config.kms.vault === undefined) unneeded.set(VAULT_MODULE, 'Vault keys')
  if (!hasAuthorities(config) && config.http === undefined) {
    unneeded.set(AUTHORITIES_MODULE, 'other authorities')
  }
  return unneeded
}

/** What the config alone says of any policies. */
function unneededByConfig(config: Config): Map<string, string> {
  const unneeded = new Map<string, string>()
  if (!reviewsImages(config)) unneeded.set(IMAGE_REVIEW_MODULE, 'image reviews')
  if (!config.events?.sinks.length) unneeded.set(SINKS_MODULE, 'sinks of events')
  return unneeded
}

/** True when an API server is trusted by an authority of its own. */
function hasAuthorities({ clusters }: Config): boolean {
  return clusters.some(({ api }) => api?.ca !== undefined)
}

/** The same for what policies ask beside images. */
function unneededContext({ config, policies }: Deployment): Map<string, string> {
  const unneeded = new Map<string, string>()
  const needs = new Set(policies.flatMap((policy) => [...contextNeeds(policy)]))
  if (needs.size === 0) {
    for (const each of CONTEXT_MODULES) unneeded.set(each, 'policies that ask for more than images')
  }
  for (const [need, specifier] of Object.entries(CONTEXT_PARTS)) {
    if (!needs.has(need)) unneeded.set(specifier, need)
  }
  if (!hasAuthorities(config) && !needs.has('http')) {
    unneeded.set(AUTHORITIES_MODULE, 'other authorities')
  }
  return unneeded
}

/** True for an attestor that is more than a key: one with certificates, or whose signatures somebody has to have witnessed. */
function usesSigstore(attestor: AttestorDraft): boolean {
  const { kind } = attestor
  return kind === 'cosign-key' ? attestor.trust !== undefined : kind !== 'notary'
}

/** True when functions ask AWS KMS: for the sealing key, or a key of any policy that is not pinned. */
function usesKms(deployment: Deployment): boolean {
  const { key } = deployment.config.outcomes
  if (key.kind === 'kms') return true
  const isPinned =
    deployment.config.kms.pinned !== undefined &&
    !deployment.policies.some(({ attestors }) => attestors.some(isUnresolved))
  return !isPinned && keyReferences(deployment).some(isAws)
}

/** Of the two services that policies can name. */
const isAws = (reference: string): boolean => reference.startsWith('awskms:')

/** The references of all attestors, each as often as it stands there. */
export function keyReferences(deployment: Pick<Deployment, 'config' | 'policies'>): string[] {
  return draftsIn(deployment).flatMap((attestor) =>
    attestor.kind === 'cosign-key' && 'kms' in attestor.key ? [attestor.key.kms] : [],
  )
}

/** True when an attestor of any policy verifies Notary Project signatures. */
function usesNotary(deployment: Deployment): boolean {
  return draftsIn(deployment).some(({ kind }) => kind === 'notary')
}

function looksUpRevocation(deployment: Deployment): boolean {
  return draftsIn(deployment).some(
    (attestor) => attestor.kind === 'notary' && attestor.revocation !== undefined,
  )
}

/** Every attestor of every policy, without what only requests give some of them. */
function draftsIn({ policies }: Pick<Deployment, 'policies'>): AttestorDraft[] {
  return policies.flatMap(({ attestors }) => attestors.map(draftOf))
}

function isUnresolved({ kind }: PolicyAttestor): boolean {
  return kind === 'unresolved'
}
