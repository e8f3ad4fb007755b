import { keylessSigner } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { type PushTarget, pushReferrer } from '#functions/local/push.ts'
import { attest, type SignatureLayout, signImage } from '#functions/local/sign.ts'
import type { Signer } from '#functions/local/signer.ts'
import type { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import { parseReference } from '#shared/image/reference.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { mintEnvelope } from '#test/fakes/notary.ts'
import type { Minted } from '#test/fakes/pki.ts'
import type { Registries } from '#test/fakes/registries.ts'

/** What goes with an image. */
export interface Material {
  architecture?: string
  /** Notary Project signatures, each by a chain of certificates. */
  notary?: readonly (readonly Minted[])[]
  /** cosign signatures. */
  cosign?: readonly Signer[]
  layout?: SignatureLayout
  /** Artifacts that refer to the image; those with a chain are signed with it like the image. */
  referrers?: readonly { artifactType: string; payload: unknown; notary?: readonly Minted[] }[]
  /** in-toto attestations. */
  attestations?: readonly { predicateType: string; predicate: unknown; by: Signer }[]
}

const NOTARY_SIGNATURE = 'application/vnd.cncf.notary.signature'

/** Pushes an image under its own name with everything that goes with it; gives its descriptor. The same name gives the same digest. */
export async function publish(
  registries: Registries,
  reference: string,
  material: Material = {},
): Promise<Descriptor> {
  const { registry: host, repository, tag } = parseReference(reference)
  const registry = await registries.at(host)
  const target: PushTarget = { url: registry.url, repository }
  const { architecture } = material
  const image = await pushImage(target, {
    text: reference,
    ...(tag !== undefined && { tag }),
    ...(architecture !== undefined && { architecture }),
  })
  const signed = { descriptor: image, reference: `${host}/${repository}` }
  for (const chain of material.notary ?? []) await signNotary(target, image, chain)
  const signers = material.cosign ?? []
  if (signers.length > 0) await signImage(target, signed, signers, material.layout ?? 'tag')
  for (const { artifactType, payload, notary } of material.referrers ?? []) {
    const bytes = Buffer.from(JSON.stringify(payload))
    const layers = [{ mediaType: 'application/json', bytes }]
    const referrer = await pushReferrer(target, image, { artifactType, layers })
    if (notary !== undefined) await signNotary(target, referrer, notary)
  }
  for (const { predicateType, predicate, by } of material.attestations ?? []) {
    await attest(target, signed, by, { predicateType, predicate, layout: 'dsse' })
  }
  return image
}

async function signNotary(
  target: PushTarget,
  { mediaType, digest, size }: Descriptor,
  chain: readonly Minted[],
): Promise<void> {
  const payload = { targetArtifact: { mediaType, digest, size } }
  const made = mintEnvelope({ format: 'JWS', chain, payload })
  const layers = [{ mediaType: made.mediaType, bytes: made.envelope }]
  await pushReferrer(
    target,
    { mediaType, digest, size },
    { artifactType: NOTARY_SIGNATURE, layers },
  )
}

/** A signer of a workflow, with a certificate that names it. */
export function workflow(sigstore: LocalSigstore, subject: string, issuer: string): Signer {
  return keylessSigner(sigstore, { leaf: { names: { uri: [subject] }, issuer } })
}
