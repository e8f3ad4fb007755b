import { checkedInt } from '../arithmetic.ts'
import { bool, type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult, Opaque } from '../values.ts'

/** A semantic version; build metadata has no part in comparison. */
export class Semver extends Opaque {
  readonly type = 'kubernetes.Semver'
  /** Major, minor, patch. */
  readonly numbers: readonly bigint[]
  readonly prerelease: readonly string[]
  readonly key: string
  constructor(key: string, numbers: readonly bigint[], prerelease: readonly string[]) {
    super()
    this.key = key
    this.numbers = numbers
    this.prerelease = prerelease
  }

  override equals(other: Opaque): boolean {
    return other instanceof Semver && compareVersions(this, other) === 0
  }
}

const UINT64 = 2n ** 64n
/** Digits of the largest 64-bit number. */
const MAX_DIGITS = 20
const IDENTIFIERS = /^[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*$/

/** The version, or why the text is none: strictly three numbers, then `-` pre-release and `+` build identifiers. */
export function parseSemver(text: string): Semver | CelError {
  if (text === '') return new CelError('Version string empty')
  const [major, minor, rest] = cut(text, '.', 3)
  if (major === undefined || minor === undefined || rest === undefined) {
    return new CelError('No Major.Minor.Patch elements found')
  }
  const [withoutBuild = '', build] = cut(rest, '+', 2)
  const [patch = '', prerelease] = cut(withoutBuild, '-', 2)
  const numbers: bigint[] = []
  for (const part of [major, minor, patch]) {
    const number = parseNumber(part)
    if (number instanceof CelError) return number
    numbers.push(number)
  }
  const fault = identifiersFault(prerelease, build)
  if (fault !== undefined) return new CelError(fault)
  return new Semver(text, numbers, prerelease?.split('.') ?? [])
}

/** The text cut at the first separators into at most `count` parts. */
function cut(text: string, separator: string, count: number): string[] {
  const parts = text.split(separator)
  if (parts.length <= count) return parts
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)]
}

function parseNumber(text: string): bigint | CelError {
  if (!/^\d+$/.test(text)) {
    return new CelError(`Invalid character(s) found in version number ${JSON.stringify(text)}`)
  }
  if (/^0\d/.test(text)) {
    return new CelError(`Version number must not contain leading zeroes ${JSON.stringify(text)}`)
  }
  const value = text.length > MAX_DIGITS ? UINT64 : BigInt(text)
  return value < UINT64 ? value : new CelError(`Version number ${text} is out of range`)
}

function fitsUint64(digits: string): boolean {
  return digits.length <= MAX_DIGITS && BigInt(digits) < UINT64
}

function identifiersFault(prerelease: string | undefined, build: string | undefined) {
  if (prerelease !== undefined) {
    if (!IDENTIFIERS.test(prerelease)) return `Invalid prerelease ${JSON.stringify(prerelease)}`
    for (const part of prerelease.split('.')) {
      if (/^0\d+$/.test(part)) return `Numeric prerelease must not have leading zeroes ${part}`
      if (/^\d+$/.test(part) && !fitsUint64(part)) return `Prerelease ${part} is out of range`
    }
  }
  if (build !== undefined && !IDENTIFIERS.test(build)) {
    return `Invalid build metadata ${JSON.stringify(build)}`
  }
  return undefined
}

/** The text with a leading `v` and leading zeros removed and missing numbers added, or why that cannot be done. */
function normalize(text: string): string | CelError {
  const parts = cut(text.replace(/^v/, ''), '.', 3).map(stripZeros)
  if (parts.length < 3) {
    if (/[+-]/.test(parts.at(-1) ?? '')) {
      return new CelError('short version cannot contain PreRelease/Build meta data')
    }
    while (parts.length < 3) parts.push('0')
  }
  return parts.join('.')
}

/** Without leading zeros; of nothing but zeros, and before something that is no digit, one stays. */
function stripZeros(part: string): string {
  if (part.length <= 1) return part
  const stripped = part.replace(/^0+/, '')
  return /^\d/.test(stripped) ? stripped : `0${stripped}`
}

function parseNormalized(text: string, normalized: boolean): Semver | CelError {
  const plain = normalized ? normalize(text) : text
  return plain instanceof CelError ? plain : parseSemver(plain)
}

/** Order of two versions: -1, 0 or 1. */
export function compareVersions(a: Semver, b: Semver): -1 | 0 | 1 {
  for (const [index, number] of a.numbers.entries()) {
    const other = b.numbers[index] ?? 0n
    if (number !== other) return number < other ? -1 : 1
  }
  return comparePrereleases(a.prerelease, b.prerelease)
}

function comparePrereleases(a: readonly string[], b: readonly string[]): -1 | 0 | 1 {
  if (a.length === 0 || b.length === 0) {
    return a.length === b.length ? 0 : a.length === 0 ? 1 : -1
  }
  for (const [index, part] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const order = compareIdentifiers(part, other)
    if (order !== 0) return order
  }
  return a.length === b.length ? 0 : -1
}

function compareIdentifiers(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0
  const numeric = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (numeric[0] !== numeric[1]) return numeric[0] ? -1 : 1
  return (numeric[0] ? BigInt(a) < BigInt(b) : a < b) ? -1 : 1
}

const semver: Guard<Semver> = instance(Semver)

function part(index: number) {
  return (version: Semver): CelResult => checkedInt(BigInt.asIntN(64, version.numbers[index] ?? 0n))
}

/** Semantic versions. */
export const semvers: Library = {
  string_to_semver: overload('semver', [string], parseSemver),
  string_bool_to_semver: overload('semver', [string, bool], parseNormalized),
  is_semver_string: overload('isSemver', [string], (text) => parseSemver(text) instanceof Semver),
  is_semver_string_bool: overload(
    'isSemver',
    [string, bool],
    (text, normalized) => parseNormalized(text, normalized) instanceof Semver,
  ),
  semver_is_greater_than: overload(
    'isGreaterThan',
    [semver, semver],
    (a, b) => compareVersions(a, b) > 0,
  ),
  semver_is_less_than: overload(
    'isLessThan',
    [semver, semver],
    (a, b) => compareVersions(a, b) < 0,
  ),
  semver_compare_to: overload('compareTo', [semver, semver], compareVersions),
  semver_major: overload('major', [semver], part(0)),
  semver_minor: overload('minor', [semver], part(1)),
  semver_patch: overload('patch', [semver], part(2)),
}
