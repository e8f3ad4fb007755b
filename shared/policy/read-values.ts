import { both, depending, elementOf, FIXED, type Sense, type Value, wholeSense } from './carried.ts'
import { GROUPS, Trace } from './trace.ts'

/** What an expression of a policy reads beside the request. */
export interface ReadingOptions {
  /** What a variable of the policy is, or undefined when it has none of that name. */
  variable: (name: string) => Value | undefined
  /** All of them. */
  variables: () => Value[]
  /** What an extractor of the policy goes through, or undefined when it has none of that name. */
  extractor: (name: string) => Trace | undefined
  /** How the variable `exceptions` changes with more images. */
  exceptions: Sense
  /** Told of everything that is read and no ImageReview carries. */
  missing: (what: string) => void
}

/** What becomes of a field that is not there: an error, an answer, or no value. */
export type Access = 'get' | 'test' | 'optional'

/** What is done with values, whatever expression they come from, and what is gone through on the way. */
export class ReadValues {
  readonly #options: ReadingOptions
  #trace = new Trace()

  constructor(options: ReadingOptions) {
    this.#options = options
  }

  /** What was gone through so far. */
  get trace(): Trace {
    return this.#trace
  }

  /** The value of a name, with what is gone through wherever it is used. */
  named(value: Value): Value {
    if (value.trace !== undefined) this.#trace.add(value.trace)
    return value
  }

  /** With what is gone through meanwhile, which is not yet part of the whole. */
  apart<T>(work: () => T): [T, Trace] {
    const outer = this.#trace
    const trace = new Trace()
    this.#trace = trace
    const done = work()
    this.#trace = outer
    return [done, trace]
  }

  /** What stands for something that no review carries. */
  missing(what: string): Value {
    this.#options.missing(what)
    return FIXED
  }

  /** A value that goes on as a whole, into nobody knows what. */
  escapes({ part, element }: Value): void {
    if (part !== undefined) this.missing(`${part.name} as a whole`)
    if (element !== undefined) this.escapes(element)
  }

  /** What comes of values of which nobody knows how they are used. */
  used(values: readonly Value[]): Value {
    for (const value of values) {
      this.escapes(value)
      if (value.isImages) this.#trace.readAll()
    }
    if (values.every((value) => wholeSense(value) === 'none')) return FIXED
    this.#trace.isJoint ||= this.#trace.isOfSeveral
    return { sense: 'any' }
  }

  /** One value or the other. */
  joined(first: Value, second: Value): Value {
    const sense = both(first.sense, second.sense)
    const [a, b] = [first.part, second.part]
    // What one of them has not, and what it has by the same name, is not what a part says.
    if (a !== b && !isPlain(a === undefined ? first : second)) return this.used([first, second])
    if (first.isImages !== second.isImages) return this.used([first, second])
    const part = a ?? b
    const [one, other] = [first.element, second.element]
    const element = one && other ? this.joined(one, other) : (one ?? other)
    const { isImages, from = second.from } = first
    return {
      sense,
      ...(part && { part }),
      ...(part && from !== undefined && { from }),
      ...(element && { element }),
      ...(isImages && { isImages }),
    }
  }

  /** A field of a value, or whether it is there. */
  field(of: Value, field: string, how: Access): Value {
    const isTest = how === 'test'
    if (of.part === undefined) {
      if (isTest) return { sense: of.sense }
      if (of.isImages) this.#reads(field)
      return depending(elementOf(of), of.sense)
    }
    if (isTest && of.from !== undefined) this.#trace.absent.add(of.from)
    const known = of.part.field(field)
    if (known === undefined || (isTest && isOpen(known.value))) {
      return this.missing(of.part.name + selector(field))
    }
    const { value, presence, isOptional, group } = known
    if (isOptional && how === 'get') this.#trace.absent.add(of.part.name + selector(field))
    if (group !== undefined && !(isTest && presence === 'none')) this.#trace.read(group)
    if (isTest) return depending({ sense: presence }, of.sense)
    const { from, ...anyway } = value
    return depending(how === 'optional' ? anyway : value, of.sense)
  }

  /** A list of the variable `images`. */
  #reads(name: string): void {
    const extractor = this.#options.extractor(name)
    const group = GROUPS.get(name)
    if (extractor !== undefined) this.#trace.add(extractor)
    else if (group !== undefined) this.#trace.read(group)
  }

  /** What comes of comparing values. */
  compared(sense: Sense): Value {
    if (sense !== 'none') this.#trace.isJoint ||= this.#trace.isOfSeveral
    return { sense }
  }
}

/** Nothing of it comes from the request. */
function isPlain({ sense, part, element }: Value): boolean {
  return sense === 'none' && part === undefined && element === undefined
}

/** Whether it is there says whether anything is that no review carries. */
function isOpen({ part }: Value): boolean {
  return part?.name === 'object.metadata.annotations'
}

/** A field as expressions select it. */
export function selector(field: string): string {
  return /^[A-Za-z_]\w*$/.test(field) ? `.${field}` : `[${JSON.stringify(field)}]`
}
