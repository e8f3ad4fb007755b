import type { Signer } from '#functions/local/signer.ts'
import { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import { type Minted, mint, mintRoot, pemOf } from '#test/fakes/pki.ts'
import { publish, workflow } from '#test/fakes/publish.ts'
import { createRegistries, type Registries } from '#test/fakes/registries.ts'

/** When everything is signed and reviewed, epoch milliseconds. */
export const NOW = Date.parse('2026-03-01T12:00:00Z')

const SUBJECT =
  'https://github.com/kyverno/test-images/.github/workflows/cosign.yml@refs/heads/main'
const ISSUER = 'https://token.actions.githubusercontent.com'
const TEST_IMAGE = 'ghcr.io/kyverno/test-verify-image'

/** Stands for the digest of the signed image in what is added to the cases here. */
export const SIGNED_DIGEST = 'sha256:signed'

/** The images of Kyverno's cases under their own names, signed here. */
export interface Material {
  registries: Registries
  trustedRoot: string
  /**
   * A text of a case with what depends on who signed replaced: certificates by the one that signed here, and the digests of images by
   * those that they have here. Nothing else is touched.
   */
  substitute(text: string): string
  close(): Promise<void>
}

export async function createMaterial(): Promise<Material> {
  const registries = createRegistries()
  const root = mintRoot()
  const chain: readonly Minted[] = [mint({ issuer: root }), root]
  const sigstore = new LocalSigstore(Math.floor(NOW / 1000))
  const builder = workflow(sigstore, SUBJECT, ISSUER)
  const digests = await publishAll(registries, chain, builder)
  return {
    registries,
    trustedRoot: JSON.stringify(sigstore.trustedRoot()),
    substitute: (text) =>
      digests.reduce(
        (changed, [from, to]) => changed.replaceAll(from, to),
        withCertificate(text, pemOf(root)),
      ),
    close: () => registries.close(),
  }
}

/** What the cases say of each image is made true of it; gives the digests that cases name, and what they are here. */
async function publishAll(
  registries: Registries,
  chain: readonly Minted[],
  builder: Signer,
): Promise<[from: string, to: string][]> {
  const sbom = {
    artifactType: 'sbom/cyclone-dx',
    payload: { bomFormat: 'CycloneDX' },
    notary: chain,
  }
  const signed = await publish(registries, `${TEST_IMAGE}:signed`, {
    notary: [chain],
    referrers: [sbom],
  })
  await publish(registries, `${TEST_IMAGE}:unsigned`)
  await publish(registries, `${TEST_IMAGE}:latest`)
  const keyless = await publish(registries, `${TEST_IMAGE}:signed-keyless`, { cosign: [builder] })
  const predicate = { buildDefinition: {}, runDetails: {} }
  await publish(registries, 'ghcr.io/kyverno/test-images/cosign:github-attestation', {
    cosign: [builder],
    attestations: [{ predicateType: 'https://slsa.dev/provenance/v1', predicate, by: builder }],
  })
  await publish(registries, 'public.ecr.aws/docker/library/nginx:latest')
  await publish(registries, 'public.ecr.aws/docker/library/busybox:latest')
  await publish(registries, 'registry.k8s.io/pause:latest')
  const arm = await publish(registries, 'arm64v8/busybox:latest', { architecture: 'arm64' })
  return [
    [SIGNED_DIGEST, signed.digest],
    ['sha256:445a99db22e9add9bfb15ddb1980861a329e5dff5c88d7eec9cbf08b6b2f4eb1', keyless.digest],
    ['sha256:fa8dc70514f29471fe118446e3f84040b19791531ec197836a4f43baf13d744b', arm.digest],
  ]
}

const CERTIFICATE = /( *)-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** The text with every certificate replaced, each as far to the right as it was. */
function withCertificate(text: string, pem: string): string {
  return text.replaceAll(CERTIFICATE, (_, indent: string) =>
    pem
      .trimEnd()
      .split('\n')
      .map((line) => indent + line)
      .join('\n'),
  )
}
