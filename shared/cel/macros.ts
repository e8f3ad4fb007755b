import { CEL_MAX_NODES } from '../limits.ts'
import type { Node } from './ast.ts'
import { type Builder, countNodes } from './tree.ts'

/** The accumulator of every fold; no expression can spell it. */
export const ACCUMULATOR = '@result'

/** Names the loop variable of a fold that is run for its accumulator alone, as `cel.bind` is. */
export const UNUSED = '#unused'

/** Thrown by an expander when the call is the macro but its arguments are not what it takes. */
export class MacroFault extends Error {
  readonly node: Node
  constructor(node: Node, message: string) {
    super(message)
    this.node = node
  }
}

/** A call that is rewritten when it is parsed. */
export interface Macro {
  name: string
  /** Written `target.name(…)`. */
  receiver: boolean
  /** Number of arguments; absent when it takes any. */
  args?: number
  /** The rewritten call; undefined when this call is an ordinary one after all. */
  expand(build: Builder, args: Node[], target: Node | undefined): Node | undefined
}

type Expand = (build: Builder, args: Node[], target: Node) => Node | undefined

function receiverMacro(name: string, args: number | undefined, expand: Expand): Macro {
  return {
    name,
    receiver: true,
    ...(args === undefined ? {} : { args }),
    expand: (build, given, target) => target && expand(build, given, target),
  }
}

/** `has`, and `all exists exists_one existsOne map filter` with one variable: in every environment. */
export const STANDARD_MACROS: readonly Macro[] = [
  { name: 'has', receiver: false, args: 1, expand: (build, args) => has(build, nth(args, 0)) },
  receiverMacro('all', 2, (b, args, range) => all(b, range, [loopVar(nth(args, 0))], nth(args, 1))),
  receiverMacro('exists', 2, (b, args, range) =>
    exists(b, range, [loopVar(nth(args, 0))], nth(args, 1)),
  ),
  ...['exists_one', 'existsOne'].map((name) =>
    receiverMacro(name, 2, (b, args, range) =>
      existsOne(b, range, [loopVar(nth(args, 0))], nth(args, 1)),
    ),
  ),
  receiverMacro('map', 2, (b, args, range) =>
    mapList(b, range, [listVar(nth(args, 0))], undefined, nth(args, 1)),
  ),
  receiverMacro('map', 3, (b, args, range) =>
    mapList(b, range, [listVar(nth(args, 0))], nth(args, 1), nth(args, 2)),
  ),
  receiverMacro('filter', 2, (b, args, range) =>
    mapList(b, range, [listVar(nth(args, 0))], nth(args, 1), nth(args, 0)),
  ),
]

/** `optMap`, `optFlatMap`: with optional types. */
export const OPTIONAL_MACROS: readonly Macro[] = [
  receiverMacro('optMap', 2, (b, args, target) => optionalMap(b, args, target, 'optMap')),
  receiverMacro('optFlatMap', 2, (b, args, target) => optionalMap(b, args, target, 'optFlatMap')),
]

/** `all exists existsOne exists_one transformList transformMap transformMapEntry` with two variables. */
export const TWO_VARIABLE_MACROS: readonly Macro[] = [
  receiverMacro('all', 3, (b, args, range) => all(b, range, loopVars(args), nth(args, 2))),
  receiverMacro('exists', 3, (b, args, range) => exists(b, range, loopVars(args), nth(args, 2))),
  ...['existsOne', 'exists_one'].map((name) =>
    receiverMacro(name, 3, (b, args, range) => existsOne(b, range, loopVars(args), nth(args, 2))),
  ),
  receiverMacro('transformList', 3, (b, args, range) =>
    mapList(b, range, loopVars(args), undefined, nth(args, 2)),
  ),
  receiverMacro('transformList', 4, (b, args, range) =>
    mapList(b, range, loopVars(args), nth(args, 2), nth(args, 3)),
  ),
  ...[3, 4].flatMap((count) => [
    receiverMacro('transformMap', count, (b, args, range) => transformMap(b, args, range, true)),
    receiverMacro('transformMapEntry', count, (b, args, range) =>
      transformMap(b, args, range, false),
    ),
  ]),
]

/** `sortBy`: with the lists library. */
export const SORT_BY_MACROS: readonly Macro[] = [receiverMacro('sortBy', 2, sortBy)]

