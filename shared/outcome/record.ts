import { utf8 } from '../bytes.ts'
import { goJson, goJsonString, type JsonValue } from '../json.ts'
import { MAX_OUTCOMES_BYTES } from '../limits.ts'
import type { OutcomeRecord } from './types.ts'

/** Longest message that is tried when the record is too large, characters; then half of it, and so on. */
const FIRST_CUT = 8192

/**
 * The text of the outcomes annotation as Kyverno 1.18 writes it (specs/image-validating-policy.md, appendix A): policy name → record, names sorted, empty
 * fields left out, Go's escapes; a policy that does not match the object is `{}` (undefined here). Too large a record loses
 * first the length of its messages, then the properties, then everything but the status; no policy is left out. Undefined when
 * not even that fits in `MAX_OUTCOMES_BYTES`.
 */
export function formatOutcomes(
  records: ReadonlyMap<string, OutcomeRecord | undefined>,
  maxBytes: number = MAX_OUTCOMES_BYTES,
): string | undefined {
  const whole = write(records, (record) => record)
  if (fits(whole, maxBytes)) return whole
  for (let chars = FIRST_CUT; chars >= 1; chars = Math.floor(chars / 2)) {
    const text = write(records, (record) => ({ ...record, message: cut(record.message, chars) }))
    if (fits(text, maxBytes)) return text
  }
  const bare = write(records, ({ properties: _, ...record }) => ({ ...record, message: '' }))
  if (fits(bare, maxBytes)) return bare
  const statuses = write(records, ({ status }) => ({ status }))
  return fits(statuses, maxBytes) ? statuses : undefined
}

function write(
  records: ReadonlyMap<string, OutcomeRecord | undefined>,
  shorten: (record: OutcomeRecord) => Partial<OutcomeRecord>,
): string {
  const names = [...records.keys()].sort()
  const members = names.map((name) => {
    const record = records.get(name)
    return `${goJsonString(name)}:${writeRecord(record === undefined ? {} : shorten(record))}`
  })
  return `{${members.join(',')}}`
}

/** One record with its fields in the order of the Go struct, each left out when it is empty. */
function writeRecord(record: Partial<OutcomeRecord>): string {
  const { name, ruleType, message, status, emitWarning, properties = {} } = record
  const fields: [string, JsonValue | undefined][] = [
    ['name', name || undefined],
    ['ruleType', ruleType],
    ['message', message || undefined],
    ['status', status],
    ['emitWarning', emitWarning || undefined],
    ['properties', Object.keys(properties).length > 0 ? properties : undefined],
  ]
  const written = fields.flatMap(([key, value]) =>
    value === undefined ? [] : [`"${key}":${goJson(value)}`],
  )
  return `{${written.join(',')}}`
}

function cut(text: string, chars: number): string {
  const characters = [...text]
  return characters.length <= chars ? text : `${characters.slice(0, chars - 1).join('')}…`
}

function fits(text: string, maxBytes: number): boolean {
  return utf8(text).length <= maxBytes
}
