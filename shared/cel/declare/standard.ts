import {
  type FunctionDeclaration,
  fn,
  member,
  type OverloadDeclaration,
  overload,
} from '../declarations.ts'

/** Names of numeric types in overload ids. */
const NUMERIC = { int: 'int64', uint: 'uint64', double: 'double' } as const
type Numeric = keyof typeof NUMERIC
const NUMBERS: readonly Numeric[] = ['int', 'uint', 'double']

/** The functions and operators every environment has. With `mixed`, numbers of different types compare. */
export function standardFunctions(mixed: boolean): readonly FunctionDeclaration[] {
  return [
    ...LOGIC,
    comparison('_<_', 'less', mixed),
    comparison('_<=_', 'less_equals', mixed),
    comparison('_>_', 'greater', mixed),
    comparison('_>=_', 'greater_equals', mixed),
    ...ARITHMETIC,
    ...COLLECTIONS,
    ...CONVERSIONS,
    ...STRINGS,
    ...TIME,
  ]
}

const LOGIC: readonly FunctionDeclaration[] = [
  fn('_?_:_', overload('conditional', ['bool', 'A', 'A'], 'A')),
  fn('_&&_', overload('logical_and', ['bool', 'bool'], 'bool')),
  fn('_||_', overload('logical_or', ['bool', 'bool'], 'bool')),
  fn('!_', overload('logical_not', ['bool'], 'bool')),
  fn('@not_strictly_false', overload('not_strictly_false', ['bool'], 'bool')),
  fn('_==_', overload('equals', ['A', 'A'], 'bool')),
  fn('_!=_', overload('not_equals', ['A', 'A'], 'bool')),
]

function comparison(name: string, prefix: string, mixed: boolean): FunctionDeclaration {
  const numbers = NUMBERS.flatMap((left) =>
    NUMBERS.filter((right) => mixed || left === right).map((right) => {
      const id = left === right ? NUMERIC[left] : `${NUMERIC[left]}_${NUMERIC[right]}`
      return overload(`${prefix}_${id}`, [left, right], 'bool')
    }),
  )
  const others = ['string', 'bytes', 'timestamp', 'duration'].map((type) =>
    overload(`${prefix}_${type}`, [type, type], 'bool'),
  )
  const bool = overload(`${prefix}_bool`, ['bool', 'bool'], 'bool')
  return fn(name, bool, ...numbers, ...others)
}

function numeric(prefix: string, types: readonly Numeric[], arity = 2): OverloadDeclaration[] {
  return types.map((type) =>
    overload(`${prefix}_${NUMERIC[type]}`, new Array<string>(arity).fill(type), type),
  )
}

const ARITHMETIC: readonly FunctionDeclaration[] = [
  fn(
    '_+_',
    overload('add_bytes', ['bytes', 'bytes'], 'bytes'),
    overload('add_double', ['double', 'double'], 'double'),
    overload('add_duration_duration', ['duration', 'duration'], 'duration'),
    overload('add_duration_timestamp', ['duration', 'timestamp'], 'timestamp'),
    overload('add_timestamp_duration', ['timestamp', 'duration'], 'timestamp'),
    overload('add_int64', ['int', 'int'], 'int'),
    overload('add_list', ['list(A)', 'list(A)'], 'list(A)'),
    overload('add_string', ['string', 'string'], 'string'),
    overload('add_uint64', ['uint', 'uint'], 'uint'),
  ),
  fn('_/_', ...numeric('divide', ['double', 'int', 'uint'])),
  fn('_%_', ...numeric('modulo', ['int', 'uint'])),
  fn('_*_', ...numeric('multiply', ['double', 'int', 'uint'])),
  fn('-_', ...numeric('negate', ['double', 'int'], 1)),
  fn(
    '_-_',
    overload('subtract_double', ['double', 'double'], 'double'),
    overload('subtract_duration_duration', ['duration', 'duration'], 'duration'),
    overload('subtract_int64', ['int', 'int'], 'int'),
    overload('subtract_timestamp_duration', ['timestamp', 'duration'], 'timestamp'),
    overload('subtract_timestamp_timestamp', ['timestamp', 'timestamp'], 'duration'),
    overload('subtract_uint64', ['uint', 'uint'], 'uint'),
  ),
]

