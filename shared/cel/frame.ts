import { CEL_MAX_UNPAID_STEPS, CEL_PER_CALL_COST } from '../limits.ts'
import type { Budget, Host } from './types.ts'
import { CelError, type CelResult, type CelValue, runeCount } from './values.ts'

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

/** A JSON map with more keys than this has them listed once a run. */
const LARGE_MAP = 256
/** A text longer than this is worth counting when a call of flat cost reads it, characters. */
const LONG_TEXT = 4096

/** cel-go's text when a program passes its limit. */
const LIMIT_MESSAGE = 'operation cancelled: actual cost limit exceeded'
/** The API server's text when a group of expressions passes its budget. */
const BUDGET_MESSAGE =
  'validation failed due to running out of cost budget, no further validation rules will be run'

/** Ends an evaluation from inside: the cost limit, or a fault cel-go ends the whole run for. Never leaves `evaluate`. */
export class Stop {
  readonly code: 'cost' | 'evaluation'
  readonly message: string
  constructor(code: 'cost' | 'evaluation', message: string) {
    this.code = code
    this.message = message
  }
}

/** Ends the run of a variable, and of the expression that asked for it: the budget both draw from is spent. */
export class BudgetStop extends Stop {
  constructor() {
    super('cost', BUDGET_MESSAGE)
  }
}

/** One run of one program: its variables, its locals, its cost so far. */
export class Frame {
  cost = 0
  readonly options: EvaluateOptions
  /** Values of the comprehension variables in scope, by slot. */
  readonly locals: (CelResult | undefined)[]
  /** True once a host call of this run had no answer yet. */
  pending = false
  /** The run stops when `cost` is above it: its own limit, or what the budget has left. */
  #limit: number
  readonly #activation: Activation
  #thunks: Map<string, CelResult> | undefined
  #keys: WeakMap<object, readonly string[]> | undefined
  #toil = 0
  #joined: string | undefined
  #joinedRunes = 0

  constructor(activation: Activation, slots: number, options: EvaluateOptions) {
    this.#activation = activation
    this.options = options
    this.locals = new Array(slots)
    this.#limit = this.#ownLimit
    this.#drawFromBudget()
  }

  get #ownLimit(): number {
    return this.options.limit ?? CEL_PER_CALL_COST
  }

  /** The value of a name, or undefined when the activation has none. */
  resolve(name: string): CelResult | undefined {
    if (!Object.hasOwn(this.#activation, name)) return undefined
    const value = this.#activation[name]
    // What is no function is JSON or a CEL value by the activation's contract.
    if (typeof value !== 'function') return value as CelResult
    const known = this.#thunks?.get(name)
    if (known !== undefined) return known
    const made = (value as () => CelResult)()
    this.#thunks ??= new Map()
    this.#thunks.set(name, made)
    return made
  }

  /** The keys of a JSON map. Those of a large one are kept for this run: loops ask for them at each turn, at next to no cost. */
  keysOf(map: { [key: string]: CelValue }): readonly string[] {
    const known = this.#keys?.get(map)
    if (known !== undefined) return known
    const keys = Object.keys(map)
    if (keys.length > LARGE_MAP) {
      this.#keys ??= new WeakMap()
      this.#keys.set(map, keys)
    }
    return keys
  }

  /** Number of code points; of the text last joined it is known, and the text need not be read for it. */
  runesOf(text: string): number {
    return text === this.#joined ? this.#joinedRunes : runeCount(text)
  }

  /** Two texts in one, whose number of code points is that of both. */
  joined(text: string, runes: number): string {
    this.#joined = text
    this.#joinedRunes = runes
    return text
  }

  /** Counts work that the cost does not pay for, in steps of about a nanosecond; past the bound the run is over. */
  toil(steps: number): void {
    this.#toil += steps
    if (this.#toil > CEL_MAX_UNPAID_STEPS) {
      throw new Stop('evaluation', 'the evaluation does far more work than its cost pays for')
    }
  }

  /** Counts an argument that a call of flat cost reads through. */
  toilOver(value: CelResult): void {
    if (typeof value === 'string' && value.length > LONG_TEXT) this.toil(value.length)
  }

  /** Adds to the cost; past the limit the run is over. */
  spend(cost: number): void {
    this.cost += cost
    if (this.cost > this.#limit) this.#stop()
  }

  /** Adds single steps one after the other: past the limit the cost is that of the step that passed it. */
  spendSteps(steps: number): void {
    this.cost += steps
    if (this.cost <= this.#limit) return
    this.cost = Math.max(this.cost - steps, this.#limit) + 1
    this.#stop()
  }

  /** Charges the budget for a variable this run has evaluated, which leaves less of it for the run itself. */
  chargeBudget(cost: number): void {
    const { budget } = this.options
    if (budget === undefined) return
    budget.spent += cost
    this.#drawFromBudget()
    if (this.cost > this.#limit) this.#stop()
  }

  #drawFromBudget(): void {
    const { budget } = this.options
    if (budget !== undefined) this.#limit = Math.min(this.#ownLimit, budget.limit - budget.spent)
  }

  #stop(): never {
    if (this.cost > this.#ownLimit) throw new Stop('cost', LIMIT_MESSAGE)
    throw new BudgetStop()
  }
}

/** The error of a call whose arguments no overload takes. */
export function noSuchOverload(name?: string): CelError {
  return new CelError(name === undefined ? 'no such overload' : `no such overload: ${name}`)
}

/** The run that is under way: an evaluation is synchronous, so there is one at a time, and those of its variables within. */
let running: Frame | undefined

/** Makes `toil` count on this frame, or on none; gives what it counted on before, to be put back. */
export function begin(frame: Frame | undefined): Frame | undefined {
  const outer = running
  running = frame
  return outer
}

/**
 * Counts work on the run that is under way, if any, for whatever walks through a value. A list that holds another one twice,
 * which holds another one twice, is small to make and has no end of parts to look at.
 */
export function toil(steps: number): void {
  running?.toil(steps)
}
