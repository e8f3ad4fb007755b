import type { Step } from './attribute.ts'
import type { Frame } from './frame.ts'
import { CelError, CelMap, type CelValue, isList, isMap, typeName } from './values.ts'

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
  if (second !== undefined) return iterateTwo(frame, first, second, range, turn)
  const elements = isList(range) ? range : isMap(range) ? keysOf(frame, range) : undefined
  if (elements === undefined) {
    return new CelError(`got '${typeName(range)}', expected iterable type`)
  }
  for (const element of elements) {
    locals[first] = element
    if (!turn()) break
  }
  return undefined
}

function* keysOfMap(map: CelMap): Generator<CelValue> {
  for (const [key] of map.entries()) yield key
}

function keysOf(frame: Frame, map: CelMap | { [key: string]: CelValue }): Iterable<CelValue> {
  return map instanceof CelMap ? keysOfMap(map) : frame.keysOf(map)
}

function* entriesOf(
  frame: Frame,
  map: CelMap | { [key: string]: CelValue },
): Generator<[CelValue, CelValue]> {
  if (map instanceof CelMap) yield* map.entries()
  // Every key the map listed is its own.
  else for (const key of frame.keysOf(map)) yield [key, map[key] as CelValue]
}

function iterateTwo(
  frame: Frame,
  first: number,
  second: number,
  range: CelValue,
  turn: () => boolean,
): CelError | undefined {
  const list = isList(range) ? numbered(range) : undefined
  const entries = list ?? (isMap(range) ? entriesOf(frame, range) : undefined)
  if (entries === undefined) {
    return new CelError(`unsupported comprehension range type: ${typeName(range)}`)
  }
  const { locals } = frame
  for (const [key, value] of entries) {
    locals[first] = key
    locals[second] = value
    if (!turn()) break
  }
  return undefined
}

function* numbered(list: Iterable<CelValue>): Generator<[number, CelValue]> {
  let index = 0
  for (const element of list) yield [index++, element]
}
