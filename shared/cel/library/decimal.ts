/** A rounded decimal: its sign and its digits before and after the point. */
export interface Decimal {
  negative: boolean
  whole: string
  fraction: string
}

const buffer = new DataView(new ArrayBuffer(8))

/** Mantissa and binary exponent of a finite double's magnitude. */
function binaryParts(value: number): { mantissa: bigint; exponent: number } {
  buffer.setFloat64(0, value)
  const bits = buffer.getBigUint64(0)
  const biased = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & (2n ** 52n - 1n)
  if (biased === 0) return { mantissa: fraction, exponent: -1074 }
  return { mantissa: fraction + 2n ** 52n, exponent: biased - 1075 }
}

/** The quotient rounded to the nearest integer, a tie to the even one. */
function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  const twice = (numerator % denominator) * 2n
  const up = twice > denominator || (twice === denominator && quotient % 2n === 1n)
  return up ? quotient + 1n : quotient
}

/** A finite double's exact value times 10^shift, rounded half to even. */
function scaledInteger(value: number, shift: number): bigint {
  const { mantissa, exponent } = binaryParts(value)
  const numerator =
    mantissa * 10n ** BigInt(Math.max(0, shift)) * 2n ** BigInt(Math.max(0, exponent))
  const denominator = 10n ** BigInt(Math.max(0, -shift)) * 2n ** BigInt(Math.max(0, -exponent))
  return divideHalfEven(numerator, denominator)
}

/** A finite double with exactly `precision` digits after the point. */
export function toFixedDecimal(value: number, precision: number): Decimal {
  const digits = String(scaledInteger(value, precision)).padStart(precision + 1, '0')
  return {
    negative: value < 0 || Object.is(value, -0),
    whole: digits.slice(0, digits.length - precision),
    fraction: digits.slice(digits.length - precision),
  }
}

/** A finite double as `d.ddd × 10^exponent` with `precision` digits after the point. */
export function toScientificDecimal(
  value: number,
  precision: number,
): Decimal & { exponent: number } {
  const negative = value < 0
  if (value === 0) return { negative, whole: '0', fraction: '0'.repeat(precision), exponent: 0 }
  let exponent = Number(value.toExponential().split('e')[1])
  let digits = String(scaledInteger(value, precision - exponent))
  if (digits.length > precision + 1) {
    exponent++
    digits = String(scaledInteger(value, precision - exponent))
  }
  return { negative, whole: digits.slice(0, 1), fraction: digits.slice(1), exponent }
}

/** The double as C's `%.{precision}f` prints it. */
export function plainFixed(value: number, precision: number): string {
  const { negative, whole, fraction } = toFixedDecimal(value, precision)
  return `${negative ? '-' : ''}${whole}${fraction === '' ? '' : '.'}${fraction}`
}
