import type { Activation, Frame } from '../cel/frame.ts'
import type { Program } from '../cel/program.ts'
import { CelError } from '../cel/values.ts'
import { MAX_ATTESTOR_TEXT_CHARS } from '../limits.ts'
import { AttestorValue, type Material } from './image-library.ts'

/** An attestor with texts that expressions give, planned. */
export interface PlannedAttestor {
  name: string
  texts: readonly { gives: string; program: Program }[]
}

/**
 * The values of such attestors in one evaluation of a policy, by name. The expressions of one run when a function first asks about it, and
 * once; `activation` is what they see, asked for then (image-validating-policy.md 4.1).
 */
export function attestorValues(
  planned: readonly PlannedAttestor[],
  activation: () => Activation,
): Record<string, AttestorValue> {
  const values: Record<string, AttestorValue> = Object.create(null)
  for (const attestor of planned) {
    values[attestor.name] = new AttestorValue(attestor.name, materialOf(attestor, activation))
  }
  return values
}

function materialOf(attestor: PlannedAttestor, activation: () => Activation): Material {
  let known: { result: readonly string[] | CelError; pending: boolean } | undefined
  return (frame) => {
    known ??= evaluate(attestor, activation(), frame)
    if (known.pending) frame.pending = true
    return known.result
  }
}

/** Every text is evaluated, so that all of them ask for what they need in the same pass; the first that is wrong is the error. */
function evaluate({ name, texts }: PlannedAttestor, activation: Activation, frame: Frame) {
  const found: string[] = []
  const errors: CelError[] = []
  let pending = false
  for (const { gives, program } of texts) {
    const outcome = program.evaluateFor(frame, activation)
    pending ||= outcome.pending
    const value = outcome.kind === 'value' ? outcome.value : undefined
    const fault = outcome.kind === 'error' ? outcome.message : faultOf(value)
    if (typeof value === 'string' && fault === undefined) found.push(value)
    else {
      errors.push(
        new CelError(`failed to convert ${gives} in compiled attestor: ${name}, error: ${fault}`),
      )
    }
  }
  return { result: errors[0] ?? found, pending }
}

/** Empty is absent in these fields, and without a certificate or a chain more signatures would count than were meant. */
function faultOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'the value is not a string'
  if (value === '') return 'the value is empty'
  if (value.length <= MAX_ATTESTOR_TEXT_CHARS) return undefined
  return `${value.length} characters, at most ${MAX_ATTESTOR_TEXT_CHARS} are read`
}
