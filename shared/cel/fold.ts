import type { Step } from './attribute.ts'
import type { Frame } from './frame.ts'
import {
  CelError,
  type CelResult,
  type CelValue,
  isMap,
  mapEntries,
  mapKeys,
  typeName,
} from './values.ts'

/** What a comprehension runs over, and the slots of the frame's locals its variables have. */
export interface Loop {
  range: Step
  first: number
  second: number | undefined
}

/** The planned parts of a comprehension beyond its loop. */
export interface FoldParts {
  condition: Step
  step: Step
  result: Step
  /** Slot of the accumulator. */
  accu: number
}

/** A comprehension in full generality: the accumulator is made when it is first read, as cel-go does. */
export function foldStep(loop: Loop, parts: FoldParts): Step {
  return (frame) => {
    const range = loop.range(frame)
    if (range instanceof CelError) return range
    const { locals } = frame
    locals[parts.accu] = undefined
    const fault = iterate(frame, loop, range, () => {
      if (parts.condition(frame) === false) return false
      locals[parts.accu] = parts.step(frame)
      return true
    })
    return fault ?? parts.result(frame)
  }
}

/** The local variable's value; an accumulator that was not yet read is initialised now. */
export function accumulatorRead(slot: number, init: Step): Step {
  return (frame) => {
    const known = frame.locals[slot]
    if (known !== undefined) return known
    const made = init(frame)
    frame.locals[slot] = made
    return made
  }
}

/**
 * Runs the turn for each element, its variables set, until it gives false; the error when the range is nothing to run over.
 * One variable takes list elements and map keys, two take index and element, or key and value.
 */
export function iterate(
  frame: Frame,
  { first, second }: Loop,
  range: CelValue,
  turn: () => boolean,
): CelError | undefined {
  const { locals } = frame
  if (second !== undefined) return iterateTwo(locals, first, second, range, turn)
  const elements = Array.isArray(range) ? range : isMap(range) ? mapKeys(range) : undefined
  if (elements === undefined) {
    return new CelError(`got '${typeName(range)}', expected iterable type`)
  }
  for (const element of elements) {
    locals[first] = element
    if (!turn()) break
  }
  return undefined
}

function iterateTwo(
  locals: (CelResult | undefined)[],
  first: number,
  second: number,
  range: CelValue,
  turn: () => boolean,
): CelError | undefined {
  const list = Array.isArray(range) ? range.entries() : undefined
  const entries = list ?? (isMap(range) ? mapEntries(range) : undefined)
  if (entries === undefined) {
    return new CelError(`unsupported comprehension range type: ${typeName(range)}`)
  }
  for (const [key, value] of entries) {
    locals[first] = key
    locals[second] = value
    if (!turn()) break
  }
  return undefined
}
