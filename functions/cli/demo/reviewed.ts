/** Name of the policy that is asked about image reviews. */
export const REVIEWED_POLICY = 'reviewed-images'

/** The policy without what an ImageReview does not carry: what was there before, and volumes. Its message names an image once, whatever lists it is in. */
export function reviewed(text: string): string {
  return text
    .replace('name: signed-images', `name: ${REVIEWED_POLICY}`)
    .replace(/^ {2}matchConditions:\n(?: {4}.*\n)+/m, '')
    .replace(/^ {2}images:\n(?: {4}.*\n)+/m, '')
    .replace(' + images.volumes', '')
    .replace('variables.unsigned.join', 'variables.unsigned.distinct().join')
}
