import { describe, expect, test } from 'vitest'
import { folded, foldings } from '#shared/cel/regex/fold.ts'
import type { Ranges } from '#shared/cel/regex/ranges.ts'
import { property } from '#shared/cel/regex/unicode.ts'
import { CASED, CATEGORIES, FOLDED, SCRIPTS } from './unicode-facts.ts'

/** Number of runes, and the checksum of the facts. */
function sum(ranges: Ranges): [runes: number, checksum: number] {
  let runes = 0
  let checksum = 0
  for (let i = 0; i < ranges.length; i += 2) {
    runes += ranges[i + 1]! - ranges[i]! + 1
    checksum = (Math.imul(checksum, 31) + ranges[i]!) | 0
    checksum = (Math.imul(checksum, 31) + ranges[i + 1]!) | 0
  }
  return [runes, checksum]
}

/** Whatever Unicode this runtime has, it is the one of Go that counts. */
describe('the runes of Unicode 15.0', () => {
  test.each(CATEGORIES)('\\p{%s} has %i of them', (name, ...fact) => {
    expect(sum(property(name)!)).toEqual(fact)
  })

  test.each(SCRIPTS)('\\p{%s} has %i of them', (name, ...fact) => {
    expect(sum(property(name)!)).toEqual(fact)
  })

  test.each(FOLDED)('\\p{%s} has %i of them without regard to case', (name, ...fact) => {
    expect(sum(folded(property(name)!))).toEqual(fact)
  })

  test('every letter has exactly its other cases', () => {
    let runes = 0
    let checksum = 0
    let same = true
    for (let rune = 0; rune < 0x20000; rune++) {
      const ranges = foldings(rune)
      if (ranges[0] !== rune || ranges.at(-1) === rune) continue
      for (let i = 0; i < ranges.length; i += 2) {
        for (let member = ranges[i]!; member <= ranges[i + 1]!; member++) {
          runes++
          checksum = (Math.imul(checksum, 31) + member) | 0
          same &&= String(foldings(member)) === String(ranges)
        }
      }
    }
    expect(['cased', runes, checksum]).toEqual(CASED)
    expect(same).toBe(true)
  })
})

describe('names of properties', () => {
  test.each([
    ['lu', 'Lu'],
    ['LU', 'Lu'],
    ['Uppercase_Letter', 'Lu'],
    ['uppercase letter', 'Lu'],
    ['UppercaseLetter', 'Lu'],
    ['L-u', 'Lu'],
    ['_L', 'L'],
    ['digit', 'Nd'],
    ['punct', 'P'],
    ['cntrl', 'Cc'],
    ['Combining_Mark', 'M'],
    ['lc', 'LC'],
    ['greek', 'Greek'],
    ['GREEK', 'Greek'],
  ])('%s is %s', (name, same) => {
    expect(property(name)).toEqual(property(same))
  })

  test('Any, Ascii and Assigned are no categories of Unicode', () => {
    expect(property('any')).toEqual([0, 0x10ffff])
    expect(property('ASCII')).toEqual([0, 0x7f])
    expect(sum(property('Assigned')!)[0]).toBe(0x110000 - sum(property('Cn')!)[0])
  })

  test.each([
    ['a script by its abbreviation', 'Grek'],
    ['an abbreviation that is as long as some names', 'Nkoo'],
    ['a script that came later', 'Garay'],
    ['what is no script', 'Unknown'],
    ['a script that has no runes', 'Katakana_Or_Hiragana'],
    ['a binary property', 'Alphabetic'],
    ['a property with its kind', 'gc=L'],
    ['a piece of a pattern', 'L}|\\p{N'],
    ['a letter that lower-cases to ASCII', '\u212aatakana'],
    ['nothing', ''],
    ['a member of every object', 'constructor'],
  ])('%s is no name', (_, name) => {
    expect(property(name)).toBeUndefined()
  })
})
