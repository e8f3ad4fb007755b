import type { Step } from './attribute.ts'
import type { CallCost } from './cost.ts'
import { noSuchOverload } from './frame.ts'
import { accepts, type Implementation } from './implementation.ts'
import type { Regex, RegexEngine } from './types.ts'
import { CelError, type CelResult, type CelValue } from './values.ts'

/**
 * A call whose argument `index` is a pattern. The implementation receives the compiled Regex in its place. A pattern that is
 * a constant was compiled when the program was planned; then the call stops at the first error, as cel-go's does.
 */
export function regexStep(
  impl: Implementation,
  index: number,
  engine: RegexEngine,
  constant: Regex | undefined,
  steps: readonly Step[],
  cost: CallCost,
): Step {
  const eager = constant !== undefined || steps.length > 2
  const compile = memoised(engine)
  return (frame) => {
    const values: CelResult[] = []
    let fault: CelError | undefined
    for (const step of steps) {
      const value = step(frame)
      values.push(value)
      if (!(value instanceof CelError)) continue
      fault ??= value
      if (eager && values.length < steps.length) return fault
    }
    // Without a fault every result is a value.
    const result = fault ?? call(impl, index, constant ?? compile, values as CelValue[])
    frame.spend(cost(values, result))
    return result
  }
}

function call(
  impl: Implementation,
  index: number,
  regex: Regex | ((pattern: string) => Regex | CelError),
  values: readonly CelValue[],
): CelResult {
  if (!accepts(impl, values)) return noSuchOverload(impl.fn)
  // The guard at `index` has established a string.
  const compiled = typeof regex === 'function' ? regex(values[index] as string) : regex
  if (compiled instanceof CelError) return compiled
  const args: (CelValue | Regex)[] = [...values]
  args[index] = compiled
  // A regex implementation takes the compiled pattern at `index`.
  return (impl.call as (...args: readonly (CelValue | Regex)[]) => CelResult)(...args)
}

/** Compiles patterns and keeps the last one: loops apply one pattern to many texts. */
function memoised(engine: RegexEngine): (pattern: string) => Regex | CelError {
  let last: { pattern: string; compiled: Regex | CelError } | undefined
  return (pattern) => {
    if (last?.pattern === pattern) return last.compiled
    last = { pattern, compiled: attempt(engine, pattern) }
    return last.compiled
  }
}

function attempt(engine: RegexEngine, pattern: string): Regex | CelError {
  try {
    return engine.compile(pattern)
  } catch (thrown) {
    return new CelError(thrown instanceof Error ? thrown.message : String(thrown))
  }
}
