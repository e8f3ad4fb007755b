import { type FunctionDeclaration, fn, overload } from '../declarations.ts'

const NUMBERS = ['double', 'int', 'uint'] as const

function extremum(name: 'min' | 'max'): FunctionDeclaration {
  const id = `math_@${name}`
  const pairs = [
    ['double', 'double'],
    ['int', 'int'],
    ['uint', 'uint'],
    ['int', 'uint'],
    ['int', 'double'],
    ['double', 'int'],
    ['double', 'uint'],
    ['uint', 'int'],
    ['uint', 'double'],
  ] as const
  return fn(
    `math.@${name}`,
    ...NUMBERS.map((type) => overload(`${id}_${type}`, [type], type)),
    ...pairs.map(([a, b]) => overload(`${id}_${a}_${b}`, [a, b], a === b ? a : 'dyn')),
    ...NUMBERS.map((type) => overload(`${id}_list_${type}`, [`list(${type})`], type)),
  )
}

function bitwise(name: 'bitAnd' | 'bitOr' | 'bitXor'): FunctionDeclaration {
  const id = `math_@${name}`
  return fn(
    `math.@${name}`,
    overload(`${id}_int_int`, ['int', 'int'], 'int'),
    overload(`${id}_uint_uint`, ['uint', 'uint'], 'uint'),
    overload(`${id}_list_int`, ['list(int)'], 'int'),
    overload(`${id}_list_uint`, ['list(uint)'], 'uint'),
  )
}

function shift(name: 'bitShiftLeft' | 'bitShiftRight'): FunctionDeclaration {
  return fn(
    `math.${name}`,
    overload(`math_${name}_int_int`, ['int', 'int'], 'int'),
    overload(`math_${name}_uint_int`, ['uint', 'int'], 'uint'),
  )
}

/** cel-go's math library at its newest version. */
export const MATH_FUNCTIONS: readonly FunctionDeclaration[] = [
  extremum('min'),
  extremum('max'),
  ...['ceil', 'floor', 'round', 'trunc'].map((name) =>
    fn(`math.${name}`, overload(`math_${name}_double`, ['double'], 'double')),
  ),
  ...['isInf', 'isNaN', 'isFinite'].map((name) =>
    fn(`math.${name}`, overload(`math_${name}_double`, ['double'], 'bool')),
  ),
  ...['abs', 'sign'].map((name) =>
    fn(`math.${name}`, ...NUMBERS.map((type) => overload(`math_${name}_${type}`, [type], type))),
  ),
  fn('math.sqrt', ...NUMBERS.map((type) => overload(`math_sqrt_${type}`, [type], 'double'))),
  bitwise('bitAnd'),
  bitwise('bitOr'),
  bitwise('bitXor'),
  fn(
    'math.bitNot',
    overload('math_bitNot_int_int', ['int'], 'int'),
    overload('math_bitNot_uint_uint', ['uint'], 'uint'),
  ),
  shift('bitShiftLeft'),
  shift('bitShiftRight'),
]

export const ENCODER_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('base64.encode', overload('base64_encode_bytes', ['bytes'], 'string')),
  fn('base64.decode', overload('base64_decode_string', ['string'], 'bytes')),
]

/** cel-go's `regex.` functions, apart from the API server's `find` and `findAll`. */
export const REGEX_EXTENSION_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn(
    'regex.extract',
    overload('regex_extract_string_string', ['string', 'string'], 'optional_type(string)'),
  ),
  fn(
    'regex.extractAll',
    overload('regex_extractAll_string_string', ['string', 'string'], 'list(string)'),
  ),
  fn(
    'regex.replace',
    overload('regex_replaceAll_string_string_string', ['string', 'string', 'string'], 'string'),
    overload(
      'regex_replaceCount_string_string_string_int',
      ['string', 'string', 'string', 'int'],
      'string',
    ),
  ),
]
