import type { Step } from './attribute.ts'
import { type Activation, BudgetStop, begin, type EvaluateOptions, Frame, Stop } from './frame.ts'
import type { CheckedExpression, Evaluation } from './types.ts'
import { CelError, type CelValue, elementsOf } from './values.ts'

/** The result of a program with its value still a CEL value; `toJson` turns it into JSON. */
export type Outcome =
  | { kind: 'value'; value: CelValue; cost: number }
  | { kind: 'error'; message: string; code: 'evaluation' | 'cost' | 'pending'; cost: number }

/** A planned expression, ready to run any number of times, at the same time too. */
export class Program {
  readonly checked: CheckedExpression
  readonly #step: Step
  readonly #slots: number

  constructor(checked: CheckedExpression, step: Step, slots: number) {
    this.checked = checked
    this.#step = step
    this.#slots = slots
  }

  /** The value or error of one run, with its exact cost. Never throws. An error after a pending host call is `pending`. */
  evaluate(activation: Activation, options: EvaluateOptions = {}): Outcome & Evaluation {
    const frame = new Frame(activation, this.#slots, options)
    const outcome = this.#run(frame)
    if (options.budget !== undefined) options.budget.spent += outcome.cost
    return outcome
  }

  /** The same for a variable of another run: what it spends and whether anything was pending goes to that run. */
  evaluateFor(parent: Frame, activation: Activation): Outcome & { pending: boolean } {
    const { limit: _, ...options } = parent.options
    const frame = new Frame(activation, this.#slots, options)
    const outcome = this.#run(frame, true)
    parent.chargeBudget(outcome.cost)
    return { ...outcome, pending: frame.pending }
  }

  #run(frame: Frame, nested = false): Outcome {
    const outer = begin(frame)
    try {
      const value = this.#step(frame)
      if (!(value instanceof CelError)) {
        return { kind: 'value', value: elementsOf(value) ?? value, cost: frame.cost }
      }
      const code = frame.pending ? 'pending' : 'evaluation'
      return { kind: 'error', message: value.message, code, cost: frame.cost }
    } catch (thrown) {
      if (nested && thrown instanceof BudgetStop) throw thrown
      return stopped(thrown, frame.cost)
    } finally {
      begin(outer)
    }
  }
}

/** A run that ended from inside. Whatever else was thrown (a text past the engine's limit) is a fault of the evaluation too. */
function stopped(thrown: unknown, cost: number): Outcome {
  if (thrown instanceof Stop) {
    return { kind: 'error', message: thrown.message, code: thrown.code, cost }
  }
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  return { kind: 'error', message: `internal error: ${text}`, code: 'evaluation', cost }
}
