import { includes, normalise, type Ranges } from './ranges.ts'

/**
 * Simple case folding of Unicode 15.0, what Go has: pairs of runes that are one letter, as runs of the first of them. Each is the gap to the
 * first of the run before, then how far the second is, then how many there are when there are more than one, in base 36; behind a
 * colon they are every second rune.
 */
const PAIRS =
  '1t.w.q 16.6gv 8.7g 1u.kn b.w.n o.w.7 7.5vj 6.6di q.3d 1:1.o 1e:1.3 7:1.8 h:1.n 1b:1.3 7.5f 1.5u 1:1.2 4.5q 1.1 2.5p.2 2.1 3.27 1.5m 1.5n 1.1 2.5p 1.5r 1.2p 1.5v 1.5t 1.1 2.4j 2.5v 1.5x 1.3m 1.5y 1:1.3 6.62 1.1 2.62 3.1 2.62 1.1 2.61.2 2:1.2 4.63 1.1 4.1 3.1k 5.1.2 3.1.2 3.1.2 3:1.8 h:1.9 j.1.2 3.1 4:1.k 16:1.9 o.8bv 1.1 3.8bs 1.8cf.2 2.1 3.1x 1.1z 1:1.5 a.8bj 1.8bg 1.8bi a.wnj 5.wnf 4.wmg 1.wn8 4.wn8 1.8af 1.wn5 5.8al c.89z 5.wn7 5.wmi m.wlx 1.wlu 4n.2c 17:1.2 6.1 5.3m.3 4.38 7.12 2.11.3 4.1s 2.1r.2 3.w.h i.v 1.w.8 e.u 3.1s 3.p 1.5j9 1.1i 6.m 1.1c 1.1 4.f 3.5st 6.8 2.z 7:1.c q.7 5.1 3.1 6.28.g g.w.w y.4su 2.4st a.4sk 3.4si.2 9.4sc m:1.h 3.4ro 13:1.r 1i.f 1:1.7 f:1.1c 2p.1c.12 29b.5ls.12 13.5ls 6.5ls 3.2bk.17 19.2bk.3 ir.tzk.28 28.8.6 1p0.1 4.r7m 6p.r9g 4.2xy h.raw 36:1.23 2p.1m 1r:1.1c 2o.8.8 g.8.6 g.8.8 g.8.8 g.8.6 h:8.4 f.8.8 g.22.2 2.2e.4 4.2s.2 2.3k.2 2.34.2 2.3i.2 4.8.8 g.8.8 g.8.8 g.8.2 3.9 g.9 d.8.2 g.8.2 5.7 e.9 8v.s 1a.g.g z.1 mr.q.q 1fu.1c.1c 2o.1 7:1.3 b.1 3.1 b:1.1e 2z:1.2 7.1 nym:1.n 1s:1.e 4i:1.7 g:1.v 1z:1.2 5:1.5 d.1 5:1.2 4.1c 2:1.a t.ps 1:1.8 j:1.2 9.1 6:1.2 v.1 h7w.w.q yn.14.14 4w.14.10 5c:13.j 1:13.5 c:13.7 g:13.3 8.13 1d7.1s.1f 2e8.w.w gww.w.w o8w.y.y'

const KELVIN = 0x212a
const LONG_S = 0x17f

let orbits: ReadonlyMap<number, readonly number[]> | undefined

/** By rune: all that are one letter without regard to case, itself included. */
function allOrbits(): ReadonlyMap<number, readonly number[]> {
  if (orbits !== undefined) return orbits
  const all = new Map<number, number[]>()
  let start = 0
  for (const run of PAIRS.split(' ')) {
    const [gap = 0, distance = 0, count = 1] = run
      .split(/[.:]/)
      .map((digits) => Number.parseInt(digits, 36))
    start += gap
    for (let i = 0; i < count; i++) {
      const rune = start + (run.includes(':') ? 2 * i : i)
      // The pairs of one letter come in an order in which each finds what it has so far.
      const orbit = all.get(rune) ?? [rune]
      orbit.push(rune + distance)
      all.set(rune, orbit)
      all.set(rune + distance, orbit)
    }
  }
  orbits = all
  return all
}

/** By rune as it was asked for: what it is without regard to case. */
const known = new Map<number, Ranges>()

/** The rune with all that are the same letter without regard to case, as Unicode's simple folding has it. */
export function foldings(rune: number): Ranges {
  const found = known.get(rune)
  if (found !== undefined) return found
  const orbit = rune < 128 ? undefined : (allOrbits().get(rune) ?? [rune])
  const ranges = normalise(orbit?.flatMap((each) => [each, each]) ?? folded([rune, rune]))
  // Letters that have cases are few; whatever else is not worth keeping.
  if (ranges[0] !== ranges.at(-1)) known.set(rune, ranges)
  return ranges
}

/** The ranges with all that are the same letters without regard to case. */
export function folded(ranges: Ranges): Ranges {
  const out = [...ranges]
  if ((ranges.at(-1) ?? 0) < 128) foldAscii(ranges, out)
  else {
    for (const [rune, others] of allOrbits()) {
      if (includes(ranges, rune)) for (const other of others) out.push(other, other)
    }
  }
  return normalise(out)
}

/** Most classes are ASCII and need no table of the world. */
function foldAscii(ranges: Ranges, out: number[]): void {
  const has = (upper: number) => includes(ranges, upper) || includes(ranges, upper + 32)
  for (let upper = 65; upper <= 90; upper++) {
    if (has(upper)) out.push(upper, upper, upper + 32, upper + 32)
  }
  if (has(75)) out.push(KELVIN, KELVIN)
  if (has(83)) out.push(LONG_S, LONG_S)
}
