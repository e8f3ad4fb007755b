import {
  bytes,
  double,
  duration,
  int,
  type Library,
  overload,
  string,
  timestamp,
  uint,
} from '../implementation.ts'
import * as cast from './cast.ts'
import * as time from './time.ts'
import { durationToString, timestampToString } from './time-text.ts'

/** Conversions between kinds of values, and what timestamps and durations are asked, by cel-go's overload ids. */
export const conversions: Library = {
  string_to_bool: overload('bool', [string], cast.stringToBool),
  string_to_bytes: overload('bytes', [string], cast.stringToBytes),
  int64_to_double: overload('double', [int], cast.intToDouble),
  string_to_double: overload('double', [string], cast.stringToDouble),
  uint64_to_double: overload('double', [uint], cast.uintToDouble),
  int64_to_duration: overload('duration', [int], time.intToDuration),
  string_to_duration: overload('duration', [string], time.parseDuration),
  double_to_int64: overload('int', [double], cast.doubleToInt),
  duration_to_int64: overload('int', [duration], time.durationToInt),
  string_to_int64: overload('int', [string], cast.stringToInt),
  timestamp_to_int64: overload('int', [timestamp], time.timestampToInt),
  uint64_to_int64: overload('int', [uint], cast.uintToInt),
  bytes_to_string: overload('string', [bytes], cast.bytesToString),
  double_to_string: overload('string', [double], cast.doubleToString),
  duration_to_string: overload('string', [duration], durationToString),
  timestamp_to_string: overload('string', [timestamp], timestampToString),
  int64_to_timestamp: overload('timestamp', [int], time.intToTimestamp),
  string_to_timestamp: overload('timestamp', [string], time.parseTimestamp),
  double_to_uint64: overload('uint', [double], cast.doubleToUint),
  int64_to_uint64: overload('uint', [int], cast.intToUint),
  string_to_uint64: overload('uint', [string], cast.stringToUint),
  ...time.accessors,
}
