import { CEL_MAX_TYPE_SIZE } from '../limits.ts'
import type { CallNode, FoldNode, ListNode, MapNode, Node, SelectNode, StructNode } from './ast.ts'
import type { Environment } from './environment.ts'
import type { CheckedFunction, Signature } from './functions.ts'
import { instantiate, mostGeneral, Substitution, TypeLimit } from './infer.ts'
import type { Places } from './tree.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DYN,
  ERROR,
  INT,
  isDyn,
  isOptional,
  listOf,
  mapOf,
  NULL,
  optionalOf,
  printType,
  STRING,
  sameType,
  type Type,
  UINT,
  unwrapOptional,
} from './type.ts'

/** A fault of the check, at a UTF-16 offset. */
export interface CheckFault {
  offset: number
  message: string
}

/** The outcome of a check. With faults, `ast` and `types` are not to be used. */
export interface Checked {
  /** The same tree, names resolved and overloads attached. */
  ast: Node
  /** The type of the whole expression. */
  type: Type
  /** The type of a node of the tree. */
  typeOf(node: Node): Type
  faults: readonly CheckFault[]
}

/**
 * Infers the type of every node by cel-go's algorithm and resolves every name. The tree given is changed: identifiers get
 * their full names, calls the ids of all overloads that match.
 */
export function check(ast: Node, places: Places, environment: Environment): Checked {
  const checker = new Checker(places, environment)
  const typeOf = (node: Node) => checker.finalType(node)
  try {
    const checked = checker.check(ast)
    return { ast: checked, type: typeOf(checked), typeOf, faults: checker.faults }
  } catch (thrown) {
    if (!(thrown instanceof TypeLimit)) throw thrown
    const faults = [{ offset: places.of(checker.reached ?? ast), message: thrown.message }]
    return { ast, type: ERROR, typeOf, faults }
  }
}

/** Variables of folds, innermost last. */
type Scope = Map<string, Type>

class Checker {
  readonly faults: CheckFault[] = []
  /** The last node that was begun. */
  reached: Node | undefined
  readonly #places: Places
  readonly #environment: Environment
  readonly #substitution = new Substitution()
  readonly #types: Type[] = []
  readonly #scopes: Scope[] = []

  constructor(places: Places, environment: Environment) {
    this.#places = places
    this.#environment = environment
  }

  /** Checks a node; what comes back takes its place in the tree. */
  check(node: Node): Node {
    this.reached = node
    switch (node.k) {
      case 'const':
        return this.#typed(node, constType(node.value))
      case 'ident':
        return this.#ident(node)
      case 'select':
        return this.#select(node)
      case 'call':
        return node.fn === '_?._' ? this.#optionalSelect(node) : this.#call(node)
      case 'list':
        return this.#list(node)
      case 'map':
        return this.#map(node)
      case 'struct':
        return this.#struct(node)
      case 'fold':
        return this.#fold(node)
    }
  }

  /** The type of a checked node, type variables replaced. */
  finalType(node: Node): Type {
    return this.#substitution.apply(this.#typeOf(node), true)
  }

