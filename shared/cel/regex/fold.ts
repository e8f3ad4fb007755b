import { includes, normalise, type Ranges } from './ranges.ts'
import { assigned } from './unicode.ts'

/** Where letters with an upper and a lower case are, as of Unicode 15: first and last of each stretch. */
const CASED: Ranges = [
  0x41, 0x587, 0x10a0, 0x13ff, 0x1c80, 0x1fff, 0x2126, 0x2188, 0x24b6, 0x24e9, 0x2c00, 0x2d2d,
  0xa640, 0xabbf, 0xff21, 0xff5a, 0x10400, 0x105bc, 0x10c80, 0x10cf2, 0x118a0, 0x118df, 0x16e40,
  0x16e7f, 0x1e900, 0x1e943,
]
/** The dotless i of Turkish is a letter of its own. */
const DOTLESS_I = 0x131
const KELVIN = 0x212a
const LONG_S = 0x17f

let orbits: Map<number, number[]> | undefined

/** By rune: all that are one letter without regard to case, itself included. */
function allOrbits(): Map<number, number[]> {
  if (orbits !== undefined) return orbits
  orbits = new Map()
  for (let i = 0; i < CASED.length; i += 2) {
    for (let rune = CASED[i] ?? 0; rune <= (CASED[i + 1] ?? 0); rune++) {
      if (rune === DOTLESS_I || !assigned(rune)) continue
      const letter = String.fromCodePoint(rune)
      join(orbits, rune, letter.toLowerCase())
      join(orbits, rune, letter.toUpperCase())
    }
  }
  return orbits
}

function join(into: Map<number, number[]>, rune: number, changed: string): void {
  const other = changed.codePointAt(0) ?? rune
  // What becomes several letters has no simple counterpart.
  if (other === rune || changed.length > (other > 0xffff ? 2 : 1) || !assigned(other)) return
  const one = into.get(rune) ?? [rune]
  const two = into.get(other) ?? [other]
  const both = one === two ? one : [...one, ...two]
  for (const member of both) into.set(member, both)
}

/** All runes that are the same letter without regard to case, as Unicode's simple folding has it; itself included. */
export function orbit(rune: number): readonly number[] {
  if (rune >= 128) return allOrbits().get(rune) ?? [rune]
  const lower = rune | 32
  if (lower < 97 || lower > 122) return [rune]
  const pair = [lower, lower - 32]
  if (lower === 0x6b) pair.push(KELVIN)
  if (lower === 0x73) pair.push(LONG_S)
  return pair
}

/** The ranges with all that are the same letters without regard to case. */
export function folded(ranges: Ranges): Ranges {
  const out = [...ranges]
  const add = (rune: number, others: readonly number[]) => {
    if (includes(ranges, rune)) for (const other of others) out.push(other, other)
  }
  // Most classes are ASCII and need no table of the world.
  if ((ranges.at(-1) ?? 0) < 128) for (let rune = 65; rune <= 122; rune++) add(rune, orbit(rune))
  else for (const [rune, others] of allOrbits()) add(rune, others)
  return normalise(out)
}
