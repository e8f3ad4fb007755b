import { CEL_PER_CALL_COST } from '../limits.ts'
import type { Budget, Host } from './types.ts'
import type { CelResult } from './values.ts'
import { CelError } from './values.ts'

/** What the names of an expression stand for: plain JSON, a CEL value, or a thunk that gives one when first used. */
export type Activation = Readonly<Record<string, unknown>>

/** What one evaluation may use. */
export interface EvaluateOptions {
  host?: Host
  /** Drawn from by several evaluations together; the run ends as soon as it is spent. */
  budget?: Budget
  /** Cost of this run alone; the API server's per-call limit when absent. */
  limit?: number
}

/** Ends an evaluation from inside: the cost limit, or a fault cel-go ends the whole run for. Never leaves `evaluate`. */
export class Stop {
  readonly code: 'cost' | 'evaluation'
  readonly message: string
  constructor(code: 'cost' | 'evaluation', message: string) {
    this.code = code
    this.message = message
  }
}

/** One run of one program: its variables, its locals, its cost so far. */
export class Frame {
  cost = 0
  readonly options: EvaluateOptions
  /** The run stops when `cost` is above it: the run's own limit, or what the budget has left. */
  limit: number
  /** Values of the comprehension variables in scope, by slot. */
  readonly locals: (CelResult | undefined)[]
  /** True once a host call of this run had no answer yet. */
  pending = false
  readonly #activation: Activation
  #thunks: Map<string, CelResult> | undefined

  constructor(activation: Activation, slots: number, options: EvaluateOptions) {
    this.#activation = activation
    this.options = options
    this.limit = ownLimit(options)
    this.locals = new Array(slots)
    this.drawFromBudget()
  }

  /** Takes up what is left of the budget: lazily evaluated variables draw from it while this run goes on. */
  drawFromBudget(): void {
    const { budget } = this.options
    if (budget === undefined) return
    const left = budget.limit - budget.spent
    this.limit = Math.min(ownLimit(this.options), left)
    if (this.cost > left) this.stop()
  }

  /** Ends the run because its cost is above the limit. */
  stop(): never {
    const own = this.cost > ownLimit(this.options)
    throw new Stop('cost', own ? COST_MESSAGE : BUDGET_MESSAGE)
  }

  /** The value of a name, or undefined when the activation has none. */
  resolve(name: string): CelResult | undefined {
    if (!Object.hasOwn(this.#activation, name)) return undefined
    const value = this.#activation[name]
    if (typeof value !== 'function') return value as CelResult
    const known = this.#thunks?.get(name)
    if (known !== undefined) return known
    // A function in an activation is a thunk by its contract; it never throws.
    const made = (value as () => CelResult)()
    this.#thunks ??= new Map()
    this.#thunks.set(name, made)
    return made
  }

  /** Adds to the cost; past the limit the run is over. */
  spend(cost: number): void {
    this.cost += cost
    if (this.cost > this.limit) this.stop()
  }

  /** Adds single steps one after the other: past the limit the cost is that of the step that passed it. */
  spendSteps(steps: number): void {
    this.cost += steps
    if (this.cost > this.limit) {
      this.cost = Math.max(this.cost - steps, this.limit) + 1
      this.stop()
    }
  }
}

/** cel-go's text when a program passes its limit. */
export const COST_MESSAGE = 'operation cancelled: actual cost limit exceeded'

/** The API server's text when a group of expressions passes its budget. */
export const BUDGET_MESSAGE =
  'validation failed due to running out of cost budget, no further validation rules will be run'

function ownLimit(options: EvaluateOptions): number {
  return options.limit ?? CEL_PER_CALL_COST
}

/** The error of a call whose arguments no overload takes. */
export function noSuchOverload(name?: string): CelError {
  return new CelError(name === undefined ? 'no such overload' : `no such overload: ${name}`)
}
