import type { Node } from '../cel/ast.ts'
import { type Costs, plainCosts } from '../cel/cost.ts'
import type { Activation } from '../cel/frame.ts'
import type { Library } from '../cel/implementation.ts'
import { plainLibrary } from '../cel/plain-library.ts'
import { type PlanOptions, planWith } from '../cel/planner.ts'
import type { Program } from '../cel/program.ts'
import { loadRegex } from '../cel/regex.ts'
import { childrenOf } from '../cel/tree.ts'
import type { CheckedExpression, RegexEngine } from '../cel/types.ts'
import { AdmissionError } from '../errors.ts'
import type { attestorValues } from './attestor-values.ts'
import type { Exceptions, prepareExceptions } from './exemption.ts'
import type { compileGlob } from './glob.ts'
import { AttestorValue, IMAGE_LIBRARY } from './image-library.ts'
import { type Glob, plainGlob } from './plain-glob.ts'
import type { CompiledPolicy, PolicyAttestor, UnresolvedAttestor } from './types.ts'

/** A policy whose expressions are planned: made once per isolate, used by any number of requests at the same time. */
export interface PreparedPolicy {
  readonly policy: CompiledPolicy
  readonly matchConditions: readonly { name: string; program: Program }[]
  /** An image is the policy's when one of these says so, or when there are none. */
  readonly references: readonly (Glob | Program)[]
  readonly extractors: readonly { name: string; program: Program }[]
  readonly variables: readonly { name: string; program: Program }[]
  readonly validations: readonly {
    program: Program
    message: string | undefined
    messageProgram: Program | undefined
  }[]
  readonly auditAnnotations: readonly { key: string; program: Program }[]
  /** The CEL variable `attestors` of one evaluation, whose activation is asked for only when an expression of one is evaluated. */
  readonly attestors: (activation: () => Activation) => Readonly<Record<string, AttestorValue>>
  /** The CEL variable `attestations`: each name stands for itself. */
  readonly attestations: Readonly<Record<string, string>>
  /** Who reads `namespaceObject`: already the conditions, something later, or nobody. */
  readonly readsNamespace?: 'match' | 'evaluation'
  /** Absent where no exception refers to the policy. */
  readonly exceptions?: Exceptions
}

/** Among the needs of an expression: it reads the variable `namespaceObject`, which has to be looked up before. */
export const NAMESPACE_NEED = 'namespaceObject'

/** The parts of the CEL runtime that only some policies use, each loaded when the first such policy comes along. */
export interface Runtime {
  regex?: RegexEngine
  /** Implementations beyond `plainLibrary`, and all of that. */
  library?: Library
  /** What calls of that cost, where more is called than `plainLibrary` has. */
  costs?: Costs
  prepareExceptions?: typeof prepareExceptions
  attestorValues?: typeof attestorValues
  /** For patterns that are more than text and stars. */
  compileGlob?: typeof compileGlob
}

/** The runtime a policy needs beside what is always there. */
export async function loadRuntime(policy: CompiledPolicy): Promise<Runtime> {
  const runtime = await runtimeFor(everyExpression(policy))
  if (policy.attestors.some(isUnresolved)) {
    const { attestorValues } = await import('./attestor-values.ts')
    runtime.attestorValues = attestorValues
  }
  const globs = policy.matchImageReferences.flatMap((r) => ('glob' in r ? [r.glob] : []))
  if (globs.some((glob) => plainGlob(glob) === undefined)) {
    const { compileGlob } = await import('./glob.ts')
    runtime.compileGlob = compileGlob
  }
  if (policy.exceptions.length > 0) {
    const { prepareExceptions } = await import('./exemption.ts')
    runtime.prepareExceptions = prepareExceptions
  }
  return runtime
}

/** The runtime some expressions need beside what is always there. */
export async function runtimeFor(expressions: readonly CheckedExpression[]): Promise<Runtime> {
  const needsRegex = expressions.some(({ needs }) => needs.includes('regex'))
  const library = await libraryFor(expressions)
  return {
    ...(needsRegex ? { regex: await loadRegex() } : {}),
    ...(library === undefined ? {} : { library, costs: await loadCosts() }),
  }
}

/** With only `plainLibrary` nothing is called that these are about. */
async function loadCosts(): Promise<Costs> {
  return (await import('../cel/cost-kubernetes.ts')).kubernetesCosts
}

/** The smallest library that has every function of the expressions, or undefined when what is always there has them. */
async function libraryFor(expressions: readonly CheckedExpression[]): Promise<Library | undefined> {
  const isEnough = (library: Library) => expressions.every(({ ast }) => isWithin(library, ast))
  if (isEnough(ALWAYS)) return undefined
  const { coreLibrary } = await import('../cel/core-library.ts')
  if (isEnough({ ...coreLibrary, ...IMAGE_LIBRARY })) return coreLibrary
  const [{ kyvernoLibrary }, { kyvernoFunctions }] = await Promise.all([
    import('../cel/kyverno-library.ts'),
    import('../cel/library/kyverno.ts'),
  ])
  const kyverno = { ...kyvernoLibrary, ...kyvernoFunctions }
  if (isEnough({ ...kyverno, ...IMAGE_LIBRARY })) return kyverno
  const { kyvernoHostFunctions } = await import('../cel/library/kyverno-host.ts')
  return { ...kyverno, ...kyvernoHostFunctions }
}

/**
 * True when the library has every function that a tree may call. Operators (`_+_`, `@in`) are no functions, and a call whose
 * overload is open lists all that it may be.
 */
function isWithin(library: Library, node: Node): boolean {
  const isFunction = node.k === 'call' && /^[A-Za-z]/.test(node.fn)
  const overloads = isFunction ? (node.overloads ?? ['']) : []
  return (
    overloads.every((id) => Object.hasOwn(library, id)) &&
    childrenOf(node).every((child) => isWithin(library, child))
  )
}

