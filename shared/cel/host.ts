import type { JsonValue } from '../json.ts'
import type { Frame } from './frame.ts'
import type { Guard, Implementation } from './implementation.ts'
import { toJson } from './to-json.ts'
import { CelError, type CelResult, type CelValue } from './values.ts'

/** The answer of the host of this run. One that is not known yet is an error, and marks the run as pending. */
export function callHost(frame: Frame, name: string, args: readonly JsonValue[]): CelResult {
  const { host } = frame.options
  if (host === undefined) return new CelError(`${name}: no host answers here`)
  const answer = host({ name, args })
  if (answer.kind === 'value') return answer.value
  if (answer.kind === 'error') return new CelError(answer.message)
  frame.pending = true
  return new CelError(`${name}: the answer is pending`)
}

/**
 * An Implementation that asks the host, with its arguments as plain data: opaque values as their key. An argument that has
 * no JSON form is an error. Without guards it takes any arguments the checker let through.
 *
 * @example hostFunction('verifyImageSignatures', [string, list])
 */
export function hostFunction(name: string, args?: readonly Guard[]): Implementation {
  const call = (...values: readonly (CelValue | Frame)[]): CelResult => {
    // The planner passes the arguments and, last, the frame.
    const frame = values.at(-1) as Frame
    const plain: JsonValue[] = []
    for (const value of values.slice(0, -1) as CelValue[]) {
      const json = toJson(value)
      if (json instanceof CelError) return json
      plain.push(json)
    }
    return callHost(frame, name, plain)
  }
  return { fn: name, args, call: call as (...values: never[]) => CelResult }
}
