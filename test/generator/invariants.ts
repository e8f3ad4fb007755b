import { compile, formatIssues, parseOnly } from '#shared/cel/compile.ts'
import type { Environment } from '#shared/cel/environment.ts'
import type { Activation } from '#shared/cel/frame.ts'
import type { Library } from '#shared/cel/implementation.ts'
import { plan } from '#shared/cel/plan.ts'
import { print } from '#shared/cel/print.ts'
import type { Outcome } from '#shared/cel/program.ts'
import { toTagged } from '#shared/cel/tagged.ts'
import { DYN, isDyn, isOptional, type Type } from '#shared/cel/type.ts'
import type {
  CheckedExpression,
  CompileResult,
  Issue,
  Profile,
  RegexEngine,
} from '#shared/cel/types.ts'
import { sameTree } from '#shared/cel/unexpand.ts'
import { type CelValue, isList, isMap, mapEntries, Optional, typeName } from '#shared/cel/values.ts'

/** Where expressions are compiled and run. */
export interface Setting {
  profile: Profile
  environment: Environment
  implementations: Library
  regex: RegexEngine
  activation: Activation
}

/** What became of an expression, and which invariants it broke: none, one hopes. */
export interface Examined {
  source: string
  phase: 'parse' | 'check' | 'program' | 'ok' | 'eval'
  type?: string
  /** The value as JSON with its type, or the fault. */
  result: string
  cost?: number
  broken: readonly string[]
}

/** Cost a run may have here: enough for nearly everything, and quickly spent. */
const LIMIT = 100_000

/** Compiles and runs an expression in every way there is, and compares. */
export function examine(source: string, setting: Setting): Examined {
  const broken: string[] = []
  const expect = (holds: boolean, what: string) => {
    if (!holds) broken.push(what)
  }
  const result = compile(source, setting.environment)
  checkPrinted(source, setting, expect)
  if (!result.ok) {
    checkIssues(source, result.issues, expect)
    const [first] = result.issues
    const phase = first?.phase ?? 'check'
    return { source, phase, result: first?.message ?? '', broken }
  }
  const { checked } = result
  const planned = planOf(checked, setting)
  if (!planned.ok) {
    return { source, phase: 'program', type: checked.type, result: planned.message, broken }
  }
  const run = (limit: number) => planned.program.evaluate(setting.activation, { limit })
  const outcome = run(LIMIT)
  const again = rerun(checked, setting)
  expect(!/internal error: \w*Error/.test(textOf(outcome)), textOf(outcome))
  expect(textOf(outcome) === textOf(run(LIMIT)), 'the second run differs from the first')
  expect(textOf(outcome) === again, `reloaded from JSON it gives ${again}`)
  checkLimits(outcome, run, expect)
  // `flatten` of a dynamic list has any type the context wants, as in cel-go.
  if (outcome.kind === 'value' && !source.includes('flatten')) {
    const type = setting.environment.type(checked.type)
    expect(conforms(outcome.value, type), `${textOf(outcome)} is not of type ${checked.type}`)
  }
  const reprinted = rerunPrinted(checked, setting)
  expect(reprinted === `${checked.type} ${textOf(outcome)}`, `printed it gives ${reprinted}`)
  const phase = outcome.kind === 'value' ? 'ok' : 'eval'
  const { cost } = outcome
  return { source, phase, type: checked.type, result: textOf(outcome), cost, broken }
}

type Expect = (holds: boolean, what: string) => void

function planOf(checked: CheckedExpression, { profile, implementations, regex }: Setting) {
  return plan(checked, { profile, implementations, regex })
}

function textOf(outcome: Outcome): string {
  const result =
    outcome.kind === 'value' ? JSON.stringify(toTagged(outcome.value)) : outcome.message
  return `${result} at ${outcome.cost}`
}

function rerun(checked: CheckedExpression, setting: Setting): string {
  // A checked expression is plain JSON.
  const loaded = JSON.parse(JSON.stringify(checked)) as CheckedExpression
  const planned = planOf(loaded, setting)
  if (!planned.ok) return planned.message
  return textOf(planned.program.evaluate(setting.activation, { limit: LIMIT }))
}

function rerunPrinted(checked: CheckedExpression, setting: Setting): string {
  const printed = print(checked.ast)
  const result: CompileResult = compile(printed, setting.environment)
  if (!result.ok) return `${printed}: ${result.issues[0]?.message}`
  return `${result.checked.type} ${rerun(result.checked, setting)}`
}

/** parse ∘ print is the identity, apart from ids and ranges. */
function checkPrinted(source: string, { environment }: Setting, expect: Expect): void {
  const parsed = parseOnly(source, environment)
  if (!parsed.ok) return
  const printed = print(parsed.ast)
  const again = parseOnly(printed, environment)
  expect(again.ok && sameTree(parsed.ast, again.ast), `printed as ${printed} it is another tree`)
}

/** Every issue is in the source, and can be shown. */
function checkIssues(source: string, issues: readonly Issue[], expect: Expect): void {
  expect(issues.length > 0, 'refused without an issue')
  for (const { offset, line, column, message } of issues) {
    const before = source.slice(0, offset).split('\n')
    expect(offset >= 0 && offset <= source.length, `${message}: offset ${offset}`)
    expect(line === before.length, `${message}: line ${line}`)
    expect(column === [...(before.at(-1) ?? '')].length + 1, `${message}: column ${column}`)
  }
  expect(formatIssues(source, issues).startsWith('ERROR: <input>:'), 'issues cannot be shown')
}

/** A run stops at the unit that is too much, and not before. */
function checkLimits(outcome: Outcome, run: (limit: number) => Outcome, expect: Expect): void {
  if (outcome.kind === 'error' && outcome.code === 'cost') {
    expect(outcome.cost > LIMIT, `stopped at ${outcome.cost}`)
    return
  }
  expect(outcome.cost >= 0 && Number.isInteger(outcome.cost), `cost ${outcome.cost}`)
  expect(outcome.cost <= LIMIT, `cost ${outcome.cost} is past the limit`)
  expect(textOf(run(outcome.cost)) === textOf(outcome), 'with just enough it differs')
  if (outcome.cost === 0) return
  const short = run(outcome.cost - 1)
  expect(short.kind === 'error' && short.code === 'cost', 'one unit less is enough as well')
}

/** True when the checker promised no more than the value keeps. */
function conforms(value: CelValue, type: Type): boolean {
  if (isDyn(type) || type.kind === 'param') return true
  if (isOptional(type)) {
    const [inner] = type.params
    // `or` hands on whatever its argument is, as cel-go does.
    if (!(value instanceof Optional)) return true
    return value.value === undefined || inner === undefined || conforms(value.value, inner)
  }
  if (value === null) return type.kind === 'null' || !SCALAR.has(type.kind) || type.nullable
  if (type.kind === 'list') {
    const [element = DYN] = type.params
    return isList(value) && [...value].every((each) => conforms(each, element))
  }
  if (type.kind === 'map') {
    const [key, item] = type.params
    if (!isMap(value) || key === undefined || item === undefined) return isMap(value)
    return [...mapEntries(value)].every(([k, v]) => conforms(k, key) && conforms(v, item))
  }
  return typeName(value) === type.name
}

const SCALAR: ReadonlySet<string> = new Set(
  'bool int uint double string bytes list map type'.split(' '),
)
