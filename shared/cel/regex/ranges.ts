/** Code points as pairs, first and last of each run: sorted, apart from each other. */
export type Ranges = readonly number[]

export const MAX_RUNE = 0x10ffff

/** The runs in order, those that touch joined. */
export function normalise(pairs: Ranges): Ranges {
  if (isNormal(pairs)) return pairs
  const runs: [number, number][] = []
  for (let i = 0; i < pairs.length; i += 2) runs.push([pairs[i] ?? 0, pairs[i + 1] ?? 0])
  runs.sort((a, b) => a[0] - b[0])
  const out: number[] = []
  let end = -2
  for (const [first, last] of runs) {
    if (first > end + 1) out.push(first, last)
    else if (last > end) out[out.length - 1] = last
    end = Math.max(end, last)
  }
  return out
}

function isNormal(pairs: Ranges): boolean {
  for (let i = 2; i < pairs.length; i += 2) {
    if ((pairs[i] ?? 0) <= (pairs[i - 1] ?? 0) + 1) return false
  }
  return true
}

/** Every other code point. */
export function negate(ranges: Ranges): Ranges {
  const out: number[] = []
  let next = 0
  for (let i = 0; i < ranges.length; i += 2) {
    const first = ranges[i] ?? 0
    if (next < first) out.push(next, first - 1)
    next = (ranges[i + 1] ?? 0) + 1
  }
  if (next <= MAX_RUNE) out.push(next, MAX_RUNE)
  return out
}

/** Those of the one that are not in the other. */
export function without(ranges: Ranges, others: Ranges): Ranges {
  return negate(normalise([...negate(ranges), ...others]))
}

/** Position of the last of these numbers that is not above the rune; -1 when all are. */
export function lastNotAbove(sorted: Ranges, rune: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) <= rune) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** Up to so many numbers are compared one by one, which is faster than halving them. */
const FEW = 16

/** True when the rune is in one of the runs. */
export function includes(ranges: Ranges, rune: number): boolean {
  if (ranges.length > FEW) {
    const at = lastNotAbove(ranges, rune)
    // At the first of a run, or at its last when that is the rune itself.
    return at >= 0 && (at % 2 === 0 || ranges[at] === rune)
  }
  for (let i = 0; i < ranges.length; i += 2) {
    if (rune <= (ranges[i + 1] ?? 0)) return rune >= (ranges[i] ?? 0)
  }
  return false
}

/** The numbers, with room for as many again behind them. */
export function grown(numbers: Int32Array): Int32Array<ArrayBuffer> {
  const more = new Int32Array(2 * numbers.length)
  more.set(numbers)
  return more
}
