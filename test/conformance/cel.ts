import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '#shared/cel/compile.ts'
import { compose } from '#shared/cel/composition.ts'
import type { FunctionDeclaration } from '#shared/cel/declarations.ts'
import { fn, member, overload } from '#shared/cel/declarations.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { createEnvironment, type Environment } from '#shared/cel/environment.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import type { CompileResult } from '#shared/cel/types.ts'

/** What a suite gave. A recorded deviation that passes counts as failed. */
export interface SuiteResult {
  passed: number
  failed: number
  known: number
  skipped: number
  failures: readonly { id: string; expected: string; got: string }[]
}

interface KubernetesCase {
  source: string
  expr: string
  variables?: { name: string; expr: string }[]
  input: number
  expect: { phase: string; type?: string; error?: string; cost?: number; varCost?: number }
}

interface SpecCase {
  section: string
  group: string
  name: string
  expr: string
  vars?: Record<string, string>
  container?: string
  disableCheck?: boolean
  checkOnly?: boolean
  needsProto?: unknown
  type?: string
  error?: string
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

/** Expressions run by the API server's environment: does it parse, does it check, to which type. */
export async function runCelKubernetes(casesDir: string): Promise<SuiteResult> {
  // The file is the one the cases folder describes.
  const { cases } = JSON.parse(readFileSync(join(casesDir, 'cel', 'kubernetes.json'), 'utf8')) as {
    cases: KubernetesCase[]
  }
  const tally = new Tally(KUBERNETES_DEVIATIONS)
  const environment = createEnvironment({
    profile: 'kubernetes',
    variables: { ...ADMISSION_VARIABLES, params: 'dyn' },
    regex: await loadRegex(),
  })
  for (const each of cases) {
    const id = `${each.source} ${each.input} ${each.expr}`
    const composed = compose(
      environment,
      (each.variables ?? []).map(({ name, expr }) => ({ name, expression: expr })),
    )
    const result = compile(each.expr, composed.environment)
    tally.record(id, front(each.expect), frontOf(result))
  }
  return tally.result()
}

/** Cases of the CEL specification in cel-go's environment. */
export async function runCelSpec(casesDir: string): Promise<SuiteResult> {
  const { cases } = JSON.parse(readFileSync(join(casesDir, 'cel', 'spec.json'), 'utf8')) as {
    cases: SpecCase[]
  }
  const tally = new Tally(SPEC_DEVIATIONS)
  for (const each of cases) {
    if (each.needsProto !== undefined) {
      tally.skipped++
      continue
    }
    const id = `${each.section}/${each.group}/${each.name}`
    const environment = specEnvironment(each)
    if (each.disableCheck) continue
    const result = compile(each.expr, environment)
    const expected = each.celgo ?? { phase: 'ok', ...(each.type ? { type: each.type } : {}) }
    tally.record(
      id,
      front(expected),
      expected.type === undefined ? phaseOf(result) : frontOf(result),
    )
  }
  return tally.result()
}

function specEnvironment(each: SpecCase): Environment {
  const declare: FunctionDeclaration[] = (each.functions ?? []).map(({ name, overloads }) =>
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

/** What the front end is answerable for: parse and check faults with their message, or the type. */
function front(expect: { phase: string; type?: string; error?: string }): string {
  if (expect.phase === 'parse') return 'parse'
  if (expect.phase === 'check') return `check ${(expect.error ?? '').split('\n')[0]}`
  return expect.type === undefined ? 'ok' : `ok ${expect.type}`
}

function frontOf(result: CompileResult): string {
  return result.ok ? `ok ${result.checked.type}` : phaseOf(result)
}

function phaseOf(result: CompileResult): string {
  if (result.ok) return 'ok'
  const [issue] = result.issues
  if (issue?.phase !== 'check') return 'parse'
  return `check ERROR: <input>:${issue.line}:${issue.column}: ${issue.message}`
}

const KUBERNETES_DEVIATIONS: ReadonlyMap<string, string> = new Map()
const SPEC_DEVIATIONS: ReadonlyMap<string, string> = new Map()
