import { LineCounter } from 'yaml'
import { AdmissionError } from './errors.ts'
import { type JsonValue, parseJson } from './json.ts'
import { MAX_LISTED_FAULTS, MAX_YAML_VALUES } from './limits.ts'
import { parseNodes, readNodes } from './yaml/reader.ts'

/**
 * The documents of a YAML text as the API server gets them from kubectl: YAML 1.1 with Go's rules for plain scalars (`yes` is
 * true, `017` is 15, `1e3` is an int), keys as text, merge keys applied, then JSON. Empty documents are left out.
 * Throws `YAML_INVALID` with `line:column` of every fault; a key that occurs twice is one.
 */
export function parseYaml(text: string): JsonValue[] {
  const lines = new LineCounter()
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${line}:${col}`
  }
  const documents = syntaxOf(text, lines)
  const faults = documents
    .flatMap(({ errors }) => errors)
    .map(({ pos, message }) => ({ path: at(pos[0]), message }))
  if (faults.length > 0) throw invalid(faults)
  const read = documents.map((document) => readNodes(document, MAX_YAML_VALUES))
  const unreadable = read
    .flatMap((document) => document.faults)
    .map(({ node, message }) => ({ path: at(node.range?.[0] ?? 0), message }))
  if (unreadable.length > 0) throw invalid(unreadable)
  return read.map(({ value }) => value).filter((value) => value !== null)
}

/**
 * The documents of a text that is JSON or YAML, told apart as kubectl does it: what begins with a brace and is JSON is JSON,
 * `1.0` in it a double. Throws `YAML_INVALID`.
 */
export function parseJsonOrYaml(text: string): JsonValue[] {
  if (!/^\s*\{/.test(text)) return parseYaml(text)
  try {
    return [parseJson(text)]
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    // A YAML mapping in braces, or several documents; if it is neither, YAML says where.
    return parseYaml(text)
  }
}

function syntaxOf(text: string, lines: LineCounter) {
  try {
    return parseNodes(text, lines)
  } catch (cause) {
    // Nesting that exhausts the parser's stack lands here.
    const message = `the text cannot be parsed: ${cause instanceof Error ? cause.name : 'error'}`
    throw new AdmissionError('YAML_INVALID', message, { cause })
  }
}

function invalid(faults: readonly { path: string; message: string }[]): AdmissionError {
  const listed = faults.slice(0, MAX_LISTED_FAULTS)
  const [first] = listed
  const more = faults.length > 1 ? `, and ${faults.length - 1} more` : ''
  const message = `YAML is not valid at ${first?.path}: ${first?.message}${more}`
  return new AdmissionError('YAML_INVALID', message, { faults: listed })
}
