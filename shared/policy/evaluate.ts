import type { Activation } from '../cel/frame.ts'
import type { Program } from '../cel/program.ts'
import type { Budget, Host } from '../cel/types.ts'
import { Variables } from '../cel/variables.ts'
import { CEL_MATCH_CONDITIONS_COST, CEL_POLICY_COST } from '../limits.ts'
import { failsOpen } from './decide.ts'
import type { PartialExemption } from './exemption.ts'
import { COUNTS } from './image-library.ts'
import { hasDigest, imagesOf, matchesImage } from './images.ts'
import type { PreparedPolicy } from './prepare.ts'
import { labelsIn, matchesNamespace } from './selector.ts'
import { runsImages, type Subject } from './subject.ts'

/** Whether a policy that is about the request, unless its namespace says otherwise, is to be applied to it. */
export type ConditionsResult =
  | { status: 'matched' }
  | { status: 'unmatched'; condition: string }
  /** Conditions could not be evaluated and failurePolicy is Ignore: the policy is not applied, and that must be told. */
  | { status: 'failed-open'; message: string }
  | { status: 'error'; message: string }

/**
 * Asks the namespace selector where only the labels of the namespace decide: not to know them is no match and no miss, whatever
 * the failurePolicy (upstream takes the name for all labels there are). Then evaluates the match conditions in order (image-validating-policy.md 3.7): the first `false` decides, even behind an error;
 * errors without a `false` are the failurePolicy's business.
 */
export function matchConditions(prepared: PreparedPolicy, subject: Subject): ConditionsResult {
  const selected = selectsNamespace(prepared, subject)
  if (selected !== undefined) return selected
  const budget: Budget = { limit: CEL_MATCH_CONDITIONS_COST, spent: 0 }
  const errors: string[] = []
  for (const { name, program } of prepared.matchConditions) {
    const result = program.evaluate(subject.activation, { budget })
    if (result.kind === 'error') errors.push(`match condition ${name}: ${result.message}`)
    else if (result.value !== true) return { status: 'unmatched', condition: name }
  }
  if (errors.length === 0) return { status: 'matched' }
  const message = `failed to evaluate policy: ${errors.join('; ')}`
  return failsOpen(prepared.policy)
    ? { status: 'failed-open', message }
    : { status: 'error', message }
}

/** Undefined when the namespace matches. */
function selectsNamespace(
  { policy }: PreparedPolicy,
  { request, namespace: { state } }: Subject,
): ConditionsResult | undefined {
  const { namespaceSelector } = policy.matchConstraints
  const object = state.status === 'known' ? state.object : null
  const matched = matchesNamespace(
    namespaceSelector,
    request,
    object ? labelsIn(object) : undefined,
  )
  if (matched) return undefined
  if (matched === false) return { status: 'unmatched', condition: 'namespaceSelector' }
  const reason =
    state.status === 'unknown'
      ? state.message
      : `namespace ${JSON.stringify(request.namespace)} does not exist`
  return { status: 'error', message: `failed to execute matching: ${reason}` }
}

/** What a policy says about a request once its match conditions hold. */
export type EvaluationResult =
  /** Host calls were made whose answers are not known yet: settle them and evaluate again. */
  | { status: 'pending' }
  | { status: 'error'; message: string }
  | {
      status: 'pass' | 'fail'
      message: string
      auditAnnotations: Readonly<Record<string, string>>
      /** The matched images: what `required` is about. */
      images: readonly string[]
      /** The one that failed the policy, where it is one. */
      image?: string
      /** Matched images that are exempt, by exception. */
      exempted?: ReadonlyMap<string, string>
    }

/**
 * Evaluates a policy once (image-validating-policy.md 3.8): extractors, matchImageReferences, exceptions for single images, verifyDigest,
 * validations, messages, audit annotations. Never throws and never waits. One pass asks the host for everything that the
 * validations may still need, so that all of it can be found out at the same time; `required` is asked later, over all policies.
 */
export function evaluate(
  prepared: PreparedPolicy,
  subject: Subject,
  host: Host,
  exemption?: PartialExemption,
): EvaluationResult {
  const matched = imagesOf(prepared, subject)
  if (matched.status === 'error') return failure(matched.message)
  const images = exemption === undefined ? matched : exemption.judge(matched, host)
  if (images.status === 'pending') return images
  if (images.status === 'error') return failure(images.message)
  const isChecked = prepared.policy.verifyDigest && runsImages(subject)
  const digests = isChecked ? missingDigest(images.all, subject) : undefined
  if (digests !== undefined) return digests
  const run = new Run(
    prepared,
    activationOf(prepared, subject, images.map, exemption),
    matchedOnly(prepared, subject, host),
  )
  const verdict = run.validations()
  if (verdict.status === 'pending' || verdict.status === 'error') return verdict
  const annotations = run.auditAnnotations()
  if (annotations.status !== 'done') return annotations
  return {
    ...verdict,
    auditAnnotations: annotations.values,
    images: images.all,
    ...(images.exempted && { exempted: images.exempted }),
  }
}

