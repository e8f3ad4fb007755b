import type { Frame } from './frame.ts'
import { missing } from './qualify.ts'
import { CelError, type CelResult, isPlainMap, ownField } from './values.ts'

/** Selections by field name, the most common attribute there is; `test` when the last is the test of `has()`. */
export interface FieldPath {
  names: readonly string[]
  test: boolean
}

/** Applies the same selections to a value in full generality, from selection `from` on. */
export type Apply = (frame: Frame, value: CelResult, from: number) => CelResult

/** The step for fields of a base that is JSON. All costs are single steps, so they are paid together where the path ends. */
export function fieldPath(
  base: (frame: Frame) => CelResult,
  { names, test }: FieldPath,
  own: number,
  slow: Apply,
): (frame: Frame) => CelResult {
  const last = names.length - 1
  return (frame) => {
    let value = base(frame)
    for (let i = 0; i <= last; i++) {
      if (!isPlainMap(value)) return finish(frame, slow, value, i, own)
      // i is within the names.
      const name = names[i] as string
      const next = ownField(value, name)
      if (test && i === last) return paid(frame, i + 1 + own, next !== undefined)
      if (next === undefined) return paid(frame, i + 1 + own, missing(value, name))
      value = next
    }
    return paid(frame, last + 1 + own, value)
  }
}

function paid(frame: Frame, steps: number, value: CelResult): CelResult {
  frame.spendSteps(steps)
  return value
}

/** The path from `from` on at something that is no JSON map: it may evaluate a variable, so what is due is paid first. */
function finish(frame: Frame, slow: Apply, value: CelResult, from: number, own: number): CelResult {
  if (value instanceof CelError) return paid(frame, own, value)
  frame.spendSteps(from)
  const found = slow(frame, value, from)
  frame.spend(own)
  return found
}
