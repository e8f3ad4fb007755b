import type { JsonPatchOperation } from '../admission/types.ts'
import { isDigest } from '../bytes.ts'
import { withDigest } from './reference.ts'
import type { ExtractedImage } from './types.ts'

/** True when the text ends in `@sha256:<64 hex>`, so that it always names the same bytes. */
export function isPinned(image: string): boolean {
  return pinnedDigest(image) !== undefined
}

/** The digest that the text ends in, or undefined. */
export function pinnedDigest(image: string): string | undefined {
  const at = image.indexOf('@')
  const digest = at < 0 ? '' : image.slice(at + 1)
  return isDigest(digest) ? digest : undefined
}

/**
 * Patches that append the digest to every image that has none, in the order of the images; the rest of the text stays as its author
 * wrote it. Images without an entry in `digests` (keyed by the exact text) are left alone. Throws
 * `IMAGE_REFERENCE_INVALID` for an image with an entry that is not a reference.
 */
export function pinPatches(
  images: readonly ExtractedImage[],
  digests: ReadonlyMap<string, string>,
): JsonPatchOperation[] {
  const patches: JsonPatchOperation[] = []
  for (const { image, pointer } of images) {
    const digest = digests.get(image)
    if (digest === undefined || isPinned(image)) continue
    patches.push({ op: 'replace', path: pointer, value: withDigest(image, digest) })
  }
  return patches
}