/**
 * Plans every expression of a policy. Throws `CEL_PROGRAM` when one cannot be planned: impossible for a policy that came from
 * `loadPolicies`, unless a part of the runtime that `loadRuntime` gives is missing.
 */
export function preparePolicy(policy: CompiledPolicy, runtime: Runtime = {}): PreparedPolicy {
  const options = planOptions(runtime)
  const program = (expression: CheckedExpression) => planned(policy, expression, options)
  return {
    policy,
    matchConditions: policy.matchConditions.map(({ name, expression }) => ({
      name,
      program: program(expression),
    })),
    references: policy.matchImageReferences.map((reference) =>
      'glob' in reference ? globOf(reference.glob, runtime) : program(reference.expression),
    ),
    extractors: policy.images.map(({ name, expression }) => ({
      name,
      program: program(expression),
    })),
    variables: policy.variables.map(({ name, expression }) => ({
      name,
      program: program(expression),
    })),
    validations: policy.validations.map(({ expression, message, messageExpression }) => ({
      program: program(expression),
      message,
      messageProgram: messageExpression === undefined ? undefined : program(messageExpression),
    })),
    auditAnnotations: policy.auditAnnotations.map(({ key, valueExpression }) => ({
      key,
      program: program(valueExpression),
    })),
    attestors: attestorsOf(policy, program, runtime),
    attestations: byName(policy.attestations, (name) => name),
    ...readsNamespace(policy),
    ...exceptionsOf(policy, program, runtime),
  }
}

function attestorsOf(
  { name, attestors }: CompiledPolicy,
  program: (expression: CheckedExpression) => Program,
  { attestorValues }: Runtime,
): PreparedPolicy['attestors'] {
  const all = byName(attestors, (each) => new AttestorValue(each))
  const planned = attestors.filter(isUnresolved).map((attestor) => ({
    name: attestor.name,
    texts: attestor.expressions.map(({ gives, expression }) => {
      return { gives, program: program(expression) }
    }),
  }))
  if (planned.length === 0) return () => all
  if (attestorValues === undefined) {
    throw new TypeError(`policy ${name} has attestors with expressions and no runtime for them`)
  }
  return (activation) => ({ ...all, ...attestorValues(planned, activation) })
}

function isUnresolved(attestor: PolicyAttestor): attestor is UnresolvedAttestor {
  return attestor.kind === 'unresolved'
}

function readsNamespace(policy: CompiledPolicy): Pick<PreparedPolicy, 'readsNamespace'> {
  const isRead = ({ needs }: CheckedExpression) => needs.includes(NAMESPACE_NEED)
  const conditions = [policy, ...policy.exceptions].flatMap((each) => each.matchConditions)
  if (conditions.some(({ expression }) => isRead(expression))) return { readsNamespace: 'match' }
  return everyExpression(policy).some(isRead) ? { readsNamespace: 'evaluation' } : {}
}

function globOf(pattern: string, { compileGlob }: Runtime): Glob {
  const glob = plainGlob(pattern) ?? compileGlob?.(pattern)
  if (glob === undefined) throw new TypeError(`no runtime for the pattern ${pattern}`)
  return glob
}

/** A policy whose exceptions cannot be asked about must not run: it would deny, or admit, for the wrong reason. */
function exceptionsOf(
  policy: CompiledPolicy,
  program: (expression: CheckedExpression) => Program,
  { prepareExceptions }: Runtime,
): Pick<PreparedPolicy, 'exceptions'> {
  if (policy.exceptions.length === 0) return {}
  if (prepareExceptions !== undefined) return { exceptions: prepareExceptions(policy, program) }
  throw new TypeError(`policy ${policy.name} has exceptions and no runtime for them`)
}

const ALWAYS: Library = { ...plainLibrary, ...IMAGE_LIBRARY }

/** What every expression of an image policy is planned with. */
export function planOptions({
  regex,
  library,
  costs = plainCosts,
}: Runtime): PlanOptions & { costs: Costs } {
  return {
    profile: 'kyverno',
    costs,
    implementations: library === undefined ? ALWAYS : { ...library, ...IMAGE_LIBRARY },
    ...(regex === undefined ? {} : { regex }),
  }
}

function planned(
  policy: CompiledPolicy,
  expression: CheckedExpression,
  options: PlanOptions & { costs: Costs },
): Program {
  const result = planWith(expression, options)
  if (result.ok) return result.program
  throw new AdmissionError(
    'CEL_PROGRAM',
    `policy ${policy.name} (${policy.source}): ${expression.source}: ${result.message}`,
  )
}

function byName<T>(
  items: readonly { name: string }[],
  value: (name: string) => T,
): Record<string, T> {
  const record: Record<string, T> = Object.create(null)
  for (const { name } of items) record[name] = value(name)
  return record
}

function everyExpression(policy: CompiledPolicy): CheckedExpression[] {
  return [
    ...policy.matchConditions.map((condition) => condition.expression),
    ...policy.matchImageReferences.flatMap((r) => ('expression' in r ? [r.expression] : [])),
    ...policy.images.map((image) => image.expression),
    ...policy.variables.map((variable) => variable.expression),
    ...policy.attestors.filter(isUnresolved).flatMap(({ expressions }) => {
      return expressions.map(({ expression }) => expression)
    }),
    ...policy.validations.flatMap((v) => [v.expression, v.messageExpression ?? []].flat()),
    ...policy.auditAnnotations.map((annotation) => annotation.valueExpression),
    ...policy.exceptions.flatMap((e) => e.matchConditions.map((condition) => condition.expression)),
  ]
}
