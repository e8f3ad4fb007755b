import type { Node } from '../cel/ast.ts'
import { chainsOf } from '../cel/ranges.ts'

/** Of the names that expressions of a policy see, those that an expression reads itself or through the variables before it. */
export class Reads {
  readonly #names: readonly string[]
  readonly #variables = new Map<string, ReadonlySet<string>>()

  constructor(names: readonly string[]) {
    this.#names = names
  }

  /** Notes what the variable of a policy is. */
  variable(name: string, ast: Node): void {
    this.#variables.set(name, this.of(ast))
  }

  of(ast: Node): Set<string> {
    const read = new Set(this.#names.filter((name) => chainsOf(ast, name).length > 0))
    for (const { steps } of chainsOf(ast, 'variables')) {
      // Whoever does not say which one may read any.
      const known = this.#variables.get(steps[0]?.key ?? '')
      const through = known === undefined ? [...this.#variables.values()] : [known]
      for (const name of through.flatMap((names) => [...names])) read.add(name)
    }
    return read
  }
}
