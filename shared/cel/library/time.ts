import { checkedDuration, checkedTimestamp } from '../arithmetic.ts'
import { duration, type Library, overload, string, timestamp } from '../implementation.ts'
import {
  CelError,
  type CelResult,
  Duration,
  INT_MAX,
  INT_MIN,
  normalInt,
  type Timestamp,
} from '../values.ts'
import { floorDiv, SECOND } from './time-text.ts'

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3600n * SECOND,
}

/** `duration("1h30m")` as Go's ParseDuration reads it. */
export function parseDuration(text: string): CelResult {
  const invalid = new CelError(`time: invalid duration ${JSON.stringify(text)}`)
  const sign = text.startsWith('-') ? -1n : 1n
  let rest = text.replace(/^[+-]/, '')
  if (rest === '0') return new Duration(0n)
  if (rest === '') return invalid
  let sum = 0n
  while (rest !== '') {
    const part = /^(\d*)(\.\d*)?(ns|us|µs|μs|ms|s|m|h)/.exec(rest)
    const [whole, digits = '', fraction = '.', unit = ''] = part ?? []
    if (whole === undefined || (digits === '' && fraction.length < 2)) return invalid
    const scale = UNITS[unit] ?? 0n
    sum += BigInt(digits || '0') * scale + fractionOf(fraction.slice(1), scale)
    if (sum > 2n ** 63n) return invalid
    rest = rest.slice(whole.length)
  }
  const ns = sign * sum
  return ns < INT_MIN || ns > INT_MAX ? invalid : new Duration(ns)
}

/** A decimal fraction of a unit in nanoseconds, in the double arithmetic Go does it in. */
function fractionOf(digits: string, unit: bigint): bigint {
  let value = 0n
  let scale = 1
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit)
    if (next > INT_MAX) break
    value = next
    scale *= 10
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)))
}

/** `duration(1)`: nanoseconds. */
export function intToDuration(value: number | bigint): CelResult {
  return checkedDuration(BigInt(value))
}

/** `int(duration)`: nanoseconds. */
export function durationToInt(value: Duration): CelResult {
  return normalInt(value.ns)
}

const RFC3339 =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

/** `timestamp("2006-01-02T15:04:05Z")`: RFC 3339, any number of fraction digits of which nine count. */
export function parseTimestamp(text: string): CelResult {
  const invalid = new CelError(`cannot parse ${JSON.stringify(text)} as RFC 3339`)
  const parts = RFC3339.exec(text)
  if (parts === null) return invalid
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1, 7)
    .map(Number)
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return invalid
  if (hour > 23 || minute > 59 || second > 59) return invalid
  const [, , , , , , , fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = parts
  // Go takes an offset of 24 hours, and 60 minutes in it.
  if (Number(offsetHour) > 24 || Number(offsetMinute) > 60) return invalid
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -60 : 60)
  const base = BigInt(epochDay(year, month, day)) * 86_400n
  const time = BigInt(hour * 3600 + minute * 60 + second - offset)
  const ns = (base + time) * SECOND + BigInt(fraction.slice(0, 9).padEnd(9, '0'))
  return checkedTimestamp(ns, offset)
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
}

/** Days from 1970-01-01 to a date of the proleptic Gregorian calendar. */
function epochDay(year: number, month: number, day: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.getTime() / 86_400_000
}

/** `timestamp(0)`: seconds since the epoch. */
export function intToTimestamp(value: number | bigint): CelResult {
  return checkedTimestamp(BigInt(value) * SECOND)
}

/** `int(timestamp)`: whole seconds since the epoch. */
export function timestampToInt(value: Timestamp): CelResult {
  return normalInt(floorDiv(value.ns, SECOND))
}

/** The timestamp as a Date whose UTC fields are its fields in a zone, or an error for a zone nobody knows. */
function zoned(value: Timestamp, zone: string): Date | CelError {
  const ms = Number(floorDiv(value.ns, 1_000_000n))
  const offset = zone.includes(':') ? fixedOffset(zone) : namedOffset(zone, ms)
  return offset instanceof CelError ? offset : new Date(ms + offset)
}

/** Offset of `+02:30`, `-2:30` or `02:30` in milliseconds. */
function fixedOffset(zone: string): number | CelError {
  const parts = /^([+-]?\d+):([+-]?\d+)$/.exec(zone)
  if (parts === null) return new CelError(`cannot parse time zone ${JSON.stringify(zone)}`)
  const hours = Number(parts[1])
  const minutes = Number(parts[2])
  return (hours * 60 + (zone.startsWith('-') ? -minutes : minutes)) * 60_000
}

