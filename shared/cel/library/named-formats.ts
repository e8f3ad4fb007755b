import { type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { type CelValue, NONE, Opaque, Optional, utf8Length } from '../values.ts'
import { requestUrlFault } from './url.ts'

/** What is wrong with a text, nothing when it has the format. */
type Validate = (text: string) => string[]

/** A named format such as `dns1123Label`. */
export class NamedFormat extends Opaque {
  readonly type = 'kubernetes.NamedFormat'
  readonly key: string
  /** Length of the longest pattern the API server may match with; what `validate` costs depends on it. */
  readonly maxRegexSize: number
  readonly validate: Validate
  constructor(key: string, maxRegexSize: number, validate: Validate) {
    super()
    this.key = key
    this.maxRegexSize = maxRegexSize
    this.validate = validate
  }
}

const LABEL_1123 = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const SUBDOMAIN_1123 = `${LABEL_1123}(\\.${LABEL_1123})*`
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const LABEL_VALUE = `(${QUALIFIED})?`

const EDGES = 'and must start and end with an alphanumeric character'
const WORDS = {
  label1123: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ${EDGES}`,
  subdomain1123: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', ${EDGES}`,
  label1035:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  qualified: `must consist of alphanumeric characters, '-', '_' or '.', ${EDGES}`,
  labelValue: `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ${EDGES}`,
}

/** True when the whole text matches one of the fixed patterns above: all of them are matched in linear time. */
function matches(pattern: string, text: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(text) && !text.endsWith('\n')
}

/** Kubernetes' own words for a text that does not match, with examples. */
function mismatch(words: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ')
  return `${words} (e.g. ${shown}regex used for validation is '${pattern}')`
}

function tooLong(text: string, limit: number, unit: 'bytes' | 'characters'): string[] {
  return utf8Length(text) > limit ? [`must be no more than ${limit} ${unit}`] : []
}

function dns1123Label(text: string): string[] {
  const faults = tooLong(text, 63, 'characters')
  if (matches(LABEL_1123, text)) return faults
  if (matches(SUBDOMAIN_1123, text)) return [...faults, 'must not contain dots']
  return [...faults, mismatch(WORDS.label1123, LABEL_1123, 'my-name', '123-abc')]
}

function dns1123Subdomain(text: string): string[] {
  const faults = tooLong(text, 253, 'characters')
  if (matches(SUBDOMAIN_1123, text)) return faults
  return [...faults, mismatch(WORDS.subdomain1123, SUBDOMAIN_1123, 'example.com')]
}

function dns1035Label(text: string): string[] {
  const faults = tooLong(text, 63, 'characters')
  if (matches(LABEL_1035, text)) return faults
  return [...faults, mismatch(WORDS.label1035, LABEL_1035, 'my-name', 'abc-123')]
}

const QUALIFIED_EXAMPLES = ['MyName', 'my.name', '123-abc']

function qualifiedName(text: string): string[] {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) {
    const words = `a valid label key ${WORDS.qualified}`
    return [
      `${mismatch(words, QUALIFIED, ...QUALIFIED_EXAMPLES)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const prefix = parts.length === 2 ? parts[0] : undefined
  return [...prefixFaults(prefix), ...nameFaults(name).map((fault) => `name part ${fault}`)]
}

function prefixFaults(prefix: string | undefined): string[] {
  if (prefix === undefined) return []
  const faults = prefix === '' ? ['must be non-empty'] : dns1123Subdomain(prefix)
  return faults.map((fault) => `prefix part ${fault}`)
}

function nameFaults(name: string): string[] {
  const faults = name === '' ? ['must be non-empty'] : tooLong(name, 63, 'bytes')
  if (matches(QUALIFIED, name)) return faults
  return [...faults, mismatch(WORDS.qualified, QUALIFIED, ...QUALIFIED_EXAMPLES)]
}

function labelValue(text: string): string[] {
  const faults = tooLong(text, 63, 'bytes')
  if (matches(LABEL_VALUE, text)) return faults
  return [...faults, mismatch(WORDS.labelValue, LABEL_VALUE, 'MyValue', 'my_value', '12345')]
}

/** The same for a text that something will be appended to: a trailing dash does no harm. */
function asPrefix(validate: Validate): Validate {
  return (text) => validate(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text)
}

function uri(text: string): string[] {
  const fault = requestUrlFault(text)
  return fault === undefined ? [] : [fault]
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const TIME = /^(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)$/s

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

function isDateTime(text: string): boolean {
  const [date = '', time = '', ...rest] = text.toLowerCase().split('t')
  const parts = TIME.exec(time)
  if (rest.length > 0 || parts === null || !isDate(date)) return false
  return Number(parts[1]) <= 23 && Number(parts[2]) <= 59 && Number(parts[3]) <= 59
}

/** A check that says only yes or no, with its message. */
function plain(holds: (text: string) => boolean, message: string): Validate {
  return (text) => (holds(text) ? [] : [message])
}

const FORMATS: readonly [string, number, Validate][] = [
  ['dns1123Label', 30, dns1123Label],
  ['dns1123Subdomain', 60, dns1123Subdomain],
  ['dns1035Label', 30, dns1035Label],
  ['qualifiedName', 60, qualifiedName],
  ['dns1123LabelPrefix', 30, asPrefix(dns1123Label)],
  ['dns1123SubdomainPrefix', 60, asPrefix(dns1123Subdomain)],
  ['dns1035LabelPrefix', 30, asPrefix(dns1035Label)],
  ['labelValue', 40, labelValue],
  ['uri', 1103, uri],
  ['uuid', 72, plain((text) => UUID.test(text), 'does not match the UUID format')],
  ['byte', 84, plain((text) => text !== '' && BASE64.test(text), 'invalid base64')],
  ['date', 72, plain(isDate, 'invalid date')],
  ['datetime', 72, plain(isDateTime, 'invalid datetime')],
]

const BY_NAME = new Map(
  FORMATS.map(([name, size, validate]) => [name, new NamedFormat(name, size, validate)]),
)

function named(name: string): Optional {
  const known = BY_NAME.get(name)
  return known === undefined ? NONE : new Optional(known)
}

function validate(format: NamedFormat, text: string): CelValue {
  const faults = format.validate(text)
  return faults.length === 0 ? NONE : new Optional(faults)
}

const format: Guard<NamedFormat> = instance(NamedFormat)

/** The API server's named string formats. */
export const namedFormats: Library = {
  'format-named': overload('format.named', [string], named),
  'format-validate': overload('validate', [format, string], validate),
  ...Object.fromEntries(
    Array.from(BY_NAME, ([name, value]) => [
      `format.${name}`,
      overload(`format.${name}`, [], () => value),
    ]),
  ),
}
