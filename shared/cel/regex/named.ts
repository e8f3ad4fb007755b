import { folded } from './fold.ts'
import { negate, type Ranges } from './ranges.ts'

/** ASCII classes by name, as pairs of characters. */
const POSIX: Readonly<Record<string, string>> = {
  alnum: '09AZaz',
  alpha: 'AZaz',
  ascii: '\x00\x7f',
  blank: '\t\t  ',
  cntrl: '\x00\x1f\x7f\x7f',
  digit: '09',
  graph: '!~',
  lower: 'az',
  print: ' ~',
  punct: '!/:@[`{~',
  space: '\t\r  ',
  upper: 'AZ',
  word: '09AZ__az',
  xdigit: '09AFaf',
}

const PERL: Readonly<Record<string, string>> = { d: '09', s: '\t\n\f\r  ', w: '09AZ__az' }

/** The class of `[:name:]` or, with a `^` before the name, all but that; undefined when there is none of that name. */
export function posixClass(name: string, fold: boolean): Ranges | undefined {
  const negated = name.startsWith('^')
  const key = negated ? name.slice(1) : name
  return Object.hasOwn(POSIX, key) ? classOf(POSIX[key], negated, fold) : undefined
}

/** The class of `\\d`, `\\s`, `\\w` or, by the letter in upper case, all but that; undefined for any other letter. */
export function perlClass(letter: string, fold: boolean): Ranges | undefined {
  const key = letter.toLowerCase()
  return Object.hasOwn(PERL, key) ? classOf(PERL[key], key !== letter, fold) : undefined
}

function classOf(pairs = '', negated: boolean, fold: boolean): Ranges {
  const ranges = [...pairs].map((char) => char.charCodeAt(0))
  const all = fold ? folded(ranges) : ranges
  return negated ? negate(all) : all
}
