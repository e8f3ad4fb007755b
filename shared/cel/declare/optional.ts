import { type FunctionDeclaration, fn, member, overload } from '../declarations.ts'

const V = 'optional_type(V)'

/** Optional values: the operators of optional syntax and the functions on optionals. */
export const OPTIONAL_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('optional.of', overload('optional_of', ['V'], V)),
  fn('optional.ofNonZeroValue', overload('optional_ofNonZeroValue', ['V'], V)),
  fn('optional.none', overload('optional_none', [], V)),
  fn('value', member('optional_value', [V], 'V')),
  fn('hasValue', member('optional_hasValue', [V], 'bool')),
  fn('or', member('optional_or_optional', [V, V], V)),
  fn('orValue', member('optional_orValue_value', [V, 'V'], 'V')),
  fn('_?._', overload('select_optional_field', ['dyn', 'string'], V)),
  fn(
    '_[?_]',
    overload('list_optindex_optional_int', ['list(V)', 'int'], V),
    overload('optional_list_optindex_optional_int', ['optional_type(list(V))', 'int'], V),
    overload('map_optindex_optional_value', ['map(K, V)', 'K'], V),
    overload('optional_map_optindex_optional_value', ['optional_type(map(K, V))', 'K'], V),
  ),
  fn(
    '_[_]',
    overload('optional_list_index_int', ['optional_type(list(V))', 'int'], V),
    overload('optional_map_index_value', ['optional_type(map(K, V))', 'K'], V),
  ),
  fn('optional.unwrap', overload('optional_unwrap', ['list(optional_type(V))'], 'list(V)')),
  fn('unwrapOpt', member('optional_unwrapOpt', ['list(optional_type(V))'], 'list(V)')),
  fn('first', member('list_first', ['list(V)'], V)),
  fn('last', member('list_last', ['list(V)'], V)),
]
