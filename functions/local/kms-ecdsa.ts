import { createECDH, type KeyObject } from 'node:crypto'

interface Curve {
  /** OpenSSL's name. */
  name: string
  p: bigint
  a: bigint
  /** Order of the base point. */
  n: bigint
}

const P256 = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n
const P384 = 2n ** 384n - 2n ** 128n - 2n ** 96n + 2n ** 32n - 1n
const P521 = 2n ** 521n - 1n
const K256 = 2n ** 256n - 2n ** 32n - 977n

const CURVES: Readonly<Record<string, Curve>> = {
  'P-256': {
    name: 'prime256v1',
    p: P256,
    a: P256 - 3n,
    n: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  },
  'P-384': {
    name: 'secp384r1',
    p: P384,
    a: P384 - 3n,
    n: 2n ** 384n - 0x389cb27e0bc8d220a7e5f24db74f58851313e695333ad68dn,
  },
  'P-521': {
    name: 'secp521r1',
    p: P521,
    a: P521 - 3n,
    n: 2n ** 521n - 0x5ae79787c40d069948033feb708f65a2fc44a36477663b851449048e16ec79bf7n,
  },
  secp256k1: {
    name: 'secp256k1',
    p: K256,
    a: 0n,
    n: 2n ** 256n - 0x14551231950b75fc4402da1732fc9bebfn,
  },
}

type Point = { x: bigint; y: bigint } | undefined

/** A DER signature over a digest (SEC 1, 4.1.3). Affine and not constant-time: for the local KMS only. */
export function ecdsaSign(key: KeyObject, digest: Uint8Array): Buffer {
  const { crv, d } = key.export({ format: 'jwk' })
  const { name, n } = curveOf(crv)
  const e = toScalar(digest, n)
  for (;;) {
    const nonce = createECDH(name)
    const point = pointOf(nonce.generateKeys())
    const r = point.x % n
    const k = toBigInt(nonce.getPrivateKey())
    const s = mod(inverse(k, n) * (e + r * toBigInt(Buffer.from(d ?? '', 'base64url'))), n)
    if (r !== 0n && s !== 0n) return sequence(derInteger(r), derInteger(s))
  }
}

/** Whether a DER signature over a digest is right (SEC 1, 4.1.4). Throws TypeError on bytes that are not DER. */
export function ecdsaVerify(key: KeyObject, digest: Uint8Array, signature: Uint8Array): boolean {
  const { crv, x, y } = key.export({ format: 'jwk' })
  const curve = curveOf(crv)
  const { n } = curve
  const [r, s] = parseSignature(signature)
  if (r <= 0n || s <= 0n || r >= n || s >= n) return false
  const w = inverse(s, n)
  const base = createECDH(curve.name)
  base.setPrivateKey(Buffer.from(toHex(1n, curve.p), 'hex'))
  const q = {
    x: toBigInt(Buffer.from(x ?? '', 'base64url')),
    y: toBigInt(Buffer.from(y ?? '', 'base64url')),
  }
  const u1 = multiply(curve, pointOf(base.getPublicKey()), mod(toScalar(digest, n) * w, n))
  const sum = add(curve, u1, multiply(curve, q, mod(r * w, n)))
  return sum !== undefined && sum.x % n === r
}

function curveOf(crv: string | undefined): Curve {
  const curve = CURVES[crv ?? '']
  if (curve === undefined) throw new TypeError(`no curve ${crv}`)
  return curve
}

/** The leftmost bits of a digest as a number, as many as the order has. */
function toScalar(digest: Uint8Array, n: bigint): bigint {
  const excess = 8 * digest.length - n.toString(2).length
  const value = toBigInt(digest)
  return excess > 0 ? value >> BigInt(excess) : value
}

/** The point of an uncompressed encoding. */
function pointOf(encoded: Uint8Array): { x: bigint; y: bigint } {
  const half = (encoded.length - 1) / 2
  return { x: toBigInt(encoded.subarray(1, 1 + half)), y: toBigInt(encoded.subarray(1 + half)) }
}

function add({ p, a }: Curve, left: Point, right: Point): Point {
  if (left === undefined) return right
  if (right === undefined) return left
  const same = left.x === right.x
  if (same && mod(left.y + right.y, p) === 0n) return undefined
  const slope = same
    ? (3n * left.x * left.x + a) * inverse(2n * left.y, p)
    : (right.y - left.y) * inverse(right.x - left.x, p)
  const x = mod(slope * slope - left.x - right.x, p)
  return { x, y: mod(slope * (left.x - x) - left.y, p) }
}

function multiply(curve: Curve, point: Point, scalar: bigint): Point {
  let result: Point
  let addend = point
  for (let rest = scalar; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = add(curve, result, addend)
    addend = add(curve, addend, addend)
  }
  return result
}

function mod(value: bigint, modulus: bigint): bigint {
  const rest = value % modulus
  return rest < 0n ? rest + modulus : rest
}

/** The inverse modulo a prime, by the extended Euclidean algorithm. */
function inverse(value: bigint, modulus: bigint): bigint {
  let [r0, r1] = [modulus, mod(value, modulus)]
  let [t0, t1] = [0n, 1n]
  while (r1 !== 0n) {
    const quotient = r0 / r1
    ;[r0, r1] = [r1, r0 - quotient * r1]
    ;[t0, t1] = [t1, t0 - quotient * t1]
  }
  return mod(t0, modulus)
}

function toBigInt(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`)
}

function toHex(value: bigint, modulus: bigint): string {
  const bytes = Math.ceil(modulus.toString(16).length / 2)
  return value.toString(16).padStart(2 * bytes, '0')
}

function derInteger(value: bigint): Buffer {
  const hex = value.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  const content = (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes
  return Buffer.concat([Buffer.from([0x02, content.length]), content])
}

function sequence(...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length]
  return Buffer.concat([Buffer.from([0x30, ...length]), content])
}

/** r and s of a DER signature whose lengths are below 256. Throws on anything else. */
function parseSignature(der: Uint8Array): readonly [bigint, bigint] {
  const start = der[1] === 0x81 ? 3 : 2
  const length = der[start - 1]
  const rEnd = start + 2 + (der[start + 1] ?? 0)
  const sEnd = rEnd + 2 + (der[rEnd + 1] ?? 0)
  if (der[0] !== 0x30 || der[start] !== 2 || der[rEnd] !== 2) throw new TypeError('not DER')
  if (start + (length ?? 0) !== der.length || sEnd !== der.length) throw new TypeError('not DER')
  return [toBigInt(der.subarray(start + 2, rEnd)), toBigInt(der.subarray(rEnd + 2, sEnd))]
}
