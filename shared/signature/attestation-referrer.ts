import { AdmissionError } from '../errors.ts'
import { MAX_ATTESTED_REFERRERS, MAX_BLOB_BYTES } from '../limits.ts'
import type { Descriptor, RegistrySession } from '../registry/types.ts'
import { conclude } from './attestation-verdict.ts'
import {
  dig,
  type FoundSignatures,
  isDigest,
  malformed,
  quote,
  readDescriptor,
  type Subject,
} from './content.ts'
import { type Checked, examineLayout, type Layout } from './examine.ts'
import { notaryLayout } from './notary/image.ts'
import type { RevocationLoader } from './revocation/load.ts'
import type { AttestationVerification, NotaryAttestor, VerifiedPayload } from './types.ts'

/** What some registries put for `artifactType` when the writer gave none. */
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json'

/** What looking for referrers takes. */
export interface ReferrerSources {
  registry: RegistrySession
  /** Epoch milliseconds. */
  now: number
  /** Whom attestors ask that look up revocation. */
  revocation: RevocationLoader | undefined
}

/** A referrer of the image: what a signature has to be about, and the one blob it has. */
interface Referrer {
  rank: number
  artifact: Descriptor
  layer: Descriptor
}

/**
 * Whether one of the image's referrers of this artifact type has a Notary Project signature of its own that the attestor makes
 * (image-validating-policy.md 4.8). The first of the listing that has one counts. Upstream's `extractPayload` takes any referrer of the
 * type where none is verified; here the payload of one that is not verified is never even read.
 */
export async function examineReferrers(
  subject: Subject,
  artifactType: string,
  attestor: NotaryAttestor,
  { registry, now, revocation }: ReferrerSources,
): Promise<AttestationVerification> {
  const others = new Set<string>()
  const payloads = new Map<number, VerifiedPayload>()
  const layout: Layout<Referrer> = {
    source: 'notary',
    where: `referrers of ${subject.digest}`,
    maxAttempts: MAX_ATTESTED_REFERRERS,
    find: () => findReferrers(subject, artifactType, registry, others),
    async check({ rank, artifact, layer }) {
      const about = { repository: subject.repository, digest: artifact.digest }
      const signatures = notaryLayout(attestor, {
        artifact,
        subject: about,
        registry,
        now,
        revocation,
      })
      const checked = toChecked(await examineLayout(signatures, false))
      if (checked.kind !== 'yes') return checked
      const bytes = await registry.blob(subject.repository, layer, MAX_BLOB_BYTES)
      payloads.set(rank, { bytes, blob: { digest: layer.digest, size: layer.size } })
      return checked
    },
  }
  const result = await examineLayout(layout, false)
  const payload = payloads.get(Math.min(...payloads.keys()))
  const wanted = { subject, type: `artifact type ${artifactType}`, others }
  return conclude([{ result, payload, isOpenEnded: false }], wanted)
}

async function findReferrers(
  subject: Subject,
  artifactType: string,
  registry: RegistrySession,
  others: Set<string>,
): Promise<FoundSignatures<Referrer>> {
  const { descriptors, omitted } = await registry.referrers(subject.repository, subject.digest)
  const hinted = [artifactType, EMPTY_TYPE, '']
  // The hint of a listing is often wrong about a type that is not there, never about one that is.
  const maybe = descriptors.filter(
    ({ artifactType: hint = '' }) => hinted.includes(hint) || !others.add(quote(hint)),
  )
  const signatures = maybe.map(({ digest }, rank) => ({
    location: digest,
    async read() {
      const manifest = await registry.manifest(subject.repository, digest)
      if (manifest === undefined) throw malformed('the referrer is listed but gone')
      const { json, descriptor } = manifest
      // Older writers have no artifact type and say it with the config.
      const stated = dig(json, 'artifactType') ?? dig(json, 'config', 'mediaType')
      if (stated !== artifactType) {
        others.add(quote(stated))
        return undefined
      }
      const about = dig(json, 'subject', 'digest')
      if (!isDigest(about, subject.digest)) {
        throw malformed(`referrer is about ${quote(about)}, expected ${subject.digest}`)
      }
      const layers = dig(json, 'layers')
      if (!Array.isArray(layers) || layers.length !== 1) {
        throw malformed('invalid referrer descriptor, must have only one layer')
      }
      return { rank, artifact: descriptor, layer: readDescriptor(layers[0]) }
    },
  }))
  return { signatures, omitted }
}

/** What the signatures of one referrer say about it. Throws when they could not be read. */
function toChecked(found: Awaited<ReturnType<typeof examineLayout>>): Checked {
  const { signer, candidates, fault, omitted } = found
  const details = candidates.map(({ detail }) => detail)
  if (signer !== undefined) return { kind: 'yes', signer, detail: details.at(-1) ?? '' }
  // It says nothing about the other referrers, so they are looked at as well.
  if (fault !== undefined) throw fault
  if (omitted > 0) {
    const error = new AdmissionError('REGISTRY_TOO_LARGE', 'more signatures than are looked at')
    return { kind: 'no-key', error }
  }
  const detail = details.slice(0, 3).join('; ') || 'it has no Notary Project signature'
  return { kind: 'no', detail }
}
