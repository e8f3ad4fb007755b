import { fromBase64 } from '#shared/bytes.ts'
import { formatIssues } from '#shared/cel/compile.ts'
import type { TaggedValue } from '#shared/cel/tagged.ts'
import type { Issue } from '#shared/cel/types.ts'
import type { Io } from '../io.ts'
import type { CelAnswer } from './session.ts'

/** What became of an expression, for people: the value or what is wrong and where, then the type and the cost. */
export function answerText(io: Io, expression: string, answer: CelAnswer): string {
  const { record, variables } = answer
  const lines = variables.flatMap(({ name, source, error, issues }) => [
    io.colors.bold(`variables.${name}`),
    faultText(io, source, error, issues),
  ])
  lines.push(resultText(io, expression, answer))
  const facts = [
    record.type,
    record.cost === undefined ? undefined : `cost ${record.cost}`,
    record.varCost === undefined ? undefined : `variables ${record.varCost}`,
  ].filter((fact) => fact !== undefined)
  if (facts.length > 0) lines.push(io.colors.dim(facts.join(', ')))
  return `${lines.join('\n')}\n`
}

function resultText(io: Io, expression: string, { record, issues, variables }: CelAnswer): string {
  if (record.value !== undefined) return io.colors.bold(valueText(record.value))
  // The text of a variable's own faults stands above already.
  const named = variables.some(({ error }) => record.error?.endsWith(error))
  const error = named ? 'a variable it uses cannot be compiled' : (record.error ?? '')
  return faultText(io, expression, error, issues)
}

function faultText(io: Io, source: string, error: string, issues: readonly Issue[]): string {
  const { red } = io.colors
  if (issues.length === 0) return `${red('error:')} ${error}`
  return formatIssues(source, issues).replaceAll(/^ERROR:/gm, red('ERROR:'))
}

/** A value as CEL spells it; what has no literal is shown by its type and text. */
export function valueText(value: TaggedValue): string {
  if ('string' in value) return JSON.stringify(value.string)
  if ('int' in value) return value.int
  if ('bool' in value) return String(value.bool)
  if ('null' in value) return 'null'
  if ('uint' in value) return `${value.uint}u`
  if ('double' in value) return doubleText(value.double)
  if ('bytes' in value) return bytesText(value.bytes)
  if ('list' in value) return `[${value.list.map(valueText).join(', ')}]`
  if ('map' in value) return `{${entriesText(value.map)}}`
  if ('type' in value) return value.type
  if ('timestamp' in value) return `timestamp(${JSON.stringify(value.timestamp)})`
  if ('duration' in value) return `duration(${JSON.stringify(value.duration)})`
  if ('message' in value) {
    const fields = value.fields.map(([name, field]) => `${name}: ${valueText(field)}`)
    return `${value.message}{${fields.join(', ')}}`
  }
  if ('opaque' in value) return `${value.opaque}(${JSON.stringify(value.str)})`
  return value.optional === null ? 'optional.none()' : `optional.of(${valueText(value.optional)})`
}

function entriesText(entries: readonly [TaggedValue, TaggedValue][]): string {
  return entries.map(([key, entry]) => `${valueText(key)}: ${valueText(entry)}`).join(', ')
}

function doubleText(text: string): string {
  if (!/\d/.test(text)) return `double("${text}")`
  return /[.e]/.test(text) ? text : `${text}.0`
}

function bytesText(base64: string): string {
  const bytes = fromBase64(base64) ?? new Uint8Array()
  const texts = Array.from(bytes, (byte) => {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
    return plain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  })
  return `b"${texts.join('')}"`
}
