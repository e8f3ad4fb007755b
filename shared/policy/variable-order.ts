import { parse } from '../cel/parse.ts'
import { chainsOf } from '../cel/ranges.ts'
import { requestEnvironment } from './environment.ts'
import type { SourceExpression } from './expressions.ts'
import type { Faults } from './shape.ts'

/** A use of one variable in another. */
interface Use {
  name: string
  /** UTF-16 offset in the expression. */
  offset: number
}

/** Finds variables that use one another before they are there. Others than variables are none of its business. */
export class VariableOrder {
  /** In the order of the document; of two variables of one name, which are a fault, the first counts. */
  readonly #uses = new Map<string, readonly Use[]>()
  readonly #seen = new Set<string>()

  constructor(expressions: readonly SourceExpression[]) {
    for (const { name, source } of expressions) {
      if (name !== undefined && !this.#uses.has(name)) this.#uses.set(name, usesIn(source))
    }
  }

  /** Adds a fault for each use of a variable that comes later, naming the cycle if there is one, and says whether there was any. */
  addFaults({ name, path }: SourceExpression, faults: Faults): boolean {
    if (name === undefined || this.#seen.has(name)) return false
    this.#seen.add(name)
    const early = (this.#uses.get(name) ?? []).filter(
      (use) => this.#uses.has(use.name) && (use.name === name || !this.#seen.has(use.name)),
    )
    for (const use of early) {
      const cycle = this.#wayTo(name, use.name)
      const message =
        cycle === undefined
          ? `variable ${JSON.stringify(use.name)} comes later: a variable sees only those before it`
          : `variables need each other: ${[name, ...cycle].join(' → ')}`
      faults.report({ code: 'CEL_CHECK', path, message, offset: use.offset })
    }
    return early.length > 0
  }

  /** The variables on the way from one to another, both included; undefined when there is none. */
  #wayTo(target: string, from: string, passed = new Set<string>()): string[] | undefined {
    if (from === target) return [from]
    if (passed.has(from)) return undefined
    passed.add(from)
    for (const { name } of this.#uses.get(from) ?? []) {
      const way = this.#wayTo(target, name, passed)
      if (way !== undefined) return [from, ...way]
    }
    return undefined
  }
}

/** The first use of each variable. */
function usesIn(source: string): Use[] {
  const parsed = parse(source, requestEnvironment().macros)
  if (!parsed.ok) return []
  const uses = new Map<string, Use>()
  for (const { steps } of chainsOf(parsed.ast, 'variables')) {
    const [first] = steps
    if (first?.key === undefined || uses.has(first.key)) continue
    const isDot = !first.index
    const offset = isDot ? first.pos[1] - first.key.length : first.pos[0]
    uses.set(first.key, { name: first.key, offset })
  }
  return [...uses.values()]
}
