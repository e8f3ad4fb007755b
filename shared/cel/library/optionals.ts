import { any, type Library, list, optional, overload } from '../implementation.ts'
import { CelError, type CelValue, NONE, Optional } from '../values.ts'
import { isZero } from '../zero.ts'

const none = () => NONE
const of = (value: CelValue) => new Optional(value)

function first(values: CelValue[]): Optional {
  const [value] = values
  return value === undefined ? NONE : new Optional(value)
}

function last(values: CelValue[]): Optional {
  const value = values.at(-1)
  return value === undefined ? NONE : new Optional(value)
}

/** The values of the present ones among a list of optionals. */
function unwrap(values: CelValue[]) {
  const out: CelValue[] = []
  for (const value of values) {
    if (!(value instanceof Optional)) return new CelError('value is not an optional')
    if (value.value !== undefined) out.push(value.value)
  }
  return out
}

/** Optional values; `or` and `orValue` are operators of the planner. */
export const optionals: Library = {
  optional_none: overload('optional.none', [], none),
  optional_of: overload('optional.of', [any], of),
  optional_ofNonZeroValue: overload('optional.ofNonZeroValue', [any], (value) =>
    isZero(value) ? NONE : new Optional(value),
  ),
  optional_hasValue: overload('hasValue', [optional], (value) => value.value !== undefined),
  optional_value: overload('value', [optional], (value) => value.value ?? absent(value)),
  optional_unwrap: overload('optional.unwrap', [list], unwrap),
  optional_unwrapOpt: overload('unwrapOpt', [list], unwrap),
  list_first: overload('first', [list], first),
  list_last: overload('last', [list], last),
}

/** The value of a present optional, which may itself be null, or the error of an absent one. */
function absent(value: Optional) {
  return value.value === undefined ? new CelError('optional.none() dereference') : value.value
}
