import type { Step } from './attribute.ts'
import { iterate, type Loop } from './fold.ts'
import { type Frame, noSuchOverload } from './frame.ts'
import { insertEntry, insertMap } from './library/maps.ts'
import { CelError, CelMap, type CelResult, type CelValue, isMap } from './values.ts'

/**
 * The loops of the standard macros without the general fold's bookkeeping. They spend what the fold would, step by step;
 * lists and maps are filled in place where the fold would copy them at every turn.
 */

/** `all` (decided by false) and `exists` (decided by true): each turn pays the condition, the accumulator, the predicate. */
export function quantifierStep(loop: Loop, predicate: Step, deciding: boolean): Step {
  // The condition reads the accumulator and tests it; that of `exists` negates it in between.
  const condition = deciding ? 3 : 2
  return (frame) => {
    const range = loop.range(frame)
    if (range instanceof CelError) return range
    let accu: CelResult = !deciding
    const fault = iterate(frame, loop, range, () => {
      frame.spendSteps(condition)
      if (accu === deciding) return false
      frame.spend(1)
      const value = predicate(frame)
      if (value === deciding) accu = deciding
      else if (accu === !deciding && value !== accu) accu = asFault(value)
      return true
    })
    if (fault !== undefined) return fault
    frame.spend(1)
    return accu
  }
}

function asFault(value: CelResult): CelError {
  return value instanceof CelError ? value : noSuchOverload()
}

/** What adds to the accumulator at one turn. */
interface Gathering {
  predicate: Step | undefined
  /** What making the empty accumulator costs, when it is first read. */
  initCost: number
}

/** Runs the loop with the accumulator kept outside the frame; `add` gives the fault that becomes the accumulator, if any. */
function gather<T extends CelValue>(
  loop: Loop,
  { predicate, initCost }: Gathering,
  start: () => T,
  add: (frame: Frame, accu: T, fault: CelError | undefined) => CelError | undefined,
): Step {
  return (frame) => {
    const range = loop.range(frame)
    if (range instanceof CelError) return range
    const accu = start()
    let fault: CelError | undefined
    let unread = initCost > 0
    const read = () => {
      if (unread) frame.spend(initCost)
      unread = false
      frame.spend(1)
    }
    const unusable = iterate(frame, loop, range, () => {
      const chosen = predicate === undefined || predicate(frame)
      if (chosen === true) {
        read()
        fault = add(frame, accu, fault) ?? fault
      } else if (chosen !== false) {
        fault = asFault(chosen)
        unread = false
      } else if (unread) {
        frame.spend(initCost)
        unread = false
      }
      return true
    })
    if (unusable !== undefined) return unusable
    read()
    return fault ?? accu
  }
}

/** Cost of the one-element list a turn makes, and of adding it. */
export interface CollectCost {
  list: number
  add: number
}

/** `map` and `filter`: each turn makes a one-element list and adds it to the accumulator. */
export function collectStep(
  loop: Loop,
  gathering: Gathering,
  element: Step,
  cost: CollectCost,
): Step {
  return gather<CelValue[]>(
    loop,
    gathering,
    () => [],
    (frame, accu, fault) => {
      const value = element(frame)
      frame.spend(cost.list)
      frame.spend(cost.add)
      if (value instanceof CelError) return fault ?? value
      if (fault === undefined) accu.push(value)
      return fault
    },
  )
}

/** `transformMap`: each turn puts a value under a key. A fault so far ends the turn, as it ends the variadic call. */
export function insertStep(loop: Loop, gathering: Gathering, key: Step, value: Step): Step {
  return gather(
    loop,
    gathering,
    () => new CelMap(),
    (frame, accu, fault) => {
      if (fault !== undefined) return fault
      const k = key(frame)
      if (k instanceof CelError) return k
      const v = value(frame)
      frame.spend(1)
      return v instanceof CelError ? v : insertEntry(accu, k, v)
    },
  )
}

/** `transformMapEntry`: each turn adds the entries of a map. */
export function insertAllStep(loop: Loop, gathering: Gathering, entries: Step): Step {
  return gather(
    loop,
    gathering,
    () => new CelMap(),
    (frame, accu, fault) => {
      const added = entries(frame)
      frame.spend(1)
      if (fault !== undefined) return fault
      if (added instanceof CelError) return added
      return isMap(added) ? insertMap(accu, added) : noSuchOverload('cel.@mapInsert')
    },
  )
}
