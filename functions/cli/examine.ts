import { type Environment, kmsFrom, vaultFrom } from '#functions/ports.ts'
import { toAdmissionError } from '#shared/errors.ts'
import { apiHost } from '#shared/image/reference.ts'
import type { ImageReference } from '#shared/image/types.ts'
import type { CredentialsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import type { RegistrySession } from '#shared/registry/types.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import type { KmsSettings } from '#shared/signature/kms-reference.ts'
import { subjectOf } from '#shared/signature/source.ts'
import type { Attestor, Candidate, Verification } from '#shared/signature/types.ts'
import { createVerifier } from '#shared/signature/verify.ts'

/** An attestor and the policy it is from. */
export interface NamedAttestor {
  policy?: string
  attestor: Attestor
}

/** What one attestor said of the image, and every signature that was looked at for it. */
export interface Finding {
  policy?: string
  attestor: string
  /** `PEM`, the reference of a key service, `keyless` or `certificates`. */
  key: string
  status: Verification['status']
  detail: string
  signatures: readonly Candidate[]
}

/** What all of them said. `reason` tells why nobody could be asked. */
export interface Findings {
  image: string
  digest?: string
  verdict: Verification['status']
  reason?: string
  attestors: readonly Finding[]
}

export interface ExamineOptions {
  credentials: CredentialsPort
  plainHttp: boolean
  kmsSettings: KmsSettings
  /** Where AWS credentials are looked up first, and the token of Vault. */
  env: Environment
  /** One attestor that verifies is enough. */
  any: boolean
  signal: AbortSignal
}

/** The whole examination, milliseconds. */
const TIMEOUT_MS = 30_000

/** What these attestors say of an image, after every signature of it was looked at. Throws only for bad KMS settings. */
export async function examineImage(
  reference: ImageReference,
  attestors: readonly NamedAttestor[],
  options: ExamineOptions,
): Promise<Findings> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(TIMEOUT_MS)])
  const registry = openRegistry(reference, attestors, options, signal)
  const { env, kmsSettings } = options
  const kms = createKmsKeys({
    port: kmsFrom({ env }),
    vaultPort: vaultFrom({ env }, 'VAULT_TOKEN'),
    now: Date.now,
    ...kmsSettings,
  })
  const verifier = createVerifier({ now: Date.now, kms, thorough: true, revocation: { fetch } })
  try {
    const image = await registry.resolve(reference)
    const context = { cluster: 'command-line', registry, signal }
    const findings = await Promise.all(
      attestors.map(async ({ policy, attestor }) =>
        toFinding(attestor, policy, await verifier.verifyImage(image, attestor, context)),
      ),
    )
    const { digest } = image.descriptor
    return {
      image: reference.text,
      digest,
      verdict: verdictOf(findings, options.any),
      attestors: findings,
    }
  } catch (thrown) {
    const reason = toAdmissionError(thrown, `resolving ${reference.text}`).message
    return { image: reference.text, verdict: 'inconclusive', reason, attestors: [] }
  }
}

function openRegistry(
  reference: ImageReference,
  attestors: readonly NamedAttestor[],
  { credentials, plainHttp }: ExamineOptions,
  signal: AbortSignal,
): RegistrySession {
  const hosts = [apiHost(reference)]
  const sources = attestors.flatMap(({ attestor }) => {
    const { store } = subjectOf({ repository: { host: '', repository: '' }, digest: '' }, attestor)
    return store === undefined ? [] : [store.host]
  })
  // Whoever types a host on the command line may talk to it, wherever it is, and to where the policy says signatures are.
  const allowedHosts = [...hosts, ...sources]
  const addresses = { allowedHosts, plainHttpHosts: plainHttp ? hosts : [] }
  // The logins of this machine stand for those that a policy names.
  const credentialsFor = () => credentials
  return createRegistryClient({
    fetch,
    now: Date.now,
    credentials,
    credentialsFor,
    ...addresses,
  }).session(signal)
}

function toFinding(
  attestor: Attestor,
  policy: string | undefined,
  verification: Verification,
): Finding {
  const { status, candidates } = verification
  return {
    ...(policy === undefined ? {} : { policy }),
    attestor: attestor.name,
    key: keyOf(attestor),
    status,
    detail: detailOf(verification),
    signatures: candidates,
  }
}

/** Where what is trusted comes from. */
function keyOf(attestor: Attestor): string {
  if (attestor.kind === 'cosign-keyless') return 'keyless'
  if (attestor.kind === 'notary' || attestor.kind === 'cosign-certificate') return 'certificates'
  return 'kms' in attestor.key ? attestor.key.kms : 'PEM'
}

function detailOf(verification: Verification): string {
  switch (verification.status) {
    case 'verified':
      return `signed by ${verification.signer}`
    case 'rejected':
      return verification.reason
    case 'inconclusive':
      return `${verification.error.code}: ${verification.error.message}`
  }
}

/** Verified when all are (or one, with `any`); otherwise rejected, unless somebody could not tell and that would have mattered. */
function verdictOf(findings: readonly Finding[], any: boolean): Verification['status'] {
  const statuses = findings.map(({ status }) => status)
  const decisive = any ? 'verified' : 'rejected'
  if (statuses.includes(decisive)) return decisive
  if (statuses.includes('inconclusive')) return 'inconclusive'
  return any ? 'rejected' : 'verified'
}
