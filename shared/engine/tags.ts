import { type AdmissionError, toAdmissionError } from '../errors.ts'
import { pinnedDigest } from '../image/pin.ts'
import type { Inquiry } from './inquiry.ts'
import type { TaggedImage } from './rare-calls.ts'

/**
 * Whether the tag of a pinned image (`latest` where it has none) means its digest now, by the registry and with the logins of the policy.
 * A tag that is not there is not told apart from one that is hidden: an error, as everything that keeps the answer away.
 */
export async function isTagOf(
  { image, policy }: TaggedImage,
  inquiry: Pick<Inquiry, 'resolve'>,
): Promise<boolean | AdmissionError> {
  try {
    const tagged = image.slice(0, image.indexOf('@'))
    const { descriptor } = await inquiry.resolve(tagged, policy)
    return descriptor.digest === pinnedDigest(image)
  } catch (thrown) {
    return toAdmissionError(thrown, `resolving the tag of ${image}`)
  }
}
