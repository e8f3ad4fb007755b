import type { Activation, Frame } from './frame.ts'
import type { Program } from './program.ts'
import { LazyMap } from './qualify.ts'
import { CelError, type CelResult, type CelValue } from './values.ts'

/** A policy variable: its program, or why it has none. */
export interface NamedProgram {
  name: string
  program: Program | { fault: string }
}

interface Memo {
  result: CelResult
  pending: boolean
}

/**
 * The value of the name `variables`: each is evaluated when first used and kept, errors too, for as long as this object
 * lives: one pass over one group of expressions. Their cost is counted here and drawn from the budget of whoever asked.
 */
export class Variables extends LazyMap {
  /** Cost of all variables evaluated so far. */
  cost = 0
  readonly #programs: ReadonlyMap<string, NamedProgram>
  readonly #activation: Activation
  readonly #memos = new Map<string, Memo>()

  /** `activation` is what the variables themselves see; `variables` is added to it. */
  constructor(programs: readonly NamedProgram[], activation: Activation) {
    super()
    this.#programs = new Map(programs.map((each) => [each.name, each]))
    this.#activation = { ...activation, variables: this }
  }

  /** Cost so far, and forgotten: what the next expression of the group adds is then counted from 0. */
  takeCost(): number {
    const { cost } = this
    this.cost = 0
    return cost
  }

  override lookup(key: CelValue, frame: Frame): CelResult | undefined {
    const name = typeof key === 'string' ? unescapeName(key) : undefined
    const named = name === undefined ? undefined : this.#programs.get(name)
    if (named === undefined) return undefined
    const memo = this.#memos.get(named.name) ?? this.#evaluate(named, frame)
    if (memo.pending) frame.pending = true
    return memo.result
  }

  #evaluate({ name, program }: NamedProgram, parent: Frame): Memo {
    if ('fault' in program) {
      const result = failed(name, 'compile', program.fault)
      return this.#keep(name, { result, pending: false })
    }
    const outcome = program.evaluateFor(parent, this.#activation)
    this.cost += outcome.cost
    const result =
      outcome.kind === 'value' ? outcome.value : failed(name, 'evaluate', outcome.message)
    return this.#keep(name, { result, pending: outcome.pending })
  }

  #keep(name: string, memo: Memo): Memo {
    this.#memos.set(name, memo)
    return memo
  }
}

function failed(name: string, what: 'compile' | 'evaluate', message: string): CelError {
  return new CelError(`composited variable "${name}" fails to ${what}: ${message}`)
}

const RESERVED =
  'true false null in as break const continue else for function if import let loop package namespace return var void while'
const ESCAPED = new Map<string, string>([
  ['__underscores__', '__'],
  ['__dot__', '.'],
  ['__dash__', '-'],
  ['__slash__', '/'],
  ...RESERVED.split(' ').map((word): [string, string] => [`__${word}__`, word]),
])

/** The name an escaped field name stands for: `__namespace__` → `namespace`. */
export function unescapeName(name: string): string {
  if (!name.includes('__')) return name
  const whole = ESCAPED.get(name)
  if (whole !== undefined) return whole
  return name.replace(/__(?:underscores|dot|dash|slash)__/g, (part) => ESCAPED.get(part) ?? part)
}