/** `cel.bind`: with the bindings library. */
export const BIND_MACROS: readonly Macro[] = [receiverMacro('bind', 3, bind)]

/** `math.greatest least bitAnd bitOr bitXor`, which take any number of arguments: with the math library. */
export const MATH_MACROS: readonly Macro[] = [
  receiverMacro('greatest', undefined, (b, args, target) => extremum(b, args, target, 'greatest')),
  receiverMacro('least', undefined, (b, args, target) => extremum(b, args, target, 'least')),
  ...['bitAnd', 'bitOr', 'bitXor'].map((name) =>
    receiverMacro(name, undefined, (b, args, target) => bitwise(b, args, target, name)),
  ),
]

function has(build: Builder, arg: Node): Node {
  if (arg.k === 'select') return build.presence(arg)
  throw new MacroFault(arg, 'invalid argument to has() macro')
}

type Vars = readonly [string, string?]

function fold(
  build: Builder,
  range: Node,
  [iterVar, iterVar2]: Vars,
  parts: { accuInit: Node; condition: Node; step: Node; result: Node },
): Node {
  const second = iterVar2 === undefined ? {} : { iterVar2 }
  return build.fold({ range, iterVar, ...second, accuVar: ACCUMULATOR, ...parts })
}

function all(build: Builder, range: Node, vars: Vars, predicate: Node): Node {
  return fold(build, range, vars, {
    accuInit: build.literal({ bool: true }),
    condition: build.call('@not_strictly_false', build.ident(ACCUMULATOR)),
    step: build.call('_&&_', build.ident(ACCUMULATOR), predicate),
    result: build.ident(ACCUMULATOR),
  })
}

function exists(build: Builder, range: Node, vars: Vars, predicate: Node): Node {
  const notYet = build.call('!_', build.ident(ACCUMULATOR))
  return fold(build, range, vars, {
    accuInit: build.literal({ bool: false }),
    condition: build.call('@not_strictly_false', notYet),
    step: build.call('_||_', build.ident(ACCUMULATOR), predicate),
    result: build.ident(ACCUMULATOR),
  })
}

function existsOne(build: Builder, range: Node, vars: Vars, predicate: Node): Node {
  const oneMore = build.call('_+_', build.ident(ACCUMULATOR), build.literal({ int: '1' }))
  return fold(build, range, vars, {
    accuInit: build.literal({ int: '0' }),
    condition: build.literal({ bool: true }),
    step: build.call('_?_:_', predicate, oneMore, build.ident(ACCUMULATOR)),
    result: build.call('_==_', build.ident(ACCUMULATOR), build.literal({ int: '1' })),
  })
}

function mapList(
  build: Builder,
  range: Node,
  vars: Vars,
  filter: Node | undefined,
  transform: Node,
): Node {
  const added = build.call('_+_', build.ident(ACCUMULATOR), build.list(transform))
  return fold(build, range, vars, {
    accuInit: build.list(),
    condition: build.literal({ bool: true }),
    step: filtered(build, filter, added),
    result: build.ident(ACCUMULATOR),
  })
}

function transformMap(build: Builder, args: Node[], range: Node, keepsKey: boolean): Node {
  const vars = loopVars(args)
  const filter = args.length === 4 ? args[2] : undefined
  const transform = nth(args, args.length - 1)
  const entry = keepsKey ? [build.ident(vars[0]), transform] : [transform]
  const inserted = build.call('cel.@mapInsert', build.ident(ACCUMULATOR), ...entry)
  return fold(build, range, vars, {
    accuInit: build.emptyMap(),
    condition: build.literal({ bool: true }),
    step: filtered(build, filter, inserted),
    result: build.ident(ACCUMULATOR),
  })
}

function filtered(build: Builder, filter: Node | undefined, step: Node): Node {
  return filter === undefined ? step : build.call('_?_:_', filter, step, build.ident(ACCUMULATOR))
}

function optionalMap(build: Builder, args: Node[], target: Node, name: string): Node {
  const [variable, transform] = [nth(args, 0), nth(args, 1)]
  if (variable.k !== 'ident') {
    throw new MacroFault(variable, `${name}() variable name must be a simple identifier`)
  }
  if (countNodes(target, CEL_MAX_NODES) > CEL_MAX_NODES) {
    throw new MacroFault(target, `expression count exceeds limit of ${CEL_MAX_NODES}`)
  }
  const value = build.member('value', build.copy(target))
  const mapped = bound(build, variable.name, value, transform)
  return build.call(
    '_?_:_',
    build.member('hasValue', target),
    name === 'optMap' ? build.call('optional.of', mapped) : mapped,
    build.call('optional.none'),
  )
}

