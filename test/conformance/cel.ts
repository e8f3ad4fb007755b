import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toCelRequest } from '#functions/cli/cel/request.ts'
import { type CelRecord, CelSession } from '#functions/cli/cel/session.ts'
import { sameTagged, type TaggedValue } from '#shared/cel/tagged.ts'
import { type JsonValue, parseJson } from '#shared/json.ts'
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

/** Beside these members, what `countersign cel` reads. */
interface KubernetesCase {
  source: string
  expr: string
  input: number
  expect: Expected
}

interface SpecCase {
  section: string
  group: string
  name: string
  disableCheck?: boolean
  checkOnly?: boolean
  needsProto?: unknown
  value?: TaggedValue
  error?: string
  type?: string
  celgo?: { phase: string; type?: string; error?: string; cost?: number }
}

/** Counts what came out as expected, what did not, and what is recorded to come out differently. */
export class Tally {
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
  const text = readFileSync(join(casesDir, 'cel', file), 'utf8')
  // The folder describes the format; a file of another one fails the first case that reads it.
  return parseJson(text) as unknown as T
}

// --- the API server's environment

/** Expressions run by the API server's environment: phase, type, first fault, value, cost. */
export async function runCelKubernetes(casesDir: string): Promise<SuiteResult> {
  const { cases, inputs } = read<{ cases: KubernetesCase[]; inputs: JsonValue[] }>(
    casesDir,
    'kubernetes.json',
  )
  const tally = new Tally(KUBERNETES_DEVIATIONS)
  const session = await CelSession.open({ now: Date.now })
  for (const each of cases) {
    const { source, expr, input, expect } = each
    const request = { ...each, input: inputs[input] ?? null } as unknown as JsonValue
    const { record } = session.run(toCelRequest(request, 'kubernetes'))
    tally.record(`${source} ${input} ${expr}`, expectedText(expect), recordText(record, expect))
  }
  return tally.result()
}

// --- the CEL specification

/** Cases of the CEL specification in cel-go's environment, with cel-go's own type, phase and cost. */
export async function runCelSpec(casesDir: string): Promise<SuiteResult> {
  const { cases } = read<{ cases: SpecCase[] }>(casesDir, 'spec.json')
  const tally = new Tally(SPEC_DEVIATIONS)
  const session = await CelSession.open({ now: Date.now })
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
    const { record } = session.run(toCelRequest(each as unknown as JsonValue, 'spec'))
    const id = count === 1 ? name : `${name}#${count}`
    tally.record(id, expectedText(expected), recordText(record, expected))
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
    ...(celgo?.cost === undefined || each.checkOnly ? {} : { cost: celgo.cost }),
    ...(celgo?.error === undefined ? {} : { error: celgo.error }),
  }
}

// --- outcomes as text

function expectedText(expect: Expected): string {
  if (expect.phase === 'parse') return 'parse'
  if (expect.phase === 'check') return checkText(expect.error)
  const type = expect.type === undefined ? [] : [expect.type]
  if (expect.phase === 'program') return ['program', ...type].join(' ')
  const costs = [expect.cost, expect.varCost].filter((cost) => cost !== undefined)
  const value = expect.value === undefined ? [] : [JSON.stringify(expect.value)]
  return [expect.phase, ...type, ...value, ...costs.map((cost) => `cost ${cost}`)].join(' ')
}

/** The same text as expected wherever the outcome is the same; it says of a record what the case says of it. */
function recordText(record: CelRecord, expect: Expected): string {
  const { phase, type, value, cost, varCost, error } = record
  if (phase === 'parse') return phase
  if (phase === 'check') return checkText(error)
  const parts: (string | undefined)[] = [phase]
  if (expect.type !== undefined) parts.push(type)
  if (phase === 'program') return parts.join(' ')
  if (expect.value !== undefined && value !== undefined) {
    parts.push(JSON.stringify(sameTagged(value, expect.value) ? expect.value : value))
  }
  if (expect.cost !== undefined) parts.push(`cost ${cost}`)
  if (expect.varCost !== undefined) parts.push(`cost ${varCost}`)
  if (phase === 'eval' && expect.phase === 'ok') parts.push(`(${error})`)
  return parts.join(' ')
}

/** The first fault; why a constant address is none is in each system's own words. */
function checkText(error = ''): string {
  const [fault = ''] = error.split('\n')
  return `check ${fault.replace(/(invalid (?:ip|cidr) argument).*/, '$1')}`
}
