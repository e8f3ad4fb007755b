import type { JsonPatchOperation } from '../admission/types.ts'
import { toAdmissionError } from '../errors.ts'
import { isPinned, pinPatches } from '../image/pin.ts'
import { imagesOf } from '../policy/images.ts'
import type { PreparedPolicy } from '../policy/prepare.ts'
import type { Subject } from '../policy/subject.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { Inquiry } from './inquiry.ts'

/** Digests appended to images, and the images for which that was not possible. */
export interface Pinning {
  patches: JsonPatchOperation[]
  failures: readonly PinningFailure[]
}

/** What a policy wanted pinned and could not be. */
export interface PinningFailure {
  policy: CompiledPolicy
  /** Upstream's text, of the rule `mutateDigest`: every image with why its digest could not be resolved. */
  message: string
}

/**
 * Pins every image without a digest that a policy with `mutateDigest` is about, each to what its tag means now. Only images of Pod
 * specs have a place to write to; what a custom extractor finds is left as it is (image-validating-policy.md 3.5).
 */
export async function pinImages(
  policies: readonly PreparedPolicy[],
  subject: Subject,
  inquiry: Inquiry,
): Promise<Pinning> {
  const { extraction } = subject
  if (extraction.status === 'error') return { patches: [], failures: [] }
  const places = extraction.found.images
  const present = new Set(places.map(({ image }) => image))
  /** Image → the policies that want it pinned. */
  const wanted = new Map<string, CompiledPolicy[]>()
  for (const prepared of policies) {
    for (const image of imagesToPin(prepared, subject)) {
      if (present.has(image)) wanted.set(image, [...(wanted.get(image) ?? []), prepared.policy])
    }
  }
  const digests = new Map<string, string>()
  const failures = new Map<string, string>()
  await Promise.all(
    [...wanted].map(async ([image, by]) => {
      try {
        digests.set(image, await digestOf(image, by, inquiry))
      } catch (thrown) {
        const { message } = toAdmissionError(thrown, 'resolving')
        failures.set(image, `failed to resolve digest for image ${image}: ${message}`)
      }
    }),
  )
  return { patches: pinPatches(places, digests), failures: byPolicy(wanted, failures) }
}

/** In the order of the policies, and of the images in the object. */
function byPolicy(
  wanted: ReadonlyMap<string, readonly CompiledPolicy[]>,
  failures: ReadonlyMap<string, string>,
): PinningFailure[] {
  const texts = new Map<CompiledPolicy, string[]>()
  for (const [image, policies] of wanted) {
    const text = failures.get(image)
    if (text === undefined) continue
    for (const policy of policies) texts.set(policy, [...(texts.get(policy) ?? []), text])
  }
  return [...texts].map(([policy, each]) => ({
    policy,
    message: `failed to update digest: ${each.join('; ')}`,
  }))
}

/**
 * The digest by the logins of the first policy that can tell: every one of them wants the image pinned, and each then verifies that
 * digest with its own. Throws what the first was told.
 */
async function digestOf(
  image: string,
  policies: readonly CompiledPolicy[],
  inquiry: Inquiry,
): Promise<string> {
  const logins = new Map(policies.map((policy) => [JSON.stringify(policy.credentials), policy]))
  const faults: unknown[] = []
  for (const policy of logins.values()) {
    try {
      return (await inquiry.resolve(image, policy)).descriptor.digest
    } catch (thrown) {
      faults.push(thrown)
    }
  }
  throw faults[0]
}

function imagesToPin(prepared: PreparedPolicy, subject: Subject): readonly string[] {
  if (!prepared.policy.mutateDigest) return []
  const images = imagesOf(prepared, subject)
  return images.status === 'error' ? [] : images.all.filter((image) => !isPinned(image))
}
