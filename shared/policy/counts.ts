import type { CallNode, FoldNode, Node, SelectNode } from '../cel/ast.ts'
import { walk } from '../cel/tree.ts'
import { COUNTS } from './image-library.ts'
import type { CompiledPolicy } from './types.ts'

/**
 * How a value depends on the counts that `verifyImageSignatures` and `verifyAttestationSignatures` give: `none`; `up` when higher counts can only make it higher (false
 * is below true, lists are compared item by item); `any` when they may do anything to it, or nobody knows.
 */
type Dependence = 'none' | 'up' | 'any'

/** Names of comprehension variables in scope. A name that is not here does not depend on counts. */
type Scope = ReadonlyMap<string, Dependence>

/**
 * True when every validation that holds still holds if more signatures count, so that one which could not be checked can be left
 * out of a count without admitting anything. `verify(…) > 0` and `verify(…) >= 2` are of that kind, alone, in `all`, `exists`, `map`,
 * and joined by `&&` and `||`; `verify(…) == 0`, `!(verify(…) > 0)` and counts compared with each other are not. In doubt: false.
 *
 * Whom an attestor stands for depends on no count, also where expressions say it: that is refused when the policy loads (`compile.ts`).
 * `extractPayload` depends on no count: once anything was counted without being known it is an error (`engine/calls.ts`), and what absorbs
 * an error would absorb any value.
 */
export function moreNeverHurts(policy: Pick<CompiledPolicy, 'variables' | 'validations'>): boolean {
  const variables = new Map<string, Dependence>()
  const counts = new Counts(variables)
  for (const { name, expression } of policy.variables) {
    variables.set(name, counts.dependence(expression.ast))
  }
  return policy.validations.every(({ expression }) => counts.dependence(expression.ast) !== 'any')
}

class Counts {
  /** By name, those that were looked at so far: a variable sees only the ones before it. */
  readonly #variables: ReadonlyMap<string, Dependence>

  constructor(variables: ReadonlyMap<string, Dependence>) {
    this.#variables = variables
  }

  dependence(node: Node, scope: Scope = new Map()): Dependence {
    switch (node.k) {
      case 'const':
        return 'none'
      case 'ident':
        return this.#name(node.name, scope)
      case 'select':
        return this.#select(node, scope)
      case 'call':
        return this.#call(node, scope)
      case 'list':
        return join(node.elements.map((element) => this.dependence(element, scope)))
      case 'fold':
        return this.#fold(node, scope)
      default:
        return this.#isFree(node, scope) ? 'none' : 'any'
    }
  }

  #name(name: string, scope: Scope): Dependence {
    const known = scope.get(name)
    if (known !== undefined || name !== 'variables') return known ?? 'none'
    return [...this.#variables.values()].every((each) => each === 'none') ? 'none' : 'any'
  }

  #select(node: SelectNode, scope: Scope): Dependence {
    const { operand, field } = node
    const isVariable = operand.k === 'ident' && operand.name === 'variables'
    const variable = isVariable ? this.#variables.get(field) : undefined
    if (variable !== undefined && node.test !== true) return variable
    return this.dependence(operand, scope) === 'none' ? 'none' : 'any'
  }

  #call({ fn, target, args }: CallNode, scope: Scope): Dependence {
    const parts = [...(target === undefined ? [] : [target]), ...args].map((part) =>
      this.dependence(part, scope),
    )
    const [first = 'none', second = 'none', third = 'none'] = parts
    const isFree = parts.every((part) => part === 'none')
    if (COUNTS.has(fn)) return isFree ? 'up' : 'any'
    if (isFree) return 'none'
    switch (fn) {
      case '_&&_':
      case '_||_':
      case '_+_':
      case '@not_strictly_false':
        return join(parts)
      case '_>_':
      case '_>=_':
        return second === 'none' ? first : 'any'
      case '_<_':
      case '_<=_':
        return first === 'none' ? second : 'any'
      case '_?_:_':
        return first === 'none' ? join([second, third]) : 'any'
      default:
        return 'any'
    }
  }

  /** What a macro became. A loop that ends early must end where more counts could not have changed the result. */
  #fold(node: FoldNode, scope: Scope): Dependence {
    if (this.#isFree(node, scope)) return 'none'
    const { range, iterVar, iterVar2, accuVar, accuInit, condition, step, result } = node
    const item = this.dependence(range, scope)
    const start = this.dependence(accuInit, scope)
    // Over nothing, as in `cel.bind`, the accumulator keeps its first value.
    const isNoLoop = range.k === 'list' && range.elements.length === 0
    const inner = new Map(scope)
      .set(iterVar, item)
      .set(iterVar2 ?? iterVar, item)
      .set(accuVar, isNoLoop ? start : join([start, 'up']))
    const goesOn = endsAtBound(condition, accuVar) || this.dependence(condition, inner) === 'none'
    const parts = [item, start, this.dependence(step, inner), this.dependence(result, inner)]
    return goesOn ? join(parts) : 'any'
  }

  /** True when nothing in the tree has to do with counts. */
  #isFree(node: Node, scope: Scope): boolean {
    let isFree = true
    walk(node, (part) => {
      if (part.k === 'call' && COUNTS.has(part.fn)) isFree = false
      if (part.k === 'ident' && this.#name(part.name, scope) !== 'none') isFree = false
    })
    return isFree
  }
}

/** `all` ends at false and `exists` at true: nothing is lower than the one or higher than the other. */
function endsAtBound(condition: Node, accuVar: string): boolean {
  if (condition.k !== 'call' || condition.fn !== '@not_strictly_false') return false
  const [argument] = condition.args
  const accumulator = argument?.k === 'call' && argument.fn === '!_' ? argument.args[0] : argument
  return accumulator?.k === 'ident' && accumulator.name === accuVar
}

function join(parts: readonly Dependence[]): Dependence {
  if (parts.includes('any')) return 'any'
  return parts.includes('up') ? 'up' : 'none'
}
