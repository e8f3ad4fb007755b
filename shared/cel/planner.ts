import type {
  CallNode,
  FoldNode,
  IdentNode,
  ListNode,
  MapNode,
  Node,
  SelectNode,
  StructNode,
} from './ast.ts'
import { type Attribute, addQualifier, invalidKey, type Qualifier, type Step } from './attribute.ts'
import {
  alternativeStep,
  BINARY,
  binaryStep,
  type EqualityCost,
  equalityStep,
  joinStep,
  logicalStep,
  notStrictlyFalseStep,
  UNARY,
  unaryStep,
} from './call.ts'
import { constValue, LIST_COST, listStep, MAP_COST, mapStep, messageStep } from './construct.ts'
import { type CallCost, type Costs, one } from './cost.ts'
import { accumulatorRead, foldStep, type Loop } from './fold.ts'
import { collectStep, insertAllStep, insertStep, quantifierStep } from './fold-macro.ts'
import type { Implementation, Library } from './implementation.ts'
import { type MacroShape, macroShape } from './macro-shape.ts'
import { membershipStep } from './membership.ts'
import { callStep, candidatesOf, resolvedOverload } from './plan-call.ts'
import { checkedName, uncheckedName } from './plan-names.ts'
import { constantOf, PlanFault, type Planned, stepOf } from './planned.ts'
import { Program } from './program.ts'
import { regexStep } from './regex-call.ts'
import type { CheckedExpression, Profile, RegexEngine } from './types.ts'
import { CelError } from './values.ts'

/** What a program is planned with. */
export interface PlanOptions {
  /** Decides whether constants are folded, and what a presence test costs. */
  profile: Profile
  /** Everything the expression may call beyond the operators: `kubernetesLibrary`, `kyvernoLibrary`, `specLibrary`, with host functions added. */
  implementations: Library
  /** The container of a tree that was parsed but not checked: its names are looked up when the program runs. */
  container?: string
  /** Needed when the expression has a regular expression. */
  regex?: RegexEngine
}

export type PlanResult = { ok: true; program: Program } | { ok: false; message: string }

/**
 * A program for a checked expression: one closure per node, cost added in place. Constants are folded as cel-go's optimiser
 * folds them, so what it would refuse when the program is made (`int('x')`, a bad pattern) is refused here.
 */
export function planWith(
  checked: CheckedExpression,
  options: PlanOptions & { costs: Costs },
): PlanResult {
  try {
    const planner = new Planner(options)
    const step = stepOf(planner.plan(checked.ast), planner.presenceCost)
    return { ok: true, program: new Program(checked, step, planner.slots) }
  } catch (thrown) {
    if (thrown instanceof PlanFault) return { ok: false, message: thrown.message }
    // The checker bounds the depth of what it lets through; a tree from elsewhere may have any.
    if (thrown instanceof RangeError) return { ok: false, message: 'the tree is too deep' }
    throw thrown
  }
}

const CONVERSIONS = new Set(
  'bool bytes double duration dyn int string timestamp type uint'.split(' '),
)

type Scope = ReadonlyMap<string, Step>

class Planner {
  slots = 0
  readonly presenceCost: 0 | 1
  readonly #options: PlanOptions & { costs: Costs }
  readonly #optimize: boolean
  #scope: Scope = new Map()

  constructor(options: PlanOptions & { costs: Costs }) {
    this.#options = options
    this.#optimize = options.profile !== 'spec'
    this.presenceCost = options.profile === 'spec' ? 1 : 0
  }

  plan(node: Node): Planned {
    switch (node.k) {
      case 'const':
        return { kind: 'const', value: constValue(node.value) }
      case 'ident':
        return this.#ident(node)
      case 'select':
        return this.#select(node)
      case 'call':
        return this.#call(node)
      case 'list':
        return this.#list(node)
      case 'map':
        return this.#map(node)
      case 'struct':
        return this.#struct(node)
      default:
        return this.#fold(node)
    }
  }

