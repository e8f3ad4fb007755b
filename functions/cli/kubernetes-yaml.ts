import { Document, visit } from 'yaml'

/** What Kubernetes' parser takes for a line break or not at all, inside quotes as well. Control characters before these are escaped anyway. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g

/**
 * The YAML text of an object as Kubernetes reads it. Its parser knows version 1.1, where `no` and `y` are booleans, and takes more for numbers
 * than that version does: `0o17` and `1e_3`. Whatever it would not read as the text it is, stands in quotes.
 */
export function kubernetesYaml(value: unknown): string {
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false })
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && isMisread(node.value)) node.type = 'QUOTE_DOUBLE'
    },
  })
  return document.toString({ lineWidth: 0 }).replaceAll(UNPRINTABLE, escaped)
}

function isMisread(text: string): boolean {
  // Underscores are dropped before anything is taken for a number.
  const plain = text.replaceAll('_', '')
  return (
    text.search(UNPRINTABLE) >= 0 ||
    // A block of lines is indented by its first one, which must not be blank or begin with a tab.
    (/^\s/.test(text) && text.includes('\n')) ||
    /^[-+]?0[bBoOxX][0-9a-fA-F]+$/.test(plain) ||
    /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(plain)
  )
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