const COLLECTIONS: readonly FunctionDeclaration[] = [
  fn(
    '_[_]',
    overload('index_list', ['list(A)', 'int'], 'A'),
    overload('index_map', ['map(A, B)', 'A'], 'B'),
  ),
  fn(
    '@in',
    overload('in_list', ['A', 'list(A)'], 'bool'),
    overload('in_map', ['A', 'map(A, B)'], 'bool'),
  ),
  fn(
    'size',
    ...(['bytes', 'list(A)', 'map(A, B)', 'string'] as const).flatMap((type) => {
      const [name] = type.split('(')
      return [overload(`size_${name}`, [type], 'int'), member(`${name}_size`, [type], 'int')]
    }),
  ),
]

/** A conversion function: its name is the result type, its overloads are named after the argument types. */
function conversion(to: string, idName: string, from: Record<string, string>): FunctionDeclaration {
  const overloads = Object.entries(from).map(([type, name]) =>
    overload(`${name}_to_${idName}`, [type], to),
  )
  return fn(to, ...overloads)
}

const CONVERSIONS: readonly FunctionDeclaration[] = [
  fn('type', overload('type', ['A'], 'type(A)')),
  fn('dyn', overload('to_dyn', ['A'], 'dyn')),
  conversion('bool', 'bool', { bool: 'bool', string: 'string' }),
  conversion('bytes', 'bytes', { bytes: 'bytes', string: 'string' }),
  conversion('double', 'double', {
    double: 'double',
    int: 'int64',
    string: 'string',
    uint: 'uint64',
  }),
  conversion('duration', 'duration', { duration: 'duration', int: 'int64', string: 'string' }),
  conversion('int', 'int64', {
    int: 'int64',
    double: 'double',
    duration: 'duration',
    string: 'string',
    timestamp: 'timestamp',
    uint: 'uint64',
  }),
  conversion('string', 'string', {
    string: 'string',
    bool: 'bool',
    bytes: 'bytes',
    double: 'double',
    duration: 'duration',
    int: 'int64',
    timestamp: 'timestamp',
    uint: 'uint64',
  }),
  conversion('timestamp', 'timestamp', { timestamp: 'timestamp', int: 'int64', string: 'string' }),
  conversion('uint', 'uint64', {
    uint: 'uint64',
    double: 'double',
    int: 'int64',
    string: 'string',
  }),
]

const STRINGS: readonly FunctionDeclaration[] = [
  fn('contains', member('contains_string', ['string', 'string'], 'bool')),
  fn('endsWith', member('ends_with_string', ['string', 'string'], 'bool')),
  fn('startsWith', member('starts_with_string', ['string', 'string'], 'bool')),
  fn(
    'matches',
    overload('matches', ['string', 'string'], 'bool'),
    member('matches_string', ['string', 'string'], 'bool'),
  ),
]

/** A part of a timestamp, in UTC or in the zone that is named; ids differ only in how cel-go spelled the second one. */
function timePart(name: string, part: string, zoned = `${part}_with_tz`): FunctionDeclaration {
  return fn(
    name,
    member(`timestamp_to_${part}`, ['timestamp'], 'int'),
    member(`timestamp_to_${zoned}`, ['timestamp', 'string'], 'int'),
  )
}

function clockPart(name: string, part: string, zoned?: string): FunctionDeclaration {
  const timestamp = timePart(name, part, zoned)
  return fn(name, ...timestamp.overloads, member(`duration_to_${part}`, ['duration'], 'int'))
}

const TIME: readonly FunctionDeclaration[] = [
  timePart('getFullYear', 'year'),
  timePart('getMonth', 'month'),
  timePart('getDayOfYear', 'day_of_year'),
  timePart('getDayOfMonth', 'day_of_month'),
  timePart('getDate', 'day_of_month_1_based'),
  timePart('getDayOfWeek', 'day_of_week'),
  clockPart('getHours', 'hours'),
  clockPart('getMinutes', 'minutes'),
  clockPart('getSeconds', 'seconds', 'seconds_tz'),
  clockPart('getMilliseconds', 'milliseconds'),
]
