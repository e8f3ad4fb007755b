import { type FunctionDeclaration, fn, member, overload } from '../declarations.ts'

/**
 * The string library at a version: 0 has the basic functions, 1 adds `format` and `strings.quote`, 2 gives `join` overloads
 * of their own, 3 adds `reverse`.
 */
export function stringFunctions(version: number): readonly FunctionDeclaration[] {
  return [
    fn('charAt', member('string_char_at_int', ['string', 'int'], 'string')),
    fn(
      'indexOf',
      member('string_index_of_string', ['string', 'string'], 'int'),
      member('string_index_of_string_int', ['string', 'string', 'int'], 'int'),
    ),
    fn(
      'lastIndexOf',
      member('string_last_index_of_string', ['string', 'string'], 'int'),
      member('string_last_index_of_string_int', ['string', 'string', 'int'], 'int'),
    ),
    fn('lowerAscii', member('string_lower_ascii', ['string'], 'string')),
    fn(
      'replace',
      member('string_replace_string_string', ['string', 'string', 'string'], 'string'),
      member('string_replace_string_string_int', ['string', 'string', 'string', 'int'], 'string'),
    ),
    fn(
      'split',
      member('string_split_string', ['string', 'string'], 'list(string)'),
      member('string_split_string_int', ['string', 'string', 'int'], 'list(string)'),
    ),
    fn(
      'substring',
      member('string_substring_int', ['string', 'int'], 'string'),
      member('string_substring_int_int', ['string', 'int', 'int'], 'string'),
    ),
    fn('trim', member('string_trim', ['string'], 'string')),
    fn('upperAscii', member('string_upper_ascii', ['string'], 'string')),
    fn(
      'join',
      member('list_join', ['list(string)'], 'string'),
      member('list_join_string', ['list(string)', 'string'], 'string'),
    ),
    ...(version < 1
      ? []
      : [
          fn('format', member('string_format', ['string', 'list(dyn)'], 'string')),
          fn('strings.quote', overload('strings_quote', ['string'], 'string')),
        ]),
    ...(version < 3 ? [] : [fn('reverse', member('string_reverse', ['string'], 'string'))]),
  ]
}
