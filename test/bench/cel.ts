import { type CelInput, celEnv, parse as parseBuf, plan as planBuf } from '@bufbuild/cel'
import { Environment as MarcEnvironment } from '@marcbachmann/cel-js'
import { compile } from '#shared/cel/compile.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import type { JsonValue } from '#shared/json.ts'
import { DEPLOYMENT, KINDS, type Kind } from './cel-kinds.ts'
import { geometricMean, perSecond, type Quick } from './measure.ts'

/** An implementation of CEL: an expression becomes a program once, and the program gives its value any number of times. */
interface Contender {
  name: string
  /** Everything that is done before the first value: parse, check, plan, as far as the implementation has them. */
  compile(expression: string): () => unknown
}

/** Operations per second of every contender for one kind of expression; undefined where it cannot run it. */
export interface CelRow {
  kind: string
  compile: readonly (number | undefined)[]
  evaluate: readonly (number | undefined)[]
}

/** What the issue asks for, as ratios in geometric mean over the kinds that both can run. */
export const CEL_TARGETS = [
  { what: 'evaluate', beside: '@marcbachmann/cel-js', atLeast: 0.5 },
  { what: 'evaluate', beside: '@bufbuild/cel', atLeast: 5 },
  { what: 'compile', beside: '@bufbuild/cel', atLeast: 2 },
] as const

export interface CelReport {
  names: readonly string[]
  rows: readonly CelRow[]
}

/** All contenders on all kinds, in turns. Throws when one of them gives a wrong value. */
export async function celReport(): Promise<CelReport> {
  const contenders = [await countersign(), marc(), buf()]
  const runs = KINDS.flatMap((kind) => contenders.flatMap((contender) => runsOf(contender, kind)))
  const rates = perSecond(runs)
  const rate = (contender: Contender, kind: Kind, what: string) =>
    rates.get(nameOf(contender, kind, what))
  const rows = KINDS.map((kind) => ({
    kind: kind.name,
    compile: contenders.map((contender) => rate(contender, kind, 'compile')),
    evaluate: contenders.map((contender) => rate(contender, kind, 'evaluate')),
  }))
  return { names: contenders.map(({ name }) => name), rows }
}

function nameOf(contender: Contender, kind: Kind, what: string): string {
  return `${contender.name} ${kind.name} ${what}`
}

function runsOf(contender: Contender, kind: Kind): Quick[] {
  const { expression, value, fresh = () => expression } = kind
  let evaluate: () => unknown
  try {
    evaluate = contender.compile(expression)
  } catch {
    // A syntax it does not have: the row stays empty there.
    return []
  }
  const got = evaluate()
  if (got !== value) throw new Error(`${contender.name}, ${kind.name}: ${String(got)}`)
  return [
    { name: nameOf(contender, kind, 'compile'), run: (turn) => contender.compile(fresh(turn)) },
    { name: nameOf(contender, kind, 'evaluate'), run: evaluate },
  ]
}

async function countersign(): Promise<Contender> {
  const regex = await loadRegex()
  const environment = createEnvironment({
    profile: 'kubernetes',
    variables: ADMISSION_VARIABLES,
    regex,
  })
  const options = { profile: 'kubernetes', implementations: kubernetesLibrary, regex } as const
  const activation = { object: DEPLOYMENT }
  return {
    name: 'countersign',
    compile(expression) {
      const compiled = compile(expression, environment)
      if (!compiled.ok) throw new Error(compiled.issues[0]?.message)
      const planned = plan(compiled.checked, options)
      if (!planned.ok) throw new Error(planned.message)
      const { program } = planned
      return () => {
        const outcome = program.evaluate(activation)
        return outcome.kind === 'value' ? outcome.value : outcome
      }
    },
  }
}

function marc(): Contender {
  const environment = new MarcEnvironment({ enableOptionalTypes: true }).registerVariable(
    'object',
    'dyn',
  )
  const context = { object: withBigInts(DEPLOYMENT) }
  return {
    name: '@marcbachmann/cel-js',
    compile(expression) {
      const parsed = environment.parse(expression)
      const checked = parsed.check()
      if (!checked.valid) throw new Error(checked.error?.message)
      return () => parsed(context)
    },
  }
}

function buf(): Contender {
  const environment = celEnv()
  // Its own type of inputs takes plain objects apart by hand; the library takes them as they are.
  const bindings = { object: withBigInts(DEPLOYMENT) as CelInput }
  return {
    name: '@bufbuild/cel',
    compile(expression) {
      const evaluate = planBuf(environment, parseBuf(expression))
      return () => evaluate(bindings)
    },
  }
}

/** What both others need before they can run anything: every int of the object as a bigint. Not part of what is measured. */
function withBigInts(value: JsonValue): unknown {
  if (typeof value === 'number') return BigInt(value)
  if (Array.isArray(value)) return value.map(withBigInts)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withBigInts(item)]))
}

/** Ours relative to another contender, in geometric mean over the kinds that both can run. */
function ratio({ names, rows }: CelReport, what: 'compile' | 'evaluate', beside: string): number {
  const other = names.indexOf(beside)
  const ratios = rows.flatMap((row) => {
    const [ours, theirs] = [row[what][0], row[what][other]]
    return ours === undefined || theirs === undefined ? [] : [ours / theirs]
  })
  return geometricMean(ratios)
}

/** Prints the table, the means, and which targets are met. Returns true when all of them are. */
export function printCel(report: CelReport): boolean {
  const { names, rows } = report
  console.log('\nCEL, operations per second (ours / the other in brackets)')
  for (const what of ['compile', 'evaluate'] as const) {
    console.log(`  ${what.padEnd(26)}${names.map((name) => name.padStart(24)).join('')}`)
    for (const row of rows) {
      const [ours = 0] = row[what]
      const cells = row[what].map((rate, i) => {
        if (rate === undefined) return '–'
        return i === 0 ? thousands(rate) : `${thousands(rate)} (×${(ours / rate).toFixed(2)})`
      })
      console.log(`    ${row.kind.padEnd(24)}${cells.map((cell) => cell.padStart(24)).join('')}`)
    }
    const means = names.map((name, i) => {
      const mean = thousands(geometricMean(rows.flatMap((row) => row[what][i] ?? [])))
      return i === 0 ? mean : `${mean} (×${ratio(report, what, name).toFixed(2)})`
    })
    console.log(`    ${'geometric mean'.padEnd(24)}${means.map((m) => m.padStart(24)).join('')}`)
  }
  const verdicts = CEL_TARGETS.map(({ what, beside, atLeast }) => {
    const reached = ratio(report, what, beside)
    const verdict = reached >= atLeast ? 'met' : 'MISSED'
    console.log(`  ${what} ≥ ${atLeast}× ${beside}: ${reached.toFixed(2)}×, ${verdict}`)
    return reached >= atLeast
  })
  return verdicts.every(Boolean)
}

function thousands(perSecond: number): string {
  return perSecond >= 1e6
    ? `${(perSecond / 1e6).toFixed(2)}M`
    : `${(perSecond / 1e3).toPrecision(3)}k`
}
