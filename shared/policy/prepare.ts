import { kyvernoLibrary } from '../cel/libraries.ts'
import { type PlanOptions, plan } from '../cel/plan.ts'
import type { Program } from '../cel/program.ts'
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
}

/** True when the policy cannot be prepared without a regex engine. */
export function needsRegex(policy: CompiledPolicy): boolean {
  return everyExpression(policy).some((expression) => expression.needs.includes('regex'))
}

/**
 * Plans every expression of a policy. Throws `CEL_PROGRAM` when one cannot be planned: impossible for a policy that came from
 * `loadPolicies`, unless the regex engine that `needsRegex` asks for is missing.
 */
export function preparePolicy(
  policy: CompiledPolicy,
  options: { regex?: RegexEngine } = {},
): PreparedPolicy {
  const program = (expression: CheckedExpression) => planned(policy, expression, options.regex)
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
    attestors: attestorsOf(policy),
  }
}

const IMPLEMENTATIONS = { ...kyvernoLibrary, ...IMAGE_LIBRARY }

/** What every expression of an image policy is planned with. */
export function planOptions(regex: RegexEngine | undefined): PlanOptions {
  return {
    profile: 'kyverno',
    implementations: IMPLEMENTATIONS,
    ...(regex === undefined ? {} : { regex }),
  }
}

function planned(
  policy: CompiledPolicy,
  expression: CheckedExpression,
  regex: RegexEngine | undefined,
): Program {
  const result = plan(expression, planOptions(regex))
  if (result.ok) return result.program
  throw new AdmissionError(
    'CEL_PROGRAM',
    `policy ${policy.name} (${policy.source}): ${expression.source}: ${result.message}`,
  )
}

function attestorsOf(policy: CompiledPolicy): Record<string, AttestorValue> {
  const attestors: Record<string, AttestorValue> = Object.create(null)
  for (const { name } of policy.attestors) attestors[name] = new AttestorValue(name)
  return attestors
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
