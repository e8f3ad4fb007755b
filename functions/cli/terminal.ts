/** Colours and weights that this program sets, as picocolors writes them: everything but what hides text. */
const OURS = '\u001b\\[(?:0|1|2|22|39|49|3[0-7]|9[0-7])m'
/** What terminals act on: control characters, and those that turn the order of letters around. */
const ACTED_ON =
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]|\\r(?!\\n)'
const EITHER = new RegExp(`(${OURS})|${ACTED_ON}`, 'gu')

/**
 * The text with everything written out that a terminal would act on and that is not ours: names and messages come from registries,
 * certificates and logs, and whoever wrote them must not write what an operator sees.
 */
export function forTerminal(text: string): string {
  return text.replace(EITHER, (found, own: string | undefined) =>
    own === undefined ? `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}` : found,
  )
}
