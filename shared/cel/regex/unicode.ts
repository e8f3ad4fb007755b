import { includes, MAX_RUNE, negate, normalise, type Ranges, without } from './ranges.ts'

/**
 * What Unicode 15.1 to 17 added to the 15.0 that Go has: the gap to the run before it and, after a dot, how many more follow, in base 36.
 * Runtimes differ in their Unicode; without these, all of them give Go's answer.
 */
const ADDED =
  '1ov 8 qt 3k 2r7.e 3.b 2r.1 1c 7e.1 tz o6.2 1gt va.3 dh.1 a na4.4 3 2 6.2 l gk2.f ce.1 1j.6 1ki.1f nh.p rr.11 4.s 9.1 8j.5 9.8 y.2 w4.9 2 3 2.11 2.9 2 3 2.3 2.9 2.1 9.1 ku.j vx.7 2h.x f.9 c7.17 5.9 a9 45i.32y 5qe.1l 2dj.1l 87.o 3.o 7z.4 4qq.7 zk a.l 2q.36 c9a.70 4.c3 7.m g.g 4io.16 5 5d.u 2.l 9.1 34p 4f.3 8o.9 5.1 f.8 ak.3 1e.1 4.1 1b 8 2 5 f 3 a.1 5 64.10 b 10zk.5 4mb.b 5s3.h9 aj7.3bd'

/** Stretches in which every rune is like the last: ideographs, syllables, halves of pairs, private use, nothing at all. */
const ALIKE = new Map([
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xd800, 0xdfff],
  [0xe000, 0xf8ff],
  [0x17000, 0x187f7],
  [0x20000, 0x2a6df],
  [0x2a700, 0x2b739],
  [0x2b820, 0x2cea1],
  [0x2ceb0, 0x2ebe0],
  [0x30000, 0x3134a],
  [0x31350, 0x323af],
  [0x33480, 0xe0000],
  [0xe0200, 0xeffff],
  [0xf0000, 0xffffd],
  [0x100000, 0x10fffd],
])

/** Runes that have another category since: what they were then, and what they are not. */
const MOVED: readonly [rune: number, was: readonly string[], became: string][] = [
  [0x295, ['Ll', 'LC'], 'Lo'],
  [0x1171e, ['Mn'], 'Mc'],
]

/** Every category with the other names it has. */
const CATEGORIES =
  'C=Other Cc=Control=cntrl Cf=Format Cn=Unassigned Co=PrivateUse Cs=Surrogate L=Letter LC=CasedLetter Ll=LowercaseLetter Lm=ModifierLetter Lo=OtherLetter Lt=TitlecaseLetter Lu=UppercaseLetter M=Mark=CombiningMark Mc=SpacingMark Me=EnclosingMark Mn=NonspacingMark N=Number Nd=DecimalNumber=digit Nl=LetterNumber No=OtherNumber P=Punctuation=punct Pc=ConnectorPunctuation Pd=DashPunctuation Pe=ClosePunctuation Pf=FinalPunctuation Pi=InitialPunctuation Po=OtherPunctuation Ps=OpenPunctuation S=Symbol Sc=CurrencySymbol Sk=ModifierSymbol Sm=MathSymbol So=OtherSymbol Z=Separator Zl=LineSeparator Zp=ParagraphSeparator Zs=SpaceSeparator'

/** Scripts whose name is as short as an abbreviation; abbreviations are no names. */
const SHORT_SCRIPTS = 'Ahom Cham Kawi Lisu Miao Modi Newa Thai Toto'

let added: Ranges | undefined

function addedRanges(): Ranges {
  if (added !== undefined) return added
  const out: number[] = []
  for (const run of ADDED.split(' ')) {
    const [gap = '', more = '0'] = run.split('.')
    const first = (out.at(-1) ?? 0) + Number.parseInt(gap, 36)
    out.push(first, first + Number.parseInt(more, 36))
  }
  added = out
  return out
}

/** False for runes that Unicode 15.0 did not have yet. */
export function assigned(rune: number): boolean {
  return !includes(addedRanges(), rune)
}

/** By name as it was asked for: names are few, and each takes a walk over all of Unicode. */
const known = new Map<string, Ranges>()

/** The runes of a category or script by its name in `\p{…}`, case and separators aside; undefined when there is none. */
export function property(name: string): Ranges | undefined {
  const found = known.get(name)
  if (found !== undefined) return found
  const ranges = special(plain(name)) ?? category(plain(name)) ?? script(name)
  if (ranges !== undefined && known.size < 256) known.set(name, ranges)
  return ranges
}

function special(name: string): Ranges | undefined {
  if (name === 'any') return [0, MAX_RUNE]
  if (name === 'ascii') return [0, 127]
  if (name === 'assigned') return negate(property('Cn') ?? [])
  return undefined
}

/** The name without regard to case and separators. */
function plain(name: string): string {
  let out = ''
  for (const char of name) {
    if (!'_- '.includes(char)) out += char >= 'A' && char <= 'Z' ? char.toLowerCase() : char
  }
  return out
}

function category(name: string): Ranges | undefined {
  const names = CATEGORIES.split(' ').map((entry) => entry.split('='))
  const code = names.find((others) => others.some((other) => plain(other) === name))?.[0]
  if (code === undefined) return undefined
  const now = scan(`gc=${code}`)
  let then =
    code === 'C' || code === 'Cn'
      ? normalise([...now, ...addedRanges()])
      : without(now, addedRanges())
  for (const [rune, was, became] of MOVED) {
    if (was.includes(code)) then = normalise([...then, rune, rune])
    if (code === became) then = without(then, [rune, rune])
  }
  return then
}

/**
 * A script by its name in lower or upper case; a name of several words only as Unicode writes it, `Old_Italic`. Go 1.25 lost those,
 * which is nothing to follow.
 */
function script(name: string): Ranges | undefined {
  const one = plain(name)
  for (const each of [one.slice(0, 1).toUpperCase() + one.slice(1), name]) {
    if (!isName(each) || (each.length === 4 && !SHORT_SCRIPTS.includes(each))) continue
    const ranges = without(scan(`sc=${each}`), addedRanges())
    // A script that has come since has nothing but what was added with it.
    if (ranges.length > 0) return ranges
  }
  return undefined
}

/** True when every character may stand in a name of Unicode, so that it is nothing else in a pattern. */
function isName(name: string): boolean {
  for (const char of name) {
    if (!((char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z') || char === '_')) {
      return false
    }
  }
  return name !== ''
}

/** The runes with a property, as this runtime has them: asked one by one, never about a user's text. Nothing when it knows none such. */
function scan(name: string): Ranges {
  let has: RegExp
  try {
    has = new RegExp(`\\p{${name}}`, 'u')
  } catch {
    return []
  }
  const out: number[] = []
  for (let rune = 0; rune <= MAX_RUNE; rune++) {
    const last = ALIKE.get(rune) ?? rune
    if (has.test(String.fromCodePoint(last))) {
      if (out.at(-1) === rune - 1) out[out.length - 1] = last
      else out.push(rune, last)
    }
    rune = last
  }
  return out
}
