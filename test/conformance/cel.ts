import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile, compileUnchecked } from '#shared/cel/compile.ts'
import { compose } from '#shared/cel/composition.ts'
import { type FunctionDeclaration, fn, member, overload } from '#shared/cel/declarations.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { createEnvironment, type Environment } from '#shared/cel/environment.ts'
import type { Activation } from '#shared/cel/frame.ts'
import { kubernetesLibrary, specLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import type { Outcome, Program } from '#shared/cel/program.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { fromTagged, sameTagged, type TaggedValue, toTagged } from '#shared/cel/tagged.ts'
import type { CheckedExpression, CompileResult, RegexEngine } from '#shared/cel/types.ts'
import { type NamedProgram, Variables } from '#shared/cel/variables.ts'
import { KUBERNETES_DEVIATIONS, SPEC_DEVIATIONS } from '#test/conformance/cel-deviations.ts'

/** What a suite gave. A recorded deviation that passes counts as failed. */
export interface SuiteResult {
  passed: number
  failed: number
  known: number
  /** Cases this implementation is not about. */
  skipped: number
  failures: readonly { id: string; expected: string; got: string }[]
}

interface Expected {
  phase: string
  type?: string
  value?: TaggedValue
  error?: string
  cost?: number
  varCost?: number
}

interface KubernetesCase {
  source: string
  expr: string
  variables?: { name: string; expr: string }[]
  input: number
  expect: Expected
}

interface SpecCase {
  section: string
  group: string
  name: string
  expr: string
  vars?: Record<string, string>
  bindings?: Record<string, TaggedValue>
  container?: string
  disableCheck?: boolean
  checkOnly?: boolean
  needsProto?: unknown
  value?: TaggedValue
  error?: string
  type?: string
  functions?: {
    name: string
    overloads: { id: string; params: string[]; result: string; method: boolean }[]
  }[]
  celgo?: { phase: string; type?: string; error?: string; cost?: number }
}

class Tally {
  passed = 0
  failed = 0
  known = 0
  skipped = 0
  readonly failures: { id: string; expected: string; got: string }[] = []
  readonly #known: ReadonlyMap<string, string>

  constructor(known: ReadonlyMap<string, string>) {
    this.#known = known
  }

  /** Compares two texts of one outcome. */
  record(id: string, expected: string, got: string): void {
    const deviates = this.#known.has(id)
    if ((expected === got) !== deviates) {
      if (deviates) this.known++
      else this.passed++
      return
    }
    this.failed++
    this.failures.push({ id, expected, got: deviates ? `${got} (recorded as a deviation)` : got })
  }

  result(): SuiteResult {
    const { passed, failed, known, skipped, failures } = this
    return { passed, failed, known, skipped, failures }
  }
}

function read<T>(casesDir: string, file: string): T {
  // The folder describes the format; a file of another one fails the first case that reads it.
  return JSON.parse(readFileSync(join(casesDir, 'cel', file), 'utf8')) as T
}

// --- the API server's environment

/** Expressions run by the API server's environment: phase, type, first fault, value, cost. */
export async function runCelKubernetes(casesDir: string): Promise<SuiteResult> {
  const { cases, inputs } = read<{ cases: KubernetesCase[]; inputs: Activation[] }>(
    casesDir,
    'kubernetes.json',
  )
  const tally = new Tally(KUBERNETES_DEVIATIONS)
  const regex = await loadRegex()
  const environment = createEnvironment({
    profile: 'kubernetes',
    variables: { ...ADMISSION_VARIABLES, params: 'dyn' },
    regex,
  })
  for (const each of cases) {
    const id = `${each.source} ${each.input} ${each.expr}`
    tally.record(
      id,
      expectedText(each.expect),
      kubernetesText(each, inputs[each.input] ?? {}, environment, regex),
    )
  }
  return tally.result()
}

function kubernetesText(
  each: KubernetesCase,
  activation: Activation,
  environment: Environment,
  regex: RegexEngine,
): string {
  const listed = (each.variables ?? []).map(({ name, expr }) => ({ name, expression: expr }))
  const composed = compose(environment, listed)
  const result = compile(each.expr, composed.environment)
  if (!result.ok) return faultText(result)
  const options = { profile: 'kubernetes', implementations: kubernetesLibrary, regex } as const
  const planned = plan(result.checked, options)
  if (!planned.ok) return `program ${result.checked.type}`
  const programs = composed.variables.map(({ name, result: compiled }): NamedProgram => {
    if (!compiled.ok) return { name, program: { fault: faultText(compiled) } }
    const made = plan(compiled.checked, options)
    return { name, program: made.ok ? made.program : { fault: made.message } }
  })
  const variables = new Variables(programs, activation)
  const outcome = planned.program.evaluate({ ...activation, variables })
  const varCost = listed.length === 0 ? undefined : variables.cost
  return outcomeText(result.checked.type, outcome, each.expect, varCost)
}

// --- the CEL specification

/** Cases of the CEL specification in cel-go's environment, with cel-go's own type, phase and cost. */
export async function runCelSpec(casesDir: string): Promise<SuiteResult> {
  const { cases } = read<{ cases: SpecCase[] }>(casesDir, 'spec.json')
  const tally = new Tally(SPEC_DEVIATIONS)
  const regex = await loadRegex()
  const seen = new Map<string, number>()
  for (const each of cases) {
    const name = `${each.section}/${each.group}/${each.name}`
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    if (each.needsProto !== undefined) {
      tally.skipped++
      continue
    }
    const expected = specExpected(each)
    tally.record(
      count === 1 ? name : `${name}#${count}`,
      expectedText(expected),
      specText(each, expected, regex),
    )
  }
  return tally.result()
}

/** The specification's value, and cel-go's phase, type and cost. */
function specExpected(each: SpecCase): Expected {
  const { celgo } = each
  const type = celgo?.type ?? each.type
  return {
    phase: celgo?.phase ?? (each.error === undefined ? 'ok' : 'eval'),
    ...(each.value === undefined || each.checkOnly ? {} : { value: each.value }),
    ...(type === undefined || each.disableCheck ? {} : { type }),
    ...(celgo?.cost === undefined ? {} : { cost: celgo.cost }),
    ...(celgo?.error === undefined ? {} : { error: celgo.error }),
  }
}

function specText(each: SpecCase, expected: Expected, regex: RegexEngine): string {
  const environment = specEnvironment(each)
  const checked = specProgram(each, environment)
  if ('fault' in checked) return checked.fault
  if (each.checkOnly) return expected.type === undefined ? 'ok' : `ok ${checked.type}`
  const planned = plan(checked, { profile: 'spec', implementations: specLibrary, regex })
  const type = expected.type === undefined ? '' : checked.type
  if (!planned.ok) return ['program', type].join(' ').trim()
  return outcomeText(type, evaluate(planned.program, each), expected, undefined)
}

function evaluate(program: Program, each: SpecCase): Outcome {
  const bindings = Object.entries(each.bindings ?? {})
  return program.evaluate(
    Object.fromEntries(bindings.map(([name, value]) => [name, fromTagged(value)])),
  )
}

function specProgram(
  each: SpecCase,
  environment: Environment,
): CheckedExpression | { fault: string } {
  const result = each.disableCheck
    ? compileUnchecked(each.expr, environment)
    : compile(each.expr, environment)
  return result.ok ? result.checked : { fault: faultText(result) }
}

function specEnvironment(each: SpecCase): Environment {
  const declare = (each.functions ?? []).map(
    ({ name, overloads }): FunctionDeclaration =>
      fn(
        name,
        ...overloads.map(({ id, params, result, method }) =>
          (method ? member : overload)(id, params, result),
        ),
      ),
  )
  return createEnvironment({
    profile: 'spec',
    variables: each.vars ?? {},
    ...(each.container === undefined ? {} : { container: each.container }),
    declare,
  })
}

// --- outcomes as text

function expectedText(expect: Expected): string {
  if (expect.phase === 'parse') return 'parse'
  if (expect.phase === 'check') return checkText((expect.error ?? '').split('\n')[0] ?? '')
  const type = expect.type === undefined ? [] : [expect.type]
  if (expect.phase === 'program') return ['program', ...type].join(' ')
  const costs = [expect.cost, expect.varCost].filter((cost) => cost !== undefined)
  const value = expect.value === undefined ? [] : [JSON.stringify(expect.value)]
  return [expect.phase, ...type, ...value, ...costs.map((cost) => `cost ${cost}`)].join(' ')
}

/** The same text as expected wherever the outcome is the same. */
function outcomeText(
  type: string,
  outcome: Outcome,
  expect: Expected,
  varCost: number | undefined,
): string {
  const ok = outcome.kind === 'value'
  const parts = [ok ? 'ok' : 'eval', ...(type === '' ? [] : [type])]
  if (expect.value !== undefined && ok) {
    const value = toTagged(outcome.value)
    parts.push(JSON.stringify(sameTagged(value, expect.value) ? expect.value : value))
  }
  if (expect.cost !== undefined) parts.push(`cost ${outcome.cost}`)
  if (expect.varCost !== undefined) parts.push(`cost ${varCost ?? 0}`)
  if (ok || expect.phase !== 'ok') return parts.join(' ')
  return `${parts.join(' ')} (${outcome.message})`
}

/** `parse`, or `check` with the first fault as cel-go prints it. */
function faultText(result: CompileResult & { ok: false }): string {
  const [issue] = result.issues
  if (issue?.phase !== 'check') return 'parse'
  return checkText(`ERROR: <input>:${issue.line}:${issue.column}: ${issue.message}`)
}

/** The first fault; why a constant address is none is in each system's own words. */
function checkText(fault: string): string {
  return `check ${fault.replace(/(invalid (?:ip|cidr) argument).*/, '$1')}`
}