  #typed<N extends Node>(node: N, type: Type): N {
    if (type.size > CEL_MAX_TYPE_SIZE) throw new TypeLimit()
    this.#types[node.id] = type
    return node
  }

  #typeOf(node: Node): Type {
    return this.#types[node.id] ?? ERROR
  }

  #fault(node: Node, message: string): void {
    this.faults.push({ offset: this.#places.of(node), message })
  }

  #undeclared(node: Node, name: string): void {
    const { container } = this.#environment
    this.#fault(node, `undeclared reference to '${name}' (in container '${container}')`)
  }

  #mismatch(node: Node, expected: Type, found: Type): void {
    const types = `expected type '${printType(expected)}' but found '${printType(found)}'`
    this.#fault(node, types)
  }

  // --- names

  #local(name: string): Type | undefined {
    for (let i = this.#scopes.length - 1; i >= 0; i--) {
      const type = this.#scopes[i]?.get(name)
      if (type !== undefined) return type
    }
    return undefined
  }

  /** What a name without dots stands for: a variable of a fold, else a declared name. */
  #resolve(name: string): { name: string; type: Type } | undefined {
    const local = this.#local(name)
    return local === undefined ? this.#resolveGlobal(name) : { name, type: local }
  }

  #resolveGlobal(name: string): { name: string; type: Type } | undefined {
    for (const candidate of this.#environment.candidates(name)) {
      const type = this.#environment.ident(candidate)
      if (type === undefined) continue
      // A variable of a fold hides the declared one: the dot keeps them apart when the program runs.
      const hidden = this.#local(candidate) !== undefined
      return { name: hidden ? `.${candidate}` : candidate, type }
    }
    return undefined
  }

  #ident(node: Node & { k: 'ident' }): Node {
    const found = this.#resolve(node.name)
    if (found === undefined) {
      this.#undeclared(node, node.name)
      return this.#typed(node, ERROR)
    }
    node.name = found.name
    return this.#typed(node, found.type)
  }

  /** `a.b.c` as a declared name with dots; undefined when the node is something else. */
  #qualifiedName(node: Node): string | undefined {
    const root = rootOf(node)
    if (root === undefined || !this.#environment.mayQualify(root)) return undefined
    return this.#local(root) === undefined ? dottedName(node) : undefined
  }

  // --- selection

  #select(node: SelectNode): Node {
    const name = node.test ? undefined : this.#qualifiedName(node)
    const declared = name === undefined ? undefined : this.#resolveGlobal(name)
    if (declared !== undefined) {
      return this.#typed(
        { k: 'ident', id: node.id, pos: node.pos, name: declared.name },
        declared.type,
      )
    }
    node.operand = this.check(node.operand)
    const type = this.#fieldType(node, node.operand, node.field, false)
    return this.#typed(node, node.test ? BOOL : this.#substitution.apply(type, false))
  }

  #optionalSelect(node: CallNode): Node {
    const [operand, field] = node.args
    if (operand === undefined || field?.k !== 'const' || !('string' in field.value)) {
      this.#fault(node, 'unsupported optional field selection')
      return this.#typed(node, ERROR)
    }
    const checked = this.check(operand)
    node.args = [checked, this.#typed(field, STRING)]
    const type = this.#fieldType(node, checked, field.value.string, true)
    node.overloads = ['select_optional_field']
    return this.#typed(node, this.#substitution.apply(type, false))
  }

  #fieldType(node: Node, operand: Node, field: string, optional: boolean): Type {
    const operandType = this.#substitution.apply(this.#typeOf(operand), false)
    const target = unwrapOptional(operandType)
    const type = this.#fieldOf(node, target, field)
    return optional || isOptional(operandType) ? optionalOf(type) : type
  }

  #fieldOf(node: Node, target: Type, field: string): Type {
    switch (target.kind) {
      case 'map':
        return target.params[1] ?? DYN
      case 'struct':
        return this.#declaredField(target.name, field, (message) => this.#fault(node, message))
      case 'param':
        this.#substitution.assignable(DYN, target)
        return DYN
      case 'any':
      case 'dyn':
      case 'error':
        return DYN
      default:
        this.#fault(node, `type '${printType(target)}' does not support field selection`)
        return DYN
    }
  }

  #declaredField(typeName: string, field: string, fault: (message: string) => void): Type {
    if (!this.#environment.hasFields(typeName)) {
      fault(`unexpected failed resolution of '${typeName}'`)
      return ERROR
    }
    const type = this.#environment.field(typeName, field)
    if (type === undefined) fault(`undefined field '${field}'`)
    return type ?? ERROR
  }

  // --- calls

  #call(node: CallNode): Node {
    node.args = node.args.map((arg) => this.check(arg))
    if (node.target === undefined) return this.#globalCall(node)
    const prefix = this.#functionPrefix(node.target)
    const qualified = prefix === undefined ? undefined : this.#function(`${prefix}.${node.fn}`)
    if (qualified !== undefined) {
      delete node.target
      node.fn = qualified.name
      return this.#resolved(node, qualified, node.args)
    }
    node.target = this.check(node.target)
    const found = this.#function(node.fn)
    if (found !== undefined) return this.#resolved(node, found, [node.target, ...node.args])
    this.#undeclared(node, node.fn)
    return this.#typed(node, ERROR)
  }

  #globalCall(node: CallNode): Node {
    const found = this.#function(node.fn)
    if (found === undefined) {
      this.#undeclared(node, node.fn)
      return this.#typed(node, ERROR)
    }
    node.fn = found.name
    return this.#resolved(node, found, node.args)
  }

  #functionPrefix(target: Node): string | undefined {
    const root = rootOf(target)
    if (root === undefined || !this.#environment.mayQualify(root)) return undefined
    return dottedName(target)
  }

  #function(name: string): CheckedFunction | undefined {
    for (const candidate of this.#environment.candidates(name)) {
      const found = this.#environment.function(candidate)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Attaches the overloads that match, or reports that none does. */
  #resolved(node: CallNode, fn: CheckedFunction, args: readonly Node[]): Node {
    if (node.fn === '_&&_' || node.fn === '_||_') return this.#logical(node, fn)
    const argTypes = args.map((arg) => this.#typeOf(arg))
    const { overloads, type } = this.#matching(fn, argTypes, node.target !== undefined)
    if (type === undefined) {
      const closed = argTypes.map((arg) => this.#substitution.apply(arg, true))
      const applied = signatureText(closed, node.target !== undefined)
      this.#fault(node, `found no matching overload for '${fn.name}' applied to '${applied}'`)
      return this.#typed(node, ERROR)
    }
    node.overloads = overloads
    return this.#typed(node, type)
  }

  #matching(
    fn: CheckedFunction,
    argTypes: readonly Type[],
    member: boolean,
  ): { overloads: string[]; type: Type | undefined } {
    const overloads: string[] = []
    let type: Type | undefined
    for (const signature of fn.signatures) {
      if (signature.member !== member) continue
      const base = this.#substitution.reserve(signature.variables)
      if (signature.args.length !== argTypes.length) continue
      if (!this.#substitution.allAssignable(argTypes, paramsOf(signature, base))) continue
      overloads.push(signature.id)
      const result = this.#substitution.apply(instantiate(signature.result, base), false)
      if (type === undefined) type = result
      else if (!isDyn(type) && !sameType(type, result)) type = DYN
    }
    return { overloads, type }
  }

  /** `&&` and `||` report each operand that is not a bool at its own place. */
  #logical(node: CallNode, fn: CheckedFunction): Node {
    let ok = true
    for (const arg of node.args) {
      const type = this.#typeOf(arg)
      if (this.#substitution.assignable(type, BOOL)) continue
      this.#mismatch(arg, BOOL, this.#substitution.apply(type, false))
      ok = false
    }
    node.overloads = fn.signatures.map((signature) => signature.id)
    return this.#typed(node, ok ? BOOL : ERROR)
  }

  // --- literals

  #list(node: ListNode): Node {
    let element: Type | undefined
    node.elements = node.elements.map((child, index) => {
      const checked = this.check(child)
      const optional = node.optional?.includes(index) ?? false
      element = this.#joined(element, this.#entryType(checked, optional))
      return checked
    })
    return this.#typed(node, listOf(element ?? this.#substitution.fresh()))
  }

  #map(node: MapNode): Node {
    let key: Type | undefined
    let value: Type | undefined
    for (const entry of node.entries) {
      entry.key = this.check(entry.key)
      key = this.#joined(key, this.#typeOf(entry.key))
      entry.value = this.check(entry.value)
      value = this.#joined(value, this.#entryType(entry.value, entry.optional ?? false))
    }
    if (key === undefined || value === undefined) {
      key = this.#substitution.fresh()
      value = this.#substitution.fresh()
    }
    return this.#typed(node, mapOf(key, value))
  }

  /** The type of an element; one written with `?` must be optional and counts as what is inside. */
  #entryType(node: Node, optional: boolean): Type {
    const type = this.#typeOf(node)
    if (!optional || isOptional(type)) return optional ? unwrapOptional(type) : type
    if (!isDyn(type)) this.#mismatch(node, optionalOf(type), type)
    return type
  }

  /** The type of elements of both types: the more general one, `dyn` when they have nothing in common. */
  #joined(before: Type | undefined, type: Type): Type {
    if (before === undefined) return type
    return this.#substitution.assignable(before, type) ? mostGeneral(before, type) : DYN
  }

  #struct(node: StructNode): Node {
    const found = this.#resolveGlobal(node.name)
    if (found === undefined) {
      this.#undeclared(node, node.name)
      return this.#typed(node, ERROR)
    }
    node.name = found.name
    const type = this.#messageType(node, found.type)
    this.#typed(node, type)
    for (const field of node.fields) this.#structField(type, field)
    return node
  }

  #messageType(node: Node, declared: Type): Type {
    if (declared.kind === 'error') return ERROR
    if (declared.kind !== 'type') {
      this.#fault(node, `'${printType(declared)}' is not a type`)
      return ERROR
    }
    const target = declared.params[0] ?? ERROR
    if (target.kind === 'struct') return target
    this.#fault(node, `'${printType(target)}' is not a message type`)
    return ERROR
  }

  #structField(message: Type, field: StructNode['fields'][number]): void {
    field.value = this.check(field.value)
    const fault = (text: string) =>
      this.faults.push({ offset: this.#places.ofField(field), message: text })
    const expected =
      message.kind === 'struct' ? this.#declaredField(message.name, field.name, fault) : ERROR
    const type = this.#entryType(field.value, field.optional ?? false)
    if (this.#substitution.assignable(expected, type)) return
    const types = `'${printType(expected)}' but provided type is '${printType(type)}'`
    fault(`expected type of field '${field.name}' is ${types}`)
  }

  // --- folds

  #fold(node: FoldNode): Node {
    node.range = this.check(node.range)
    node.accuInit = this.check(node.accuInit)
    const range = this.#substitution.apply(this.#typeOf(node.range), false)
    const accumulator = this.#typeOf(node.accuInit)
    this.#scopes.push(new Map([[node.accuVar, accumulator]]))
    this.#scopes.push(this.#loopScope(node, range))
    node.condition = this.check(node.condition)
    this.#assert(node.condition, BOOL)
    node.step = this.check(node.step)
    this.#assert(node.step, accumulator)
    this.#scopes.pop()
    node.result = this.check(node.result)
    this.#scopes.pop()
    return this.#typed(node, this.#substitution.apply(this.#typeOf(node.result), false))
  }

  #loopScope(node: FoldNode, range: Type): Scope {
    const [first, second] = this.#loopTypes(node, range)
    const scope: Scope = new Map()
    if (node.iterVar2 === undefined) return scope.set(node.iterVar, first)
    return scope.set(node.iterVar, range.kind === 'list' ? INT : first).set(node.iterVar2, second)
  }

  /** Types of the key (or element) and the value (or element) a fold goes over. */
  #loopTypes(node: FoldNode, range: Type): [Type, Type] {
    const [first = DYN, second = first] = range.params
    switch (range.kind) {
      case 'list':
      case 'map':
        return [first, second]
      case 'any':
      case 'dyn':
      case 'error':
      case 'param':
        this.#substitution.assignable(DYN, range)
        return [DYN, DYN]
      default:
        this.#fault(
          node.range,
          `expression of type '${printType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        )
        return [ERROR, ERROR]
    }
  }

  #assert(node: Node, expected: Type): void {
    const type = this.#typeOf(node)
    if (!this.#substitution.assignable(expected, type)) this.#mismatch(node, expected, type)
  }
}

/** The parameter types of a signature with type variables from `base` on. */
function paramsOf({ args, variables }: Signature, base: number): readonly Type[] {
  return variables === 0 ? args : args.map((arg) => instantiate(arg, base))
}

function constType(value: (Node & { k: 'const' })['value']): Type {
  if ('string' in value) return STRING
  if ('int' in value) return INT
  if ('bool' in value) return BOOL
  if ('double' in value) return DOUBLE
  if ('uint' in value) return UINT
  return 'bytes' in value ? BYTES : NULL
}

/** The identifier at the start of `a.b.c`; undefined for anything else. */
function rootOf(node: Node): string | undefined {
  let at = node
  while (at.k === 'select' && !at.test) at = at.operand
  return at.k === 'ident' ? at.name : undefined
}

function dottedName(node: Node): string | undefined {
  if (node.k === 'ident') return node.name
  if (node.k !== 'select' || node.test) return undefined
  const prefix = dottedName(node.operand)
  return prefix === undefined ? undefined : `${prefix}.${node.field}`
}

/** `(int, string)`, or `string.(int)` for a member call. */
function signatureText(types: readonly Type[], member: boolean): string {
  const names = types.map(printType)
  return member ? `${names[0]}.(${names.slice(1).join(', ')})` : `(${names.join(', ')})`
}
