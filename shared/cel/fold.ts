import type { Step } from './attribute.ts'
import type { Frame } from './frame.ts'
import { CelError, type CelValue, isMap, mapEntries, mapKeys, typeName } from './values.ts'

/** The planned parts of a comprehension. `accu`, `first` and `second` are slots of the frame's locals. */
export interface FoldParts {
  range: Step
  init: Step
  condition: Step
  step: Step
  result: Step
  accu: number
  first: number
  second?: number
}

/** A comprehension in full generality: the accumulator is made when it is first read, as cel-go does. */
export function foldStep(parts: FoldParts): Step {
  return (frame) => {
    const range = parts.range(frame)
    if (range instanceof CelError) return range
    frame.locals[parts.accu] = undefined
    const fault =
      parts.second === undefined ? foldOne(frame, parts, range) : foldTwo(frame, parts, range)
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

function foldOne(frame: Frame, parts: FoldParts, range: CelValue): CelError | undefined {
  const elements = Array.isArray(range) ? range : isMap(range) ? mapKeys(range) : undefined
  if (elements === undefined) {
    return new CelError(`got '${typeName(range)}', expected iterable type`)
  }
  const { locals } = frame
  for (const element of elements) {
    locals[parts.first] = element
    if (parts.condition(frame) === false) break
    locals[parts.accu] = parts.step(frame)
  }
  return undefined
}

function foldTwo(frame: Frame, parts: FoldParts, range: CelValue): CelError | undefined {
  const entries = Array.isArray(range)
    ? range.entries()
    : isMap(range)
      ? mapEntries(range)
      : undefined
  if (entries === undefined) {
    return new CelError(`unsupported comprehension range type: ${typeName(range)}`)
  }
  const { locals } = frame
  for (const [key, value] of entries) {
    locals[parts.first] = key
    locals[parts.second ?? parts.first] = value
    if (parts.condition(frame) === false) break
    locals[parts.accu] = parts.step(frame)
  }
  return undefined
}
