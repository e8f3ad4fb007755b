import { compile } from '#shared/cel/compile.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import type { JsonValue } from '#shared/json.ts'
import { type Bench, measure, type Row } from './measure.ts'

/** One expression of each kind that policies are made of. */
const EXPRESSIONS: readonly { name: string; source: string }[] = [
  { name: 'field compare', source: "object.kind == 'Deployment'" },
  { name: 'numeric', source: 'object.spec.replicas <= 5' },
  {
    name: 'has chain',
    source:
      'has(object.metadata.labels) && has(object.metadata.labels.app) && !has(object.spec.template.spec.securityContext)',
  },
  {
    name: 'all over five containers',
    source:
      "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
  },
  {
    name: 'nested all',
    source:
      "object.spec.template.spec.containers.all(c, c.env.all(e, e.name != 'SECRET' && e.value != ''))",
  },
  {
    name: 'strings',
    source:
      "object.metadata.name + '-' + object.metadata.namespace == 'web-prod' && object.metadata.name.size() < 63 && object.metadata.name.contains('e')",
  },
  { name: 'regex', source: "object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')" },
  { name: 'in list', source: "object.kind in ['Deployment', 'StatefulSet', 'DaemonSet']" },
  {
    name: 'filter and map',
    source:
      "object.spec.template.spec.containers.filter(c, c.name != 'c0').map(c, c.image).size() == 4",
  },
  {
    name: 'message',
    source:
      "'Deployment ' + object.metadata.name + ' in ' + object.metadata.namespace + ' has ' + string(object.spec.replicas) + ' replicas'",
  },
  {
    name: 'capabilities',
    source:
      "object.spec.template.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.drop) && c.securityContext.capabilities.drop.exists(d, d == 'ALL') && (!has(c.securityContext.capabilities.add) || c.securityContext.capabilities.add.all(a, a in ['NET_BIND_SERVICE'])))",
  },
  {
    name: 'optional',
    source: 'object.?spec.?template.?spec.?hostNetwork.orValue(true) == false',
  },
]

function container(index: number): JsonValue {
  return {
    name: `c${index}`,
    image: `registry.example.com/team/app${index}:1.${index}`,
    ports: [{ containerPort: 8080 + index, protocol: 'TCP' }],
    resources: { limits: { cpu: '500m', memory: '128Mi' } },
    securityContext: { capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } },
    env: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
  }
}

const OBJECT: JsonValue = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'prod', labels: { app: 'web', tier: 'front' } },
  spec: {
    replicas: 3,
    template: { spec: { containers: [0, 1, 2, 3, 4].map(container), hostNetwork: false } },
  },
}

/** The object as the other implementation wants it: integers as bigint. */
function withBigints(value: JsonValue): unknown {
  if (typeof value === 'number') return BigInt(value)
  if (Array.isArray(value)) return value.map(withBigints)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, withBigints(entry)]))
}

type Evaluate = (activation: unknown) => unknown

/** Not a dependency: where somebody has installed it, the rows say how it compares. It counts no cost. */
const OTHER: string = '@marcbachmann/cel-js'

/** The other implementation's parser, or undefined where it is not installed. */
async function otherParser(): Promise<((source: string) => Evaluate) | undefined> {
  try {
    const { Environment } = await import(OTHER)
    const environment = new Environment({
      unlistedVariablesAreDyn: true,
      enableOptionalTypes: true,
    })
    return (source) => environment.parse(source)
  } catch {
    return undefined
  }
}

const RUNS = 5000

/** Evaluation with exact cost, one row for each kind of expression; the baseline is reading the object's JSON once. */
export async function celRows(): Promise<Row[]> {
  const options = {
    profile: 'kubernetes',
    implementations: kubernetesLibrary,
    regex: await loadRegex(),
  } as const
  const environment = createEnvironment({ profile: 'kubernetes', variables: ADMISSION_VARIABLES })
  const parse = await otherParser()
  const theirs = { object: withBigints(OBJECT) }
  const json = JSON.stringify(OBJECT)
  const baseline: Bench = { name: 'JSON.parse of the object', run: () => JSON.parse(json) }
  const benches: Bench[] = []
  for (const { name, source } of EXPRESSIONS) {
    const compiled = compile(source, environment)
    const planned = compiled.ok ? plan(compiled.checked, options) : undefined
    if (!planned?.ok) throw new Error(`${name} does not compile`)
    const { program } = planned
    const activation = { object: OBJECT }
    const { cost } = program.evaluate(activation)
    const run = () => program.evaluate(activation)
    benches.push({ name, run, runs: RUNS, note: () => `cost ${cost}` })
    const other = parse?.(source)
    if (other !== undefined) {
      benches.push({ name: '  by cel-js, without cost', run: () => other(theirs), runs: RUNS })
    }
  }
  return measure(baseline, benches)
}

/** Compilation, from source to program, of all kinds together; the baseline is evaluating them all once. */
export async function celCompileRows(): Promise<Row[]> {
  const options = {
    profile: 'kubernetes',
    implementations: kubernetesLibrary,
    regex: await loadRegex(),
  } as const
  const environment = createEnvironment({ profile: 'kubernetes', variables: ADMISSION_VARIABLES })
  const programs = EXPRESSIONS.map(({ source }) => {
    const compiled = compile(source, environment)
    const planned = compiled.ok ? plan(compiled.checked, options) : undefined
    if (!planned?.ok) throw new Error(source)
    return { program: planned.program, checked: planned.program.checked }
  })
  const evaluateAll = () => {
    for (const { program } of programs) program.evaluate({ object: OBJECT })
  }
  return measure({ name: 'evaluate twelve expressions', run: evaluateAll }, [
    {
      name: 'parse and check them',
      run: () => {
        for (const { source } of EXPRESSIONS) compile(source, environment)
      },
    },
    {
      name: 'plan them from JSON',
      run: () => {
        for (const { checked } of programs) plan(checked, options)
      },
    },
  ])
}