const NO_EXCEPTIONS: PartialExemption['variable'] = { allowedImages: [], allowedValues: [] }

/** Variables are evaluated at most once per pass: what waited for the host in one pass is asked again in the next. */
function activationOf(
  prepared: PreparedPolicy,
  subject: Subject,
  images: Readonly<Record<string, readonly string[]>>,
  exemption: PartialExemption | undefined,
): Activation {
  const { attestations } = prepared
  const exceptions = exemption?.variable ?? NO_EXCEPTIONS
  const attestors = prepared.attestors(() => all)
  const activation = { ...subject.activation, images, attestors, attestations, exceptions }
  const all: Activation = {
    ...activation,
    variables: new Variables(prepared.variables, activation),
  }
  return all
}

/** Every matched image must be pinned; the first that is not fails the policy before anything is looked up. */
function missingDigest(images: readonly string[], subject: Subject): EvaluationResult | undefined {
  for (const image of images) {
    const known = hasDigest(subject, image)
    if (known === true) continue
    if (known !== false) {
      return failure(`failed to parse image reference ${image}: ${known.message}`)
    }
    const message = `image ${image} does not have a digest`
    return { status: 'fail', message, auditAnnotations: {}, images, image }
  }
  return undefined
}

/** A policy verifies only its own images: of any other, no attestor counts and nothing is asked. */
function matchedOnly(prepared: PreparedPolicy, subject: Subject, host: Host): Host {
  return (call) => {
    const [image] = call.args
    if (!COUNTS.has(call.name) || typeof image !== 'string') return host(call)
    const match = matchesImage(prepared, subject, image)
    if (match.status === 'error') return { kind: 'error', message: match.message }
    return match.matched ? host(call) : { kind: 'value', value: 0 }
  }
}

/** What the validations of one pass share. */
class Run {
  readonly #prepared: PreparedPolicy
  readonly #activation: Activation
  readonly #host: Host

  constructor(prepared: PreparedPolicy, activation: Activation, host: Host) {
    this.#prepared = prepared
    this.#activation = activation
    this.#host = host
  }

  /**
   * In order, the first `false` or error decides. Behind a validation that waits for the host the others still run, so that
   * they ask for what they need in the same pass, but none of them decides before it.
   */
  validations(): EvaluationResult {
    const budget: Budget = { limit: CEL_POLICY_COST, spent: 0 }
    let pending = false
    for (const [index, validation] of this.#prepared.validations.entries()) {
      const result = this.#evaluate(validation.program, budget)
      if (result.kind === 'value' && result.value === true) continue
      if (result.kind === 'error' && result.code === 'pending') {
        pending = true
        continue
      }
      if (pending) break
      if (result.kind === 'error') return failure(result.message)
      return this.#failed(index, validation, budget)
    }
    if (pending) return { status: 'pending' }
    return { status: 'pass', message: 'success', auditAnnotations: {}, images: [] }
  }

  #failed(
    index: number,
    validation: PreparedPolicy['validations'][number],
    budget: Budget,
  ): EvaluationResult {
    const message = this.#message(validation, budget)
    if (message === undefined) return { status: 'pending' }
    return {
      status: 'fail',
      message: message === '' ? `CEL expression validation failed at index ${index}` : message,
      auditAnnotations: {},
      images: [],
    }
  }

  /** `messageExpression` takes the place of `message`, even when it fails; undefined while it waits for the host. */
  #message(
    { message, messageProgram }: PreparedPolicy['validations'][number],
    budget: Budget,
  ): string | undefined {
    if (messageProgram === undefined) return message ?? ''
    const result = this.#evaluate(messageProgram, budget)
    if (result.kind === 'error') {
      return result.code === 'pending'
        ? undefined
        : `failed to evaluate message expression: ${result.message}`
    }
    return typeof result.value === 'string'
      ? result.value
      : 'failed to convert message expression to string: the value is not a string'
  }

  /** Computed whether the policy passed or failed; empty text and null are left out. */
  auditAnnotations():
    | { status: 'pending' }
    | { status: 'error'; message: string }
    | { status: 'done'; values: Record<string, string> } {
    const budget: Budget = { limit: CEL_POLICY_COST, spent: 0 }
    const values: Record<string, string> = {}
    for (const { key, program } of this.#prepared.auditAnnotations) {
      const result = this.#evaluate(program, budget)
      if (result.kind === 'error') {
        if (result.code === 'pending') return { status: 'pending' }
        return failure(`failed to evaluate auditAnnotation '${key}': ${result.message}`)
      }
      if (typeof result.value === 'string') {
        if (result.value !== '') values[key] = result.value
      } else if (result.value !== null) {
        return failure(
          `failed to convert auditAnnotation '${key}' expression: the value is not a string`,
        )
      }
    }
    return { status: 'done', values }
  }

  #evaluate(program: Program, budget: Budget) {
    return program.evaluate(this.#activation, { host: this.#host, budget })
  }
}

/** Kyverno's text for a policy that could not be evaluated to the end. */
function failure(reason: string): { status: 'error'; message: string } {
  return { status: 'error', message: `failed to evaluate policy: ${reason}` }
}
