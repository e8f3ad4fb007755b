import { isDigest } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { decodeJson, getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_BLOB_BYTES } from '../limits.ts'
import { maxValuesOf } from '../registry/json-object.ts'
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
    config: decodeJson(config, { maxValues: maxValuesOf(config) }),
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
  const entries = getOwn(manifest.json, 'manifests')
  if (!Array.isArray(entries)) return undefined
  // Attestations of build tools stand in an index as images for an unknown platform.
  const images = entries.filter((entry) => platformOf(entry, 'os') !== 'unknown')
  const chosen =
    images.length === 1
      ? images[0]
      : images.find(
          (entry) =>
            platformOf(entry, 'os') === 'linux' && platformOf(entry, 'architecture') === 'amd64',
        )
  const digest = isJsonObject(chosen) ? getOwn(chosen, 'digest') : undefined
  // Anything else would be asked for as a tag, which the digest of the index says nothing about.
  if (typeof digest === 'string' && isDigest(digest)) return digest
  const { digest: index } = manifest.descriptor
  throw invalid(`image index ${index} has no manifest for linux/amd64`)
}

function platformOf(entry: JsonValue, name: string): JsonValue | undefined {
  const platform = isJsonObject(entry) ? getOwn(entry, 'platform') : undefined
  return isJsonObject(platform) ? getOwn(platform, name) : undefined
}

function configDescriptor(manifest: Manifest): Descriptor {
  const config = getOwn(manifest.json, 'config')
  const [digest, mediaType, size] = ['digest', 'mediaType', 'size'].map((name) =>
    isJsonObject(config) ? getOwn(config, name) : undefined,
  )
  if (typeof digest === 'string' && typeof mediaType === 'string' && typeof size === 'number') {
    return { digest, mediaType, size }
  }
  throw invalid(`manifest ${manifest.descriptor.digest} has no config descriptor`)
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('REGISTRY_RESPONSE_INVALID', message)
}
