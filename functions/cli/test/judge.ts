import type { JsonObject } from '#shared/admission/types.ts'
import { type Expectation, type ExpectedResult, OTHER_FLAGS } from './document.ts'
import type { Verdicts } from './engine.ts'
import { metadataOf, pluralOf, textAt } from './requests.ts'

/** One policy and one resource of a test: what was expected and what came out. */
export interface Row {
  policy: string
  /** `kind/name`, or `kind/namespace/name`. */
  resource: string
  expected: Expectation
  /** `excluded`: the policy is not about the resource. */
  got: Expectation | 'excluded' | 'missing'
  ok: boolean
  /** What the policy said, or why there is nothing to compare. */
  message: string
}

/** A resource as it was judged. */
export interface Judged {
  object: JsonObject
  /** Of a payload, its file. */
  name?: string
  verdicts: Verdicts
}

/** What the rows of a test are made from. */
export interface Trial {
  /** Keys of the policies that were tested: `name`, `namespace/name`. */
  keys: readonly string[]
  /** Names of policies of other kinds in the same files. */
  others: ReadonlySet<string>
  /** Keys of policies whose failures are only warnings (`policies.kyverno.io/scored: "false"`). */
  unscored: ReadonlySet<string>
  judged: readonly Judged[]
  /** A resource that no policy is about satisfies neither pass nor skip. */
  strict: boolean
}

/** True for a result that is about a policy of another kind. */
export function isOfAnother(result: ExpectedResult, { keys, others }: Trial): boolean {
  if (OTHER_FLAGS.some((flag) => result[flag] === true)) return true
  if (result.isImageValidatingPolicy === true) return false
  return keysNamed(result, keys).length === 0 && others.has(result.policy)
}

/** The rows of one result: at least one, so that a name nobody has cannot go unseen. */
export function rowsOf(result: ExpectedResult, trial: Trial): Row[] {
  const expected = result.result ?? result.status ?? 'pass'
  const nothing = (message: string, resource = '-'): Row => ({
    policy: result.policy,
    resource,
    expected,
    got: 'missing',
    ok: false,
    message,
  })
  const unsupported = (['patchedResource', 'patchedResources', 'generatedResource'] as const).find(
    (field) => result[field] !== undefined,
  )
  if (unsupported !== undefined)
    return [nothing(`${unsupported} is not supported for image policies`)]
  const keys = keysNamed(result, trial.keys)
  if (keys.length === 0) {
    return [
      nothing(
        `no image policy of the test is named ${result.policy}; it has ${trial.keys.join(', ') || 'none'}`,
      ),
    ]
  }
  const wanted = selectorsOf(result)
  const rows = wanted.flatMap(({ text, matches }) => {
    const found = trial.judged.filter(matches)
    if (found.length === 0) return [nothing(`no resource of the test is ${text}`, text)]
    return keys.flatMap((key) => found.map((each) => rowOf(key, each, expected, trial)))
  })
  return rows.length > 0 ? rows : [nothing('the test has no resources')]
}

function rowOf(
  key: string,
  judged: Judged,
  expected: Expectation,
  { strict, unscored }: Trial,
): Row {
  const about = { policy: key, resource: nameOf(judged), expected }
  const verdict = judged.verdicts.find(({ policy }) => policy === key)
  if (verdict === undefined) {
    const ok = !strict && (expected === 'pass' || expected === 'skip')
    return { ...about, got: 'excluded', ok, message: 'the policy is not about this resource' }
  }
  const got = verdict.status === 'fail' && unscored.has(key) ? 'warn' : verdict.status
  return { ...about, got, ok: got === expected, message: verdict.message }
}

/** Policies that a result names: by key, or by name alone. */
function keysNamed({ policy, namespace }: ExpectedResult, keys: readonly string[]): string[] {
  const key = namespace === undefined ? policy : `${namespace}/${policy}`
  if (keys.includes(key)) return [key]
  return keys.filter((each) => each === policy || each.endsWith(`/${policy}`))
}

interface Selector {
  text: string
  matches: (judged: Judged) => boolean
}

/** Which resources a result is about: those it lists, or all of its kind. */
function selectorsOf(result: ExpectedResult): Selector[] {
  const { kind, resources = [], resourceSpecs = [], resource } = result
  const isKind = ({ object, name }: Judged) =>
    kind === undefined || kind === '' || name !== undefined || textAt(object, 'kind') === kind
  const named = [...resources, ...(resource === undefined ? [] : [resource])].map(
    (text): Selector => ({
      text: kind === undefined ? text : `${kind}/${text}`,
      matches: (judged) => isKind(judged) && isNamed(judged, text),
    }),
  )
  const specified = resourceSpecs.map(
    (spec): Selector => ({
      text: `${spec.resource ?? kind ?? 'resource'}/${spec.name}`,
      matches: (judged) => isKind(judged) && fits(judged.object, spec),
    }),
  )
  const all = [...named, ...specified]
  return all.length > 0 ? all : [{ text: kind ?? 'resource', matches: isKind }]
}

function isNamed({ object, name: file }: Judged, text: string): boolean {
  const metadata = metadataOf(object)
  const name = textAt(metadata, 'name') ?? textAt(metadata, 'generateName')
  const namespace = textAt(metadata, 'namespace') ?? 'default'
  return text === file || text === name || text === `${namespace}/${name}`
}

function fits(
  object: JsonObject,
  spec: NonNullable<ExpectedResult['resourceSpecs']>[number],
): boolean {
  const [version = '', group = ''] = (textAt(object, 'apiVersion') ?? '').split('/').reverse()
  const metadata = metadataOf(object)
  return (
    textAt(metadata, 'name') === spec.name &&
    (spec.namespace === undefined ||
      (textAt(metadata, 'namespace') ?? 'default') === spec.namespace) &&
    (spec.group === undefined || spec.group === group) &&
    (spec.version === undefined || spec.version === version) &&
    (spec.resource === undefined || spec.resource === pluralOf(textAt(object, 'kind') ?? ''))
  )
}

function nameOf({ object, name: file }: Judged): string {
  if (file !== undefined) return file
  const metadata = metadataOf(object)
  const name = textAt(metadata, 'name') ?? textAt(metadata, 'generateName') ?? '-'
  const namespace = textAt(metadata, 'namespace')
  return [
    textAt(object, 'kind') ?? '-',
    ...(namespace === undefined ? [] : [namespace]),
    name,
  ].join('/')
}
