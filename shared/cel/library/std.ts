import {
  any,
  bool,
  bytes,
  double,
  duration,
  int,
  type Library,
  overload,
  regexOverload,
  string,
  timestamp,
  uint,
} from '../implementation.ts'
import type { Regex } from '../types.ts'
import { type CelValue, TypeValue, typeName } from '../values.ts'

const same = <T extends CelValue>(value: T): T => value

/** Conversions that parse nothing, by cel-go's overload ids. */
export const plainConversions: Library = {
  bool_to_bool: overload('bool', [bool], same),
  bytes_to_bytes: overload('bytes', [bytes], same),
  double_to_double: overload('double', [double], same),
  to_dyn: overload('dyn', [any], same),
  duration_to_duration: overload('duration', [duration], same),
  int64_to_int64: overload('int', [int], same),
  string_to_string: overload('string', [string], same),
  bool_to_string: overload('string', [bool], String),
  int64_to_string: overload('string', [int], String),
  uint64_to_string: overload('string', [uint], (value) => String(value.value)),
  timestamp_to_timestamp: overload('timestamp', [timestamp], same),
  type: overload('type', [any], (value) => new TypeValue(typeName(value))),
  uint64_to_uint64: overload('uint', [uint], same),
}

const matching = regexOverload(
  'matches',
  [string, string],
  (text: string, pattern: Regex) => pattern.test(text),
  { eager: true },
)

/** String predicates. */
export const members: Library = {
  contains_string: overload('contains', [string, string], (text, part) => text.includes(part)),
  ends_with_string: overload('endsWith', [string, string], (text, end) => text.endsWith(end)),
  starts_with_string: overload('startsWith', [string, string], (text, start) =>
    text.startsWith(start),
  ),
  matches: matching,
  matches_string: matching,
}
