import { toHex } from '../../bytes.ts'

/**
 * MD5, SHA-1 and SHA-256 that answer at once: an expression cannot wait for WebCrypto. For expressions only; nothing that
 * decides about a signature uses them.
 */

const BLOCK = 64

/** The message followed by a one bit, zeros, and its length in bits, in whole blocks. */
function padded(message: Uint8Array, littleEndian: boolean): DataView {
  const bytes = new Uint8Array(Math.ceil((message.length + 9) / BLOCK) * BLOCK)
  bytes.set(message)
  bytes[message.length] = 0x80
  const view = new DataView(bytes.buffer)
  view.setBigUint64(bytes.length - 8, BigInt(message.length) * 8n, littleEndian)
  return view
}

function hexOf(words: Uint32Array, littleEndian: boolean): string {
  const view = new DataView(new ArrayBuffer(words.length * 4))
  words.forEach((word, i) => {
    view.setUint32(i * 4, word, littleEndian)
  })
  return toHex(new Uint8Array(view.buffer))
}

function rotateLeft(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}

/** Reads a table at an index the algorithm keeps in range. */
function at(words: Uint32Array | readonly number[], index: number): number {
  return words[index] ?? 0
}

const MD5_SHIFTS: readonly number[] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]
const MD5_SINES = Uint32Array.from({ length: 64 }, (_, i) =>
  Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32),
)

/** The MD5 digest in hexadecimal. */
export function md5Hex(message: Uint8Array): string {
  const view = padded(message, true)
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476)
  for (let start = 0; start < view.byteLength; start += BLOCK) md5Block(view, start, state)
  return hexOf(state, true)
}

function md5Block(view: DataView, start: number, state: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0] = state
  for (let i = 0; i < 64; i++) {
    const round = i >> 4
    const mixed =
      round === 0
        ? (b & c) | (~b & d)
        : round === 1
          ? (d & b) | (~d & c)
          : round === 2
            ? b ^ c ^ d
            : c ^ (b | ~d)
    const word = [i, 5 * i + 1, 3 * i + 5, 7 * i][round] ?? 0
    const sum = a + mixed + at(MD5_SINES, i) + view.getUint32(start + (word % 16) * 4, true)
    a = d
    d = c
    c = b
    b = (b + rotateLeft(sum | 0, at(MD5_SHIFTS, round * 4 + (i % 4)))) | 0
  }
  add(state, [a, b, c, d])
}

function add(state: Uint32Array, words: readonly number[]): void {
  words.forEach((word, i) => {
    state[i] = at(state, i) + word
  })
}

const SHA1_CONSTANTS: readonly number[] = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6]

/** The SHA-1 digest in hexadecimal. */
export function sha1Hex(message: Uint8Array): string {
  const view = padded(message, false)
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0)
  const words = new Uint32Array(80)
  for (let start = 0; start < view.byteLength; start += BLOCK) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(start + i * 4)
    for (let i = 16; i < 80; i++) {
      const mixed = at(words, i - 3) ^ at(words, i - 8) ^ at(words, i - 14) ^ at(words, i - 16)
      words[i] = rotateLeft(mixed, 1)
    }
    sha1Block(words, state)
  }
  return hexOf(state, false)
}

function sha1Block(words: Uint32Array, state: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0, e = 0] = state
  for (let i = 0; i < 80; i++) {
    const round = Math.floor(i / 20)
    const mixed =
      round === 0 ? (b & c) | (~b & d) : round === 2 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d
    const sum = (rotateLeft(a, 5) + mixed + e + at(SHA1_CONSTANTS, round) + at(words, i)) | 0
    e = d
    d = c
    c = rotateLeft(b, 30)
    b = a
    a = sum
  }
  add(state, [a, b, c, d, e])
}

/** The first 32 bits behind the point of a root of each of the first `count` primes. */
function primeFractions(count: number, root: (prime: number) => number): Uint32Array {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every((p) => n % p !== 0)) primes.push(n)
  return Uint32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32)
}

const SHA256_CONSTANTS = primeFractions(64, Math.cbrt)
const SHA256_START = primeFractions(8, Math.sqrt)

function rotateRight(word: number, ...bits: readonly [number, number, number]): number {
  const [x, y, z] = bits
  return rotateLeft(word, 32 - x) ^ rotateLeft(word, 32 - y) ^ rotateLeft(word, 32 - z)
}

/** The SHA-256 digest in hexadecimal. */
export function sha256Hex(message: Uint8Array): string {
  const view = padded(message, false)
  const state = Uint32Array.from(SHA256_START)
  const words = new Uint32Array(64)
  for (let start = 0; start < view.byteLength; start += BLOCK) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(start + i * 4)
    for (let i = 16; i < 64; i++) {
      const [late, early] = [at(words, i - 2), at(words, i - 15)]
      const s0 = rotateLeft(early, 25) ^ rotateLeft(early, 14) ^ (early >>> 3)
      const s1 = rotateLeft(late, 15) ^ rotateLeft(late, 13) ^ (late >>> 10)
      words[i] = at(words, i - 16) + s0 + at(words, i - 7) + s1
    }
    sha256Block(words, state)
  }
  return hexOf(state, false)
}

function sha256Block(words: Uint32Array, state: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < 64; i++) {
    const chosen = (e & f) ^ (~e & g)
    const first =
      (h + rotateRight(e, 6, 11, 25) + chosen + at(SHA256_CONSTANTS, i) + at(words, i)) | 0
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const second = (rotateRight(a, 2, 13, 22) + majority) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  add(state, [a, b, c, d, e, f, g, h])
}