const FORMATS = new Map<string, Intl.DateTimeFormat>()
/** There are about 600 zone names; a name that is none never gets here. */
const MAX_FORMATS = 600

function namedOffset(zone: string, ms: number): number | CelError {
  if (zone === '' || zone === 'UTC' || zone === 'Local') return 0
  const format = zoneFormat(zone)
  if (format === undefined) return new CelError(`unknown time zone ${zone}`)
  const fields = new Map(format.formatToParts(ms).map((part) => [part.type, part.value]))
  const field = (name: Intl.DateTimeFormatPartTypes) => Number(fields.get(name))
  // The zone's first days of year 1 are the last of year 1 BC, which is year 0 here.
  const year = fields.get('era')?.startsWith('B') ? 1 - field('year') : field('year')
  const days = epochDay(year, field('month'), field('day'))
  const local = days * 86_400 + field('hour') * 3600 + field('minute') * 60 + field('second')
  return local * 1000 - Math.floor(ms / 1000) * 1000
}

function zoneFormat(zone: string): Intl.DateTimeFormat | undefined {
  const known = FORMATS.get(zone)
  if (known !== undefined) return known
  if (!/^[A-Z]/.test(zone)) return undefined
  try {
    const made = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    // Go's names are case-sensitive, these are not: at least the name itself must be spelled as it is.
    const { timeZone } = made.resolvedOptions()
    if (timeZone !== zone && timeZone.toLowerCase() === zone.toLowerCase()) return undefined
    if (FORMATS.size < MAX_FORMATS) FORMATS.set(zone, made)
    return made
  } catch {
    return undefined
  }
}

function dayOfYear(date: Date): number {
  return Math.floor(date.getTime() / 86_400_000) - epochDay(date.getUTCFullYear(), 1, 1)
}

/** Accessor name, the stem of its overload ids, and the field it reads. */
const FIELDS: readonly [string, string, (date: Date) => number][] = [
  ['getFullYear', 'year', (date) => date.getUTCFullYear()],
  ['getMonth', 'month', (date) => date.getUTCMonth()],
  ['getDayOfYear', 'day_of_year', dayOfYear],
  ['getDayOfMonth', 'day_of_month', (date) => date.getUTCDate() - 1],
  ['getDate', 'day_of_month_1_based', (date) => date.getUTCDate()],
  ['getDayOfWeek', 'day_of_week', (date) => date.getUTCDay()],
  ['getHours', 'hours', (date) => date.getUTCHours()],
  ['getMinutes', 'minutes', (date) => date.getUTCMinutes()],
  ['getSeconds', 'seconds', (date) => date.getUTCSeconds()],
  ['getMilliseconds', 'milliseconds', (date) => date.getUTCMilliseconds()],
]

function timestampAccessors(): Library {
  const out: Record<string, Library[string]> = {}
  for (const [fn, id, read] of FIELDS) {
    const inZone = (value: Timestamp, zone: string) => {
      const date = zoned(value, zone)
      return date instanceof CelError ? date : read(date)
    }
    out[`timestamp_to_${id}`] = overload(fn, [timestamp], (value) => inZone(value, 'UTC'))
    // cel-go's own ids; the one for seconds has no `with`.
    const zonedId = id === 'seconds' ? 'timestamp_to_seconds_tz' : `timestamp_to_${id}_with_tz`
    out[zonedId] = overload(fn, [timestamp, string], inZone)
  }
  return out
}

/** Whole units of a duration's total, cut from the double Go computes; it may have been rounded up to the next one. */
function durationField(unit: bigint) {
  return ({ ns }: Duration) => Math.trunc(Number(ns / unit) + Number(ns % unit) / Number(unit))
}

/** `getHours()` and its kin, on timestamps (in UTC or a given zone) and on durations (whole units of the total). */
export const accessors: Library = {
  ...timestampAccessors(),
  duration_to_hours: overload('getHours', [duration], durationField(3600n * SECOND)),
  duration_to_minutes: overload('getMinutes', [duration], durationField(60n * SECOND)),
  duration_to_seconds: overload('getSeconds', [duration], durationField(SECOND)),
  duration_to_milliseconds: overload('getMilliseconds', [duration], ({ ns }) =>
    normalInt(ns / 1_000_000n),
  ),
}
