import { generateKeyPairSync } from 'node:crypto'
import { keylessSigner } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import type { PushTarget } from '#functions/local/push.ts'
import type { LocalRegistry } from '#functions/local/registry.ts'
import { attest, signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import type { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import type { JsonValue } from '#shared/json.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { signatureTag } from '#shared/signature/cosign.ts'

/** An image in the demo's registry. */
export interface DemoImage {
  /** By tag, as a developer writes it. */
  reference: string
  repository: string
  digest: string
}

/** Who signed an image, and where the signature is. */
export type Signature =
  | 'release'
  | 'release-bundle'
  | 'other-key'
  | 'workflow'
  | 'workflow-bundle'
  | 'other-workflow'
  | 'nobody'

/** A workflow of the same repository, but not the one that releases. */
export const OTHER_WORKFLOW = 'https://ci.example.com/shop/api/test.yml@refs/heads/main'

const TAG = '1.0'

/** Pushes images and signs them. The release key stays in KMS; the other one is somebody else's; workflows have none for longer than minutes. */
export function createImages(registry: LocalRegistry, release: Signer, sigstore: LocalSigstore) {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const other = localSigner(privateKey)

  async function sign(target: PushTarget, descriptor: Descriptor, by: Signature): Promise<void> {
    const image = { descriptor, reference: `${registry.host}/${target.repository}` }
    switch (by) {
      case 'release':
        await signImage(target, image, [release], 'tag')
        return
      case 'release-bundle':
        await signImage(target, image, [release], 'dsse')
        return
      case 'other-key':
        await signImage(target, image, [other], 'tag')
        return
      case 'workflow':
        await signImage(target, image, [keylessSigner(sigstore)], 'tag')
        return
      case 'workflow-bundle':
        await signImage(target, image, [keylessSigner(sigstore)], 'dsse')
        return
      case 'other-workflow': {
        const names = { uri: [OTHER_WORKFLOW] }
        await signImage(target, image, [keylessSigner(sigstore, { leaf: { names } })], 'dsse')
        return
      }
      case 'nobody':
        return
    }
  }

  return {
    /** A new image under `shop/<name>`. */
    async push(name: string, by: Signature): Promise<DemoImage> {
      const repository = `shop/${name}`
      const target = { url: registry.url, repository }
      const descriptor = await pushImage(target, { text: `hello from ${name}\n`, tag: TAG })
      await sign(target, descriptor, by)
      const reference = `${registry.host}/${repository}:${TAG}`
      return { reference, repository, digest: descriptor.digest }
    },
    /** Attaches what the release workflow attests about an image, in a bundle. */
    async attest(image: DemoImage, predicateType: string, predicate: JsonValue): Promise<void> {
      const { repository, digest, reference } = image
      const target = { url: registry.url, repository }
      const stored = registry.repositories.get(repository)?.manifest(digest)
      if (stored === undefined) throw new TypeError(`${reference} was not pushed here`)
      const descriptor = { mediaType: stored.mediaType, digest, size: stored.bytes.length }
      const attested = { predicateType, predicate, layout: 'dsse' as const }
      await attest(target, { descriptor, reference }, keylessSigner(sigstore), attested)
    },
    /** Removes an image's signature from the registry, as somebody would who withdraws a release. */
    withdraw({ repository, digest }: DemoImage): void {
      registry.repositories.get(repository)?.tags.delete(signatureTag(digest))
    },
  }
}

/** The image as mutate leaves it in the object. */
export function pinnedReference({ reference, digest }: DemoImage): string {
  return `${reference}@${digest}`
}
