import { type FunctionDeclaration, fn, member, overload } from '../declarations.ts'

/** Types with an order. */
const COMPARABLE = [
  'int',
  'uint',
  'double',
  'bool',
  'duration',
  'timestamp',
  'string',
  'bytes',
] as const

/** Names of those types in the overload ids of cel-go's list library, which uses run-time names. */
function runtimeName(type: (typeof COMPARABLE)[number]): string {
  if (type === 'duration') return 'google.protobuf.Duration'
  return type === 'timestamp' ? 'google.protobuf.Timestamp' : type
}

/** cel-go's list library at version 3. */
export const LIST_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('slice', member('list_slice', ['list(T)', 'int', 'int'], 'list(T)')),
  fn(
    'flatten',
    member('list_flatten', ['list(list(T))'], 'list(T)'),
    member('list_flatten_int', ['list(dyn)', 'int'], 'list(dyn)'),
  ),
  fn(
    'sort',
    ...COMPARABLE.map((type) =>
      member(`list_${runtimeName(type)}_sort`, [`list(${type})`], `list(${type})`),
    ),
  ),
  fn(
    '@sortByAssociatedKeys',
    ...COMPARABLE.map((type) =>
      member(
        `list_${runtimeName(type)}_sortByAssociatedKeys`,
        ['list(T)', `list(${type})`],
        'list(T)',
      ),
    ),
  ),
  fn('lists.range', overload('lists_range', ['int'], 'list(int)')),
  fn('reverse', member('list_reverse', ['list(T)'], 'list(T)')),
  fn('distinct', member('list_distinct', ['list(T)'], 'list(T)')),
]

/** cel-go's set library. */
export const SET_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('sets.contains', overload('list_sets_contains_list', ['list(T)', 'list(T)'], 'bool')),
  fn('sets.equivalent', overload('list_sets_equivalent_list', ['list(T)', 'list(T)'], 'bool')),
  fn('sets.intersects', overload('list_sets_intersects_list', ['list(T)', 'list(T)'], 'bool')),
]

/** What the two-variable macros expand to besides operators. */
export const COMPREHENSION_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn(
    'cel.@mapInsert',
    overload('@mapInsert_map_key_value', ['map(K, V)', 'K', 'V'], 'map(K, V)'),
    overload('@mapInsert_map_map', ['map(K, V)', 'map(K, V)'], 'map(K, V)'),
  ),
]
