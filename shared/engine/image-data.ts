import { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import { decodeJson } from '../json.ts'
import { MAX_BLOB_BYTES, MAX_DOCUMENT_VALUES } from '../limits.ts'
import type { Descriptor, Manifest, RegistrySession, ResolvedImage } from '../registry/types.ts'

/**
 * The value of `getImageData` and `image.GetMetadata` (specs/image-validating-policy.md 2.7): the resolved reference, the image
 * index if there is one, and manifest and config of the image itself. Throws AdmissionError when a part cannot be read.
 */
export async function imageData(
  image: ResolvedImage,
  registry: RegistrySession,
): Promise<{ [key: string]: JsonValue }> {
  const { reference, repository, descriptor } = image
  const root = await required(registry, image, descriptor.digest)
  const platform = platformDigest(root)
  const manifest = platform === undefined ? root : await required(registry, image, platform)
  const config = await registry.blob(repository, configDescriptor(manifest), MAX_BLOB_BYTES)
  return {
    image: reference.text,
    resolvedImage: `${reference.registry}/${reference.repository}@${descriptor.digest}`,
    registry: reference.registry,
    repository: reference.repository,
    identifier: reference.digest ?? reference.tag ?? '',
    tag: reference.tag ?? '',
    digest: descriptor.digest,
    imageIndex: platform === undefined ? null : root.json,
    manifest: manifest.json,
    config: decodeJson(config, { maxValues: MAX_DOCUMENT_VALUES }),
  }
}

async function required(
  registry: RegistrySession,
  image: ResolvedImage,
  digest: string,
): Promise<Manifest> {
  const manifest = await registry.manifest(image.repository, digest)
  if (manifest !== undefined) return manifest
  throw new AdmissionError(
    'REGISTRY_NOT_FOUND',
    `${image.reference.text}: manifest ${digest} does not exist`,
  )
}

/** In an index: its only image, else the one for linux/amd64, as Kyverno chooses (specs 4.9). */
function platformDigest(manifest: Manifest): string | undefined {
  const { manifests } = manifest.json
  if (!Array.isArray(manifests)) return undefined
  const images = manifests.filter((entry): entry is { [key: string]: JsonValue } => {
    return isRecord(entry) && !(isRecord(entry.platform) && entry.platform.os === 'unknown')
  })
  const chosen =
    images.length === 1
      ? images[0]
      : images.find(
          ({ platform }) =>
            isRecord(platform) && platform.os === 'linux' && platform.architecture === 'amd64',
        )
  if (typeof chosen?.digest !== 'string') {
    throw new AdmissionError(
      'REGISTRY_RESPONSE_INVALID',
      `image index ${manifest.descriptor.digest} has no manifest for linux/amd64`,
    )
  }
  return chosen.digest
}

function configDescriptor(manifest: Manifest): Descriptor {
  const { config } = manifest.json
  if (
    isRecord(config) &&
    typeof config.digest === 'string' &&
    typeof config.mediaType === 'string' &&
    typeof config.size === 'number'
  ) {
    return { digest: config.digest, mediaType: config.mediaType, size: config.size }
  }
  throw new AdmissionError(
    'REGISTRY_RESPONSE_INVALID',
    `manifest ${manifest.descriptor.digest} has no config descriptor`,
  )
}

function isRecord(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
