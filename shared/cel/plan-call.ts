import type { CallNode } from './ast.ts'
import type { Step } from './attribute.ts'
import { boundStep, dispatchStep, singletonStep } from './call.ts'
import type { CallCost } from './cost.ts'
import type { Implementation, Library } from './implementation.ts'
import { PlanFault } from './planned.ts'

const FUNCTIONS = new WeakMap<Library, ReadonlyMap<string, readonly Implementation[]>>()

/** The implementations of a library by function name, worked out once for each library. */
function functionsOf(library: Library): ReadonlyMap<string, readonly Implementation[]> {
  const known = FUNCTIONS.get(library)
  if (known !== undefined) return known
  const made = new Map<string, Implementation[]>()
  for (const impl of Object.values(library)) {
    const named = made.get(impl.fn)
    if (named === undefined) made.set(impl.fn, [impl])
    else named.push(impl)
  }
  FUNCTIONS.set(library, made)
  return made
}

/** The overload id of a call the checker resolved to one overload. */
export function resolvedOverload(node: CallNode): string | undefined {
  return node.overloads?.length === 1 ? node.overloads[0] : undefined
}

/** What may run for a call: the resolved overload, or every one of the function with as many parameters. */
export function candidatesOf(
  node: CallNode,
  arity: number,
  library: Library,
): readonly Implementation[] {
  const overload = resolvedOverload(node)
  if (overload !== undefined && Object.hasOwn(library, overload)) {
    const impl = library[overload]
    if (impl !== undefined) return [impl]
  }
  const named = functionsOf(library).get(node.fn) ?? []
  return named.filter(({ args }) => args === undefined || args.length === arity)
}

/**
 * The step of a library call, bound in the way cel-go binds the function. A checked call that nothing implements has no
 * program; an unchecked one fails when it runs.
 */
export function callStep(
  node: CallNode,
  candidates: readonly Implementation[],
  steps: readonly Step[],
  cost: CallCost,
): Step {
  const { fn } = node
  const [impl] = candidates
  if (impl === undefined && node.overloads !== undefined) {
    throw new PlanFault(`no such overload: ${fn}`)
  }
  const short = steps.length <= 2 && impl !== undefined && impl.variadic === undefined
  if (short && candidates.length === 1) return boundStep(impl, steps, cost)
  if (short && impl.singleton === true) return singletonStep(fn, candidates, steps, cost)
  return dispatchStep(fn, candidates, steps, cost)
}
