/** How tightly an expression binds, loosest first. */
export const LEVEL = {
  conditional: 0,
  or: 1,
  and: 2,
  relation: 3,
  sum: 4,
  product: 5,
  unary: 6,
  operand: 7,
} as const

/** Operators that stand between their operands, apart from `&&` and `||`: spelling, cel-go's name, how tightly they bind. */
export const INFIX = [
  { text: '<', fn: '_<_', level: LEVEL.relation },
  { text: '<=', fn: '_<=_', level: LEVEL.relation },
  { text: '>', fn: '_>_', level: LEVEL.relation },
  { text: '>=', fn: '_>=_', level: LEVEL.relation },
  { text: '==', fn: '_==_', level: LEVEL.relation },
  { text: '!=', fn: '_!=_', level: LEVEL.relation },
  { text: 'in', fn: '@in', level: LEVEL.relation },
  { text: '+', fn: '_+_', level: LEVEL.sum },
  { text: '-', fn: '_-_', level: LEVEL.sum },
  { text: '*', fn: '_*_', level: LEVEL.product },
  { text: '/', fn: '_/_', level: LEVEL.product },
  { text: '%', fn: '_%_', level: LEVEL.product },
] as const