/** `name` stands for `value` in `result`; `value` is evaluated when first used. */
function bound(build: Builder, name: string, value: Node, result: Node): Node {
  return build.fold({
    range: build.list(),
    iterVar: UNUSED,
    accuVar: name,
    accuInit: value,
    condition: build.literal({ bool: false }),
    step: build.ident(name),
    result,
  })
}

function bind(build: Builder, args: Node[], target: Node): Node | undefined {
  if (!isNamespace(target, 'cel')) return undefined
  const variable = nth(args, 0)
  if (variable.k !== 'ident') {
    throw new MacroFault(variable, 'cel.bind() variable names must be simple identifiers')
  }
  return bound(build, variable.name, nth(args, 1), nth(args, 2))
}

/** Names the list while `sortBy` makes its keys. */
export const SORT_INPUT = '@__sortBy_input__'
const SORTABLE: ReadonlySet<Node['k']> = new Set(['list', 'select', 'ident', 'fold', 'call'])

function sortBy(build: Builder, args: Node[], target: Node): Node {
  if (!SORTABLE.has(target.k)) {
    throw new MacroFault(
      target,
      'sortBy can only be applied to a list, identifier, comprehension, call or select expression',
    )
  }
  const variable = listVar(nth(args, 0))
  const keys = mapList(build, build.ident(SORT_INPUT), [variable], undefined, nth(args, 1))
  const sorted = build.member('@sortByAssociatedKeys', build.ident(SORT_INPUT), keys)
  return bound(build, SORT_INPUT, target, sorted)
}

function extremum(
  build: Builder,
  args: Node[],
  target: Node,
  name: 'greatest' | 'least',
): Node | undefined {
  if (!isNamespace(target, 'math')) return undefined
  const fn = name === 'greatest' ? 'math.@max' : 'math.@min'
  const numbers = numericArgs(args, target, `math.${name}()`)
  return numbers.length < 3 ? build.call(fn, ...numbers) : build.call(fn, build.list(...numbers))
}

function bitwise(build: Builder, args: Node[], target: Node, name: string): Node | undefined {
  if (!isNamespace(target, 'math')) return undefined
  const fn = `math.@${name}`
  const numbers = numericArgs(args, target, `${fn}()`)
  return numbers.length === 2 ? build.call(fn, ...numbers) : build.call(fn, build.list(...numbers))
}

function numericArgs(args: Node[], target: Node, name: string): Node[] {
  const [first] = args
  if (first === undefined) throw new MacroFault(target, `${name} requires at least one argument`)
  if (args.length === 1) {
    if (isNumericList(first) || mayBeNumeric(first)) return args
    throw new MacroFault(first, `${name} invalid single argument value`)
  }
  for (const arg of args) {
    if (mayBeNumeric(arg)) continue
    throw new MacroFault(arg, `${name} simple literal arguments must be numeric`)
  }
  return args
}

function isNumericList(node: Node): boolean {
  return node.k === 'list' && node.elements.length > 0 && node.elements.every(mayBeNumeric)
}

function mayBeNumeric(node: Node): boolean {
  if (node.k === 'const') {
    return 'int' in node.value || 'uint' in node.value || 'double' in node.value
  }
  return node.k !== 'list' && node.k !== 'map' && node.k !== 'struct'
}

function isNamespace(target: Node, name: string): boolean {
  return target.k === 'ident' && target.name === name
}

function loopVar(node: Node): string {
  return simpleName(node, 'argument must be a simple name')
}

function listVar(node: Node): string {
  return simpleName(node, 'argument is not an identifier')
}

function loopVars(args: Node[]): [string, string] {
  const first = loopVar(nth(args, 0))
  const second = loopVar(nth(args, 1))
  if (first === second) throw new MacroFault(nth(args, 1), `duplicate variable name: ${first}`)
  return [first, second]
}

function simpleName(node: Node, message: string): string {
  if (node.k === 'ident') return node.name
  throw new MacroFault(node, message)
}

/** The parser matches the number of arguments before it expands. */
function nth(args: readonly Node[], index: number): Node {
  const arg = args[index]
  if (arg === undefined) throw new RangeError(`a macro without its argument ${index}`)
  return arg
}
