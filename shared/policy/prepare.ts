import type { Node } from '../cel/ast.ts'
import type { Library } from '../cel/implementation.ts'
import { type PlanOptions, plan } from '../cel/plan.ts'
import type { Program } from '../cel/program.ts'
import { loadRegex } from '../cel/regex.ts'
import { standardLibrary } from '../cel/standard-library.ts'
import { childrenOf } from '../cel/tree.ts'
import type { CheckedExpression, RegexEngine } from '../cel/types.ts'
import { AdmissionError } from '../errors.ts'
import { compileGlob, type Glob } from './glob.ts'
import { AttestorValue, IMAGE_LIBRARY } from './image-library.ts'
import type { CompiledPolicy } from './types.ts'

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
  /** The CEL variable `attestors`. */
  readonly attestors: Readonly<Record<string, AttestorValue>>
  /** The CEL variable `attestations`: each name stands for itself. */
  readonly attestations: Readonly<Record<string, string>>
}

/** The parts of the CEL runtime that only some policies use, each loaded when the first such policy comes along. */
export interface Runtime {
  regex?: RegexEngine
  /** Implementations beyond `standardLibrary`, and all of that. */
  library?: Library
}

/** The runtime a policy needs beside what is always there. */
export function loadRuntime(policy: CompiledPolicy): Promise<Runtime> {
  return runtimeFor(everyExpression(policy))
}

/** The runtime some expressions need beside what is always there. */
export async function runtimeFor(expressions: readonly CheckedExpression[]): Promise<Runtime> {
  const needsRegex = expressions.some(({ needs }) => needs.includes('regex'))
  const library = await libraryFor(expressions)
  return {
    ...(needsRegex ? { regex: await loadRegex() } : {}),
    ...(library === undefined ? {} : { library }),
  }
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
  return { ...kyvernoLibrary, ...kyvernoFunctions }
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
      'glob' in reference ? compileGlob(reference.glob) : program(reference.expression),
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
    attestors: byName(policy.attestors, (name) => new AttestorValue(name)),
    attestations: byName(policy.attestations, (name) => name),
  }
}

const ALWAYS: Library = { ...standardLibrary, ...IMAGE_LIBRARY }

/** What every expression of an image policy is planned with. */
export function planOptions({ regex, library }: Runtime): PlanOptions {
  return {
    profile: 'kyverno',
    implementations: library === undefined ? ALWAYS : { ...library, ...IMAGE_LIBRARY },
    ...(regex === undefined ? {} : { regex }),
  }
}

function planned(
  policy: CompiledPolicy,
  expression: CheckedExpression,
  options: PlanOptions,
): Program {
  const result = plan(expression, options)
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
    ...policy.validations.flatMap((v) => [v.expression, v.messageExpression ?? []].flat()),
    ...policy.auditAnnotations.map((annotation) => annotation.valueExpression),
  ]
}
