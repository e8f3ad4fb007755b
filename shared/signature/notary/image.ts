import { AdmissionError, unreachable } from '../../errors.ts'
import { MAX_NOTARY_ATTEMPTS, MAX_NOTARY_ENVELOPE_BYTES } from '../../limits.ts'
import type { Descriptor, RegistrySession } from '../../registry/types.ts'
import {
  dig,
  type FoundSignatures,
  isDigest,
  malformed,
  quote,
  readDescriptor,
  type Subject,
} from '../content.ts'
import type { Checked, Layout } from '../examine.ts'
import type { RevocationLoader } from '../revocation/load.ts'
import type { NotaryAttestor } from '../types.ts'
import { certificatesFromPem } from '../x509/pem.ts'
import type { NotaryPolicy, RevocationPolicy } from './types.ts'
import { type NotarySignature, verifyNotary } from './verify.ts'

/** What the manifest of a Notary Project signature says it is. */
export const NOTARY_TYPE = 'application/vnd.cncf.notary.signature'

/** What some registries put for `artifactType` when the writer gave none. */
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json'

/** One image of one request. */
export interface NotaryImage {
  /** What a signature has to be about. */
  artifact: Descriptor
  subject: Subject
  registry: RegistrySession
  /** Epoch milliseconds. */
  now: number
  /** Whom attestors ask that look up revocation. Without it they cannot tell. */
  revocation?: RevocationLoader | undefined
}

/**
 * The Notary Project signatures of an image among its referrers and how this attestor checks them: level `strict`, identities `*`
 * (image-validating-policy.md 4.8). Revocation is the one thing that differs: the attestor says whether it is looked up.
 */
export function notaryLayout(
  attestor: NotaryAttestor,
  { artifact, subject, registry, now, revocation }: NotaryImage,
): Layout<NotarySignature> {
  return {
    source: 'notary',
    where: `referrers of ${subject.digest}`,
    maxAttempts: MAX_NOTARY_ATTEMPTS,
    find: () => findSignatures(artifact, subject, registry),
    check: async (signature) => {
      const asked = await revocationOf(attestor, registry, revocation)
      return check(signature, policyOf(attestor, asked), now)
    },
  }
}

async function revocationOf(
  { revocation: mode = 'skip' }: NotaryAttestor,
  { context }: RegistrySession,
  load: RevocationLoader | undefined,
): Promise<RevocationPolicy> {
  if (mode === 'skip') return { mode }
  if (load !== undefined) return { mode, source: await load(context) }
  throw new AdmissionError('CONFIG_INVALID', 'nobody can be asked about revocation here')
}

function policyOf({ certs, tsaCerts }: NotaryAttestor, revocation: RevocationPolicy): NotaryPolicy {
  return {
    level: 'strict',
    trustStores: {
      ca: certificatesFromPem(certs),
      signingAuthority: [],
      ...(tsaCerts === undefined ? {} : { tsa: certificatesFromPem(tsaCerts) }),
    },
    trustedIdentities: [{ any: true }],
    revocation,
  }
}

async function check(
  signature: NotarySignature,
  policy: NotaryPolicy,
  now: number,
): Promise<Checked> {
  const found = await verifyNotary(signature, policy, now)
  switch (found.status) {
    case 'verified':
      return { kind: 'yes', signer: found.signer, detail: detailOf(found.outcomes) }
    case 'rejected':
      return { kind: 'no', detail: found.reason }
    case 'inconclusive':
      // Keys and bytes of an envelope are what somebody published: a bad one is a "no", never an outage.
      if (['SIGNATURE_MALFORMED', 'KEY_INVALID'].includes(found.error.code)) {
        return { kind: 'no', detail: found.error.message }
      }
      // Another signature may be by somebody whose status is known.
      if (found.error.code === 'REVOCATION_UNKNOWN') throw found.error
      return { kind: 'no-key', error: found.error }
    case 'skipped':
      return { kind: 'no', detail: 'nothing was verified' }
    default:
      return unreachable(found)
  }
}

function detailOf(outcomes: readonly { detail: string }[]): string {
  return outcomes.map(({ detail }) => detail).join('; ')
}

async function findSignatures(
  artifact: Descriptor,
  subject: Subject,
  registry: RegistrySession,
): Promise<FoundSignatures<NotarySignature>> {
  const { descriptors, omitted } = await registry.referrers(subject.repository, subject.digest)
  const signatures = descriptors.filter(isMaybeSignature).map((descriptor) => ({
    location: descriptor.digest,
    read: () => readReferrer(descriptor, artifact, subject, registry),
  }))
  return { signatures, omitted }
}

/** A descriptor's `artifactType` is a hint that registries fill in wrongly; the manifest decides. */
function isMaybeSignature({ artifactType = '' }: Descriptor): boolean {
  return artifactType === '' || artifactType === EMPTY_TYPE || artifactType === NOTARY_TYPE
}

async function readReferrer(
  { digest }: Descriptor,
  artifact: Descriptor,
  subject: Subject,
  registry: RegistrySession,
): Promise<NotarySignature | undefined> {
  const manifest = await registry.manifest(subject.repository, digest)
  if (manifest === undefined) throw malformed('the referrer is listed but gone')
  const { json } = manifest
  // Older writers have no artifact type and say it with the config.
  const stated = dig(json, 'artifactType') ?? dig(json, 'config', 'mediaType')
  if (stated !== NOTARY_TYPE) return undefined
  const about = dig(json, 'subject', 'digest')
  if (!isDigest(about, subject.digest)) {
    throw malformed(`referrer is about ${quote(about)}, expected ${subject.digest}`)
  }
  const layers = dig(json, 'layers')
  if (!Array.isArray(layers) || layers.length !== 1) {
    throw malformed('signature manifest does not have exactly one layer')
  }
  const layer = readDescriptor(layers[0])
  if (layer.size > MAX_NOTARY_ENVELOPE_BYTES) {
    throw malformed(
      `envelope of ${layer.size} bytes, at most ${MAX_NOTARY_ENVELOPE_BYTES} are read`,
    )
  }
  const envelope = await registry.blob(subject.repository, layer, MAX_NOTARY_ENVELOPE_BYTES)
  return { mediaType: layer.mediaType, envelope, artifact }
}