  #step(node: Node): Step {
    return stepOf(this.plan(node), this.presenceCost)
  }

  #ident(node: IdentNode): Planned {
    const local = this.#scope.get(node.name)
    if (local !== undefined) {
      return {
        kind: 'attribute',
        attribute: { root: { kind: 'local', read: local }, qualifiers: [] },
      }
    }
    const { container } = this.#options
    return container === undefined ? checkedName(node.name) : uncheckedName(container, node.name)
  }

  #select(node: SelectNode): Planned {
    const attribute = this.#attribute(this.plan(node.operand))
    const test = node.test === true
    addQualifier(attribute, { kind: 'key', key: node.field, optional: false, test })
    return test ? { kind: 'attribute', attribute, test: true } : { kind: 'attribute', attribute }
  }

  /** The node as something selections can be added to. */
  #attribute(planned: Planned): Attribute {
    if (planned.kind === 'attribute' && planned.test === undefined) return planned.attribute
    const step = stepOf(planned, this.presenceCost)
    return { root: { kind: 'relative', step }, qualifiers: [] }
  }

  #index(operand: Node, index: Node, optional: boolean): Planned {
    const attribute = this.#attribute(this.plan(operand))
    addQualifier(attribute, this.#qualifier(this.plan(index), optional))
    return { kind: 'attribute', attribute }
  }

  #qualifier(key: Planned, optional: boolean): Qualifier {
    if (key.kind !== 'const') return { kind: 'computed', key: this.#branch(key), optional }
    if (key.value instanceof CelError) throw new PlanFault(key.value.message)
    const fault = invalidKey(key.value)
    if (fault !== undefined) throw new PlanFault(fault.message)
    return { kind: 'key', key: key.value, optional, test: false }
  }

  #list(node: ListNode): Planned {
    const elements = node.elements.map((element) => this.plan(element))
    const steps = elements.map((element) => stepOf(element, this.presenceCost))
    return this.#folded(elements, listStep(steps, new Set(node.optional)))
  }

  #map(node: MapNode): Planned {
    const parts: Planned[] = []
    const entries = node.entries.map((entry) => {
      const key = this.plan(entry.key)
      const value = this.plan(entry.value)
      parts.push(key, value)
      return {
        key: stepOf(key, this.presenceCost),
        value: stepOf(value, this.presenceCost),
        optional: entry.optional === true,
      }
    })
    return this.#folded(parts, mapStep(entries))
  }

  /** A literal of nothing but constants is a constant where the optimiser runs. */
  #folded(parts: readonly Planned[], step: Step): Planned {
    if (!this.#optimize || !parts.every((part) => part.kind === 'const')) {
      return { kind: 'step', step }
    }
    return { kind: 'const', value: constantOf(step) }
  }

  #struct(node: StructNode): Planned {
    const fields = node.fields.map((field) => ({
      name: field.name,
      value: this.#step(field.value),
      optional: field.optional === true,
    }))
    return { kind: 'step', step: messageStep(node.name, fields) }
  }

  #fold(node: FoldNode): Planned {
    const outer = this.#scope
    const accu = this.slots++
    const first = this.slots++
    const second = node.iterVar2 === undefined ? undefined : this.slots++
    const init = this.plan(node.accuInit)
    const loop = { range: this.#step(node.range), first, second }
    const read = accumulatorRead(accu, stepOf(init, this.presenceCost))
    const accuScope = new Map(outer).set(node.accuVar, read)
    const inner = new Map(accuScope).set(node.iterVar, localRead(first))
    if (node.iterVar2 !== undefined && second !== undefined) {
      inner.set(node.iterVar2, localRead(second))
    }
    this.#scope = inner
    let step = this.#macro(macroShape(node), loop, init.kind === 'const')
    if (step === undefined) {
      const condition = this.#step(node.condition)
      const next = this.#step(node.step)
      this.#scope = accuScope
      const result = this.#step(node.result)
      const parts = { condition, step: next, result, accu }
      step = foldStep(loop, parts)
    }
    this.#scope = outer
    return { kind: 'step', step }
  }

  /** The loop of a standard macro, planned with its variables in scope; undefined for any other fold. */
  #macro(shape: MacroShape | undefined, loop: Loop, freeInit: boolean): Step | undefined {
    if (shape === undefined) return undefined
    if (shape.kind === 'all' || shape.kind === 'exists') {
      return quantifierStep(loop, this.#step(shape.predicate), shape.kind === 'exists')
    }
    if (this.#cost(shape.add) !== one) return undefined
    const predicate = shape.predicate && this.#step(shape.predicate)
    if (shape.kind === 'collect') {
      const gathering = { predicate, initCost: freeInit ? 0 : LIST_COST }
      const element = this.plan(shape.element)
      const folded = this.#optimize && element.kind === 'const'
      const cost = { list: folded ? 0 : LIST_COST, add: 1 }
      return collectStep(loop, gathering, stepOf(element, this.presenceCost), cost)
    }
    const gathering = { predicate, initCost: freeInit ? 0 : MAP_COST }
    const [key, value] = shape.entry.map((part) => this.#step(part))
    if (key === undefined) return undefined
    return value === undefined
      ? insertAllStep(loop, gathering, key)
      : insertStep(loop, gathering, key, value)
  }

  #call(node: CallNode): Planned {
    const operands = node.target === undefined ? node.args : [node.target, ...node.args]
    const [first, second] = operands
    if (first !== undefined && second !== undefined) {
      if (node.fn === '_[_]') return this.#index(first, second, false)
      if (node.fn === '_?._' || node.fn === '_[?_]') return this.#index(first, second, true)
    }
    const args = operands.map((operand) => this.plan(operand))
    if (node.fn === '_?_:_') return this.#conditional(args)
    const steps = args.map((arg) => stepOf(arg, this.presenceCost))
    return this.#operator(node, args, steps) ?? this.#function(node, args, steps)
  }

  #conditional(args: readonly Planned[]): Planned {
    const [condition, truthy, falsy] = args
    if (condition === undefined || truthy === undefined || falsy === undefined) {
      throw new PlanFault('_?_:_ takes three arguments')
    }
    const attribute: Attribute = {
      root: {
        kind: 'conditional',
        condition: stepOf(condition, this.presenceCost),
        truthy: this.#branch(truthy),
        falsy: this.#branch(falsy),
      },
      qualifiers: [],
    }
    return { kind: 'attribute', attribute }
  }

  /** A branch of a conditional, or an index: an attribute is used as it is, so its own step is free there. */
  #branch(planned: Planned): Attribute {
    if (planned.kind === 'attribute') return planned.attribute
    return { root: { kind: 'relative', step: stepOf(planned, this.presenceCost) }, qualifiers: [] }
  }

  #operator(node: CallNode, args: readonly Planned[], steps: readonly Step[]): Planned | undefined {
    const [left, right] = steps
    if (left === undefined) return undefined
    if (node.fn === '_&&_') return { kind: 'step', step: logicalStep(steps, false) }
    if (node.fn === '_||_') return { kind: 'step', step: logicalStep(steps, true) }
    if (node.fn === '@not_strictly_false') return { kind: 'step', step: notStrictlyFalseStep(left) }
    if (right === undefined) {
      const run = Object.hasOwn(UNARY, node.fn) ? UNARY[node.fn] : undefined
      return run && { kind: 'step', step: unaryStep(run, left, this.#cost(node)) }
    }
    if (steps.length !== 2) return undefined
    if (node.fn === '_==_' || node.fn === '_!=_') {
      const step = equalityStep(left, right, node.fn === '_!=_', this.#equalityCost(node.fn))
      return { kind: 'step', step }
    }
    if (resolvedOverload(node) === 'add_string') {
      return { kind: 'step', step: joinStep(left, right, this.#cost(node)) }
    }
    const run = Object.hasOwn(BINARY, node.fn) ? BINARY[node.fn] : undefined
    if (run === undefined) return optionalCall(node.fn, left, right)
    return (
      this.#membership(node, args, left) ?? {
        kind: 'step',
        step: binaryStep(run, left, right, this.#cost(node)),
      }
    )
  }

  /** `x in [constants]` under the optimiser. */
  #membership(node: CallNode, args: readonly Planned[], left: Step): Planned | undefined {
    const list = args[1]
    if (!this.#optimize || resolvedOverload(node) !== 'in_list' || list?.kind !== 'const')
      return undefined
    if (!Array.isArray(list.value)) return undefined
    if (list.value.length === 0) return { kind: 'const', value: false }
    const step = membershipStep(left, list.value)
    return step && { kind: 'step', step }
  }

  #function(node: CallNode, args: readonly Planned[], steps: readonly Step[]): Planned {
    const candidates = candidatesOf(node, steps.length, this.#options.implementations)
    const cost = this.#cost(node)
    const [impl] = candidates
    if (impl?.regex !== undefined) {
      return { kind: 'step', step: this.#regex(impl, impl.regex, args, steps, cost) }
    }
    const step = callStep(node, candidates, steps, cost)
    const [only, more] = args
    const conversion = CONVERSIONS.has(node.fn) && more === undefined && only?.kind === 'const'
    return this.#optimize && conversion ? converted(step) : { kind: 'step', step }
  }

  #regex(
    impl: Implementation,
    index: number,
    args: readonly Planned[],
    steps: readonly Step[],
    cost: CallCost,
  ): Step {
    const { regex } = this.#options
    if (regex === undefined) throw new PlanFault(`${impl.fn} needs the regex engine`)
    const pattern = args[index]
    const constant = pattern?.kind === 'const' ? pattern.value : undefined
    const early = this.#optimize && impl.eager === true && typeof constant === 'string'
    const compiled = early ? compilePattern(regex, constant) : undefined
    return regexStep(impl, index, regex, compiled, steps, cost)
  }

  #equalityCost(fn: string): EqualityCost {
    return this.#options.costs.equality(fn)
  }

  #cost(node: CallNode): CallCost {
    return this.#options.costs.call(node.fn, resolvedOverload(node))
  }
}

/** A conversion of a constant is a constant; when it fails there is no program. */
function converted(step: Step): Planned {
  const value = constantOf(step)
  if (value instanceof CelError) throw new PlanFault(value.message)
  return { kind: 'const', value }
}

function compilePattern(engine: RegexEngine, pattern: string) {
  try {
    return engine.compile(pattern)
  } catch (thrown) {
    throw new PlanFault(thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function localRead(slot: number): Step {
  return (frame) => frame.locals[slot] ?? null
}

/** `a.or(b)` and `a.orValue(b)`, which the planner has steps of its own for. */
function optionalCall(fn: string, left: Step, right: Step): Planned | undefined {
  if (fn !== 'or' && fn !== 'orValue') return undefined
  return { kind: 'step', step: alternativeStep(fn, left, right) }
}
