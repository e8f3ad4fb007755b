import { canonicalJson, type JsonValue } from '../json.ts'
import { compileExpressions } from './compile.ts'
import type { SourceObject } from './documents.ts'
import { isExpired } from './exemption.ts'
import { namespacedMetadata } from './metadata.ts'
import { addNote } from './notes.ts'
import type { LoadOptions } from './options.ts'
import { documentOf, evaluationMode, glob, JSON_MODE, matchConditions } from './schema.ts'
import {
  defaulted,
  type Faults,
  formatPath,
  listOf,
  listRule,
  mapOf,
  type ObjectOf,
  object,
  oneOf,
  optional,
  own,
  type Path,
  required,
  type Shape,
  text,
} from './shape.ts'
import type { CompiledException } from './types.ts'

/** An exception with what it refers to, not yet attached to anything. */
export interface LoadedException {
  exception: CompiledException
  namespace: string
  refs: readonly PolicyRef[]
  /** Says everything about it that a verdict depends on: part of the hash of the policies it is attached to. */
  content: string
}

/** A policy as an exception names it. */
export interface PolicyRef {
  kind: string
  name: string
}

/** A text that must not be empty, in upstream's words. */
function specified(what: string): Shape<string> {
  return (value, path, faults) => {
    const read = text(value, path, faults)
    return read === '' ? faults.add(path, `Invalid value: "": must specify ${what}`) : read
  }
}

const policyRefs = listRule(
  listOf(
    object({
      kind: required(specified('policy kind'), 'must specify policy kind'),
      name: required(specified('policy name'), 'must specify policy name'),
    }),
  ),
  (_refs, path, faults, count) => {
    if (count === 0) faults.add(path, 'Invalid value: []: must specify at least one policy ref')
  },
)

/** Epoch milliseconds of an RFC 3339 time. */
const time: Shape<number> = (value, path, faults) => {
  const read = text(value, path, faults)
  if (read === undefined) return undefined
  const found = parseTime(read)
  const example = 'must be a time such as 2027-01-31T00:00:00Z'
  return found ?? faults.add(path, `Invalid value: ${JSON.stringify(read)}: ${example}`)
}

const TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

function parseTime(written: string): number | undefined {
  const [, year, month, day] = TIME.exec(written) ?? []
  // The day before the first of the next month is the last of this one.
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return day === undefined || Number(day) > days ? undefined : Date.parse(written)
}

const specFields = {
  policyRefs: required(policyRefs, 'must specify at least one policy ref'),
  matchConditions: defaulted(matchConditions, () => []),
  images: defaulted(listOf(filled(glob)), () => []),
  allowedValues: defaulted(listOf(text), () => []),
  reportResult: defaulted(oneOf('skip', 'pass'), () => 'skip' as const),
  expiresAt: optional(time),
  evaluationMode: optional(evaluationMode),
  properties: optional(mapOf(text)),
}

type ExceptionSpec = ObjectOf<typeof specFields>

/** An empty pattern is about no image: whoever writes it means something else. */
function filled(shape: Shape<string>): Shape<string> {
  return (value, path, faults) =>
    value === '' ? faults.add(path, 'Required value') : shape(value, path, faults)
}

/**
 * An exception (image-validating-policy.md 1.7); nothing when it has a fault, or has expired. Its expressions see what the request has, and
 * stay as they are for Pod controllers. `source` is `file.yaml:12`.
 */
export async function loadException(
  { value, path }: SourceObject,
  source: string,
  options: LoadOptions,
  { faults, notes }: { faults: Faults; notes: Faults },
): Promise<LoadedException | undefined> {
  const metadata = namespacedMetadata('PolicyException', options.defaultNamespace)
  const read = documentOf(metadata, object(specFields))(value, path, faults)
  const specPath = [...path, 'spec']
  const written = own(value, 'spec')
  const compiled = await compileExpressions(written, specPath, faults)
  if (read?.spec.evaluationMode === 'JSON' && options.jsonMode !== true) {
    faults.add([...specPath, 'evaluationMode'], JSON_MODE, 'POLICY_UNSUPPORTED')
  }
  if (read === undefined || faults.count > 0) return undefined
  const { spec } = read
  const { name, namespace } = read.metadata
  if (options.now !== undefined && isExpired(spec, options.now)) {
    addNote(notes, [...specPath, 'expiresAt'], 'the exception has expired, so it is left out')
    return undefined
  }
  addScopeNote(spec, specPath, notes)
  const conditions = spec.matchConditions.map((condition, index) => {
    const at = formatPath([...specPath, 'matchConditions', index, 'expression'])
    const expression = compiled.get(at)
    if (expression === undefined) throw new TypeError(`no checked expression at ${at}`)
    return { name: condition.name, expression }
  })
  const { images, allowedValues, reportResult, expiresAt } = spec
  const exception: CompiledException = {
    name: `${namespace}/${name}`,
    source,
    matchConditions: conditions,
    ...(images.length === 0 ? {} : { images }),
    ...(allowedValues.length === 0 ? {} : { allowedValues }),
    reportResult,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  }
  // What was read from JSON values is JSON, and so is what `defaulted` adds.
  const content = canonicalJson({ name: exception.name, spec: spec as unknown as JsonValue })
  return { exception, namespace, refs: spec.policyRefs, content }
}

function addScopeNote(spec: ExceptionSpec, path: Path, notes: Faults): void {
  const { matchConditions: conditions, images, allowedValues } = spec
  if (conditions.length + images.length + allowedValues.length > 0) return
  const message =
    'without matchConditions, images and allowedValues it exempts every request from the policies it names'
  addNote(notes, path, message)
}
