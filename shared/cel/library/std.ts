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
import * as cast from './cast.ts'
import * as time from './time.ts'

const same = <T extends CelValue>(value: T): T => value

/** Conversions of the standard library, by cel-go's overload ids. */
export const conversions: Library = {
  bool_to_bool: overload('bool', [bool], same),
  string_to_bool: overload('bool', [string], cast.stringToBool),
  bytes_to_bytes: overload('bytes', [bytes], same),
  string_to_bytes: overload('bytes', [string], cast.stringToBytes),
  double_to_double: overload('double', [double], same),
  int64_to_double: overload('double', [int], cast.intToDouble),
  string_to_double: overload('double', [string], cast.stringToDouble),
  uint64_to_double: overload('double', [uint], cast.uintToDouble),
  to_dyn: overload('dyn', [any], same),
  duration_to_duration: overload('duration', [duration], same),
  int64_to_duration: overload('duration', [int], time.intToDuration),
  string_to_duration: overload('duration', [string], time.parseDuration),
  int64_to_int64: overload('int', [int], same),
  double_to_int64: overload('int', [double], cast.doubleToInt),
  duration_to_int64: overload('int', [duration], time.durationToInt),
  string_to_int64: overload('int', [string], cast.stringToInt),
  timestamp_to_int64: overload('int', [timestamp], time.timestampToInt),
  uint64_to_int64: overload('int', [uint], cast.uintToInt),
  string_to_string: overload('string', [string], same),
  bool_to_string: overload('string', [bool], String),
  bytes_to_string: overload('string', [bytes], cast.bytesToString),
  double_to_string: overload('string', [double], cast.doubleToString),
  duration_to_string: overload('string', [duration], time.durationToString),
  int64_to_string: overload('string', [int], String),
  timestamp_to_string: overload('string', [timestamp], time.timestampToString),
  uint64_to_string: overload('string', [uint], (value) => String(value.value)),
  timestamp_to_timestamp: overload('timestamp', [timestamp], same),
  int64_to_timestamp: overload('timestamp', [int], time.intToTimestamp),
  string_to_timestamp: overload('timestamp', [string], time.parseTimestamp),
  type: overload('type', [any], (value) => new TypeValue(typeName(value))),
  uint64_to_uint64: overload('uint', [uint], same),
  double_to_uint64: overload('uint', [double], cast.doubleToUint),
  int64_to_uint64: overload('uint', [int], cast.intToUint),
  string_to_uint64: overload('uint', [string], cast.stringToUint),
}

const matching = regexOverload(
  'matches',
  [string, string],
  (text: string, pattern: Regex) => pattern.test(text),
  { eager: true },
)

/** String predicates and the accessors of timestamps and durations. */
export const members: Library = {
  contains_string: overload('contains', [string, string], (text, part) => text.includes(part)),
  ends_with_string: overload('endsWith', [string, string], (text, end) => text.endsWith(end)),
  starts_with_string: overload('startsWith', [string, string], (text, start) =>
    text.startsWith(start),
  ),
  matches: matching,
  matches_string: matching,
  ...time.accessors,
}
