import { type Duration, Timestamp } from '../values.ts'

/** Nanoseconds. */
export const SECOND = 1_000_000_000n

/** Quotient rounded down, so that remainders are never negative. */
export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b
  return a % b < 0n ? quotient - 1n : quotient
}

/** `string(duration)`: seconds in shortest decimals, `1.5s`. */
export function durationToString(value: Duration): string {
  return `${plainDecimal(seconds(value))}s`
}

function seconds(value: Duration): number {
  return Number(value.ns / SECOND) + Number(value.ns % SECOND) / 1e9
}

/** A double without an exponent. */
function plainDecimal(value: number): string {
  const text = String(value)
  if (!text.includes('e')) return text
  return value.toFixed(20).replace(/\.?0+$/, '')
}

/** `string(timestamp)`: RFC 3339 in the zone it was written in, the fraction without trailing zeros. */
export function timestampToString(value: Timestamp): string {
  const { offset } = value
  if (offset === 0) return timestampToUtc(value)
  const local = timestampToUtc(new Timestamp(value.ns + BigInt(offset) * SECOND))
  const minutes = Math.abs(offset) / 60
  const two = (number: number) => String(Math.trunc(number)).padStart(2, '0')
  return `${local.slice(0, -1)}${offset < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`
}

/** The timestamp as RFC 3339 in UTC. */
export function timestampToUtc(value: Timestamp): string {
  const whole = floorDiv(value.ns, SECOND)
  const nanos = value.ns - whole * SECOND
  const text = new Date(Number(whole) * 1000).toISOString().replace(/^\+0*/, '').slice(0, -5)
  const fraction = nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
  return `${text}${fraction}Z`
}
