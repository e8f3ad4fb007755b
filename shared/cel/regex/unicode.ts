import { WORD } from './assertion.ts'
import { includes, MAX_RUNE, negate, normalise, type Ranges, without } from './ranges.ts'

/**
 * What Unicode 15.1 to 17 added to the 15.0 that Go has: the gap to the run before it and, after a dot, how many more follow, in base 36.
 * Runtimes differ in their Unicode; without these, all of them give Go's answer.
 */
const ADDED =
  '1ov 8 qt 3k 2r7.e 3.b 2r.1 1c 7e.1 tz o6.2 1gt va.3 dh.1 a na4.4 3 2 6.2 l gk2.f ce.1 1j.6 1ki.1f nh.p rr.11 4.s 9.1 8j.5 9.8 y.2 w4.9 2 3 2.11 2.9 2 3 2.3 2.9 2.1 9.1 ku.j vx.7 2h.x f.9 c7.17 5.9 a9 45i.32y 5qe.1l 2dj.1l 87.o 3.o 7z.4 4qq.7 zk a.l 2q.36 c9a.70 4.c3 7.m g.g 4io.16 5 5d.u 2.l 9.1 34p 4f.3 8o.9 5.1 f.8 ak.3 1e.1 4.1 1b 8 2 5 f 3 a.1 5 64.10 b 10zk.5 4mb.b 5s3.h9 aj7.3bd'

/** In the same form, stretches in which every rune is like the last: ideographs, syllables, halves of pairs, private use, nothing at all. */
const ALIKE =
  'a9s.533 1t.g73 2dd.8mb 2l.1kv 1.4xr 7pd.pl bv.217 35.tr 1d.333 g8.6ns 1kx.4qf 102.6w6 lp.1s3 dfl.wyn x.37d 6f.4g1 f.5rk 2ta.15t 1.3t6 6.38f 3bl.f5vk e8.1e67 1.1ekd 3.1ekd'

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

function unpack(runs: string): Ranges {
  const out: number[] = []
  for (const run of runs.split(' ')) {
    const [gap = '', more = '0'] = run.split('.')
    const first = (out.at(-1) ?? 0) + Number.parseInt(gap, 36)
    out.push(first, first + Number.parseInt(more, 36))
  }
  return out
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
  const now = native(`gc=${code}`)
  let then =
    code === 'C' || code === 'Cn'
      ? normalise([...now, ...unpack(ADDED)])
      : without(now, unpack(ADDED))
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
    if (!isName(each) || each === 'Unknown' || (each.length === 4 && !SHORT_SCRIPTS.includes(each)))
      continue
    const ranges = without(native(`sc=${each}`), unpack(ADDED))
    // A script that has come since has nothing but what was added with it.
    if (ranges.length > 0) return ranges
  }
  return undefined
}

/** True when every character may stand in a name of Unicode, so that it is nothing else in a pattern. */
function isName(name: string): boolean {
  return [...name].every((char) => includes(WORD, char.codePointAt(0) ?? 0))
}

let everyRune: string | undefined

/** Every rune in order, of those that are alike the last. */
function everything(): string {
  if (everyRune !== undefined) return everyRune
  everyRune = ''
  const chunk: number[] = []
  const alike = unpack(ALIKE)
  let next = 0
  for (let rune = 0; rune <= MAX_RUNE; rune++) {
    if (rune === alike[next]) {
      rune = alike[next + 1] ?? rune
      next += 2
    }
    // A call takes some thousand arguments without trouble.
    if (chunk.push(rune) < 4096 && rune < MAX_RUNE) continue
    everyRune += String.fromCodePoint(...chunk)
    chunk.length = 0
  }
  return everyRune
}

/** The runes with a property as this runtime has them, by one walk over Unicode: no text of a user is involved. Nothing for an unknown one. */
function native(name: string): Ranges {
  let runs: RegExp
  try {
    runs = new RegExp(`\\p{${name}}+`, 'gu')
  } catch {
    return []
  }
  const alike = unpack(ALIKE)
  const out: number[] = []
  for (const [run] of everything().matchAll(runs)) {
    const first = run.codePointAt(0) ?? 0
    const end = run.codePointAt(run.length - 2) ?? 0
    const stretch = alike.indexOf(first)
    out.push(
      stretch < 0 ? first : (alike[stretch - 1] ?? 0),
      end > 0xffff ? end : run.charCodeAt(run.length - 1),
    )
  }
  return out
}
