import { type Bytes, sha256, toHex } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { MAX_RSA_BITS, MAX_SIGNATURE_BYTES, MIN_RSA_BITS } from '../limits.ts'
import { ecdsaSignatureToRaw, positiveInteger, readDer, readOnly, TAG } from './der.ts'
import type { HashAlgorithm } from './types.ts'

/** How a signature is made; the words are those of KMS signing algorithms. */
export type Scheme = 'ECDSA' | 'RSASSA_PKCS1_V1_5' | 'RSASSA_PSS' | 'ED25519'

/** The scheme and hash a signature verified under; Ed25519 has its hash built in. */
export interface SignatureAlgorithm {
  scheme: Scheme
  hash?: HashAlgorithm
}

/** A public key that was checked against the algorithm table and imported once. */
export interface VerifyingKey {
  /** `ECDSA P-256`, `RSA 3072`, `Ed25519`. */
  readonly name: string
  /** SHA-256 hex of the SubjectPublicKeyInfo. */
  readonly fingerprint: string
  /** The SubjectPublicKeyInfo, DER. */
  readonly spki: Bytes
  /**
   * The algorithm the signature verifies under, or undefined when it does not. With `hashAlgorithm` only that hash is
   * tried; without it the key's default and then SHA-256, because cosign 2 signs with SHA-256 whatever the curve while
   * cosign 3 and KMS follow the curve (specs/signatures.md 1.6, 18). Never throws.
   */
  verify(
    message: Bytes,
    signature: Bytes,
    hashAlgorithm?: HashAlgorithm,
  ): Promise<SignatureAlgorithm | undefined>
}

/** WebCrypto's name and the length in bytes of every hash a policy may name. */
export const HASHES: Readonly<Record<HashAlgorithm, { name: string; bytes: number }>> = {
  sha256: { name: 'SHA-256', bytes: 32 },
  sha384: { name: 'SHA-384', bytes: 48 },
  sha512: { name: 'SHA-512', bytes: 64 },
}

/** The hash of bytes. */
export async function digestOf(hash: HashAlgorithm, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(HASHES[hash].name, bytes))
}

interface Curve {
  namedCurve: string
  scalarBytes: number
  hashes: readonly HashAlgorithm[]
}

/** Curves by the hex of their object identifier, each with the hashes to try in order. */
const CURVES: Readonly<Record<string, Curve>> = {
  '2a8648ce3d030107': { namedCurve: 'P-256', scalarBytes: 32, hashes: ['sha256'] },
  '2b81040022': { namedCurve: 'P-384', scalarBytes: 48, hashes: ['sha384', 'sha256'] },
  '2b81040023': { namedCurve: 'P-521', scalarBytes: 66, hashes: ['sha512', 'sha256'] },
}

const EC_PUBLIC_KEY = '2a8648ce3d0201'
const RSA_ENCRYPTION = '2a864886f70d010101'
const ED25519 = '2b6570'

/** Algorithms and curves people bring that are refused, by name. */
const REFUSED: Readonly<Record<string, string>> = {
  '2b8104000a': 'ECDSA secp256k1',
  '2b81040021': 'ECDSA P-224',
  '2a864886f70d01010a': 'an RSASSA-PSS key (use a plain RSA key)',
  '2a8648ce380401': 'DSA',
  '2b656e': 'X25519',
  '2b6571': 'Ed448',
  '2a811ccf5501822d': 'SM2',
  '608648016503040311': 'ML-DSA-44',
  '608648016503040312': 'ML-DSA-65',
  '608648016503040313': 'ML-DSA-87',
}

/** How one kind of key is imported and asked; everything that depends on the algorithm is in here. */
interface Method {
  name: string
  scheme: Scheme
  /** Tried in this order when the policy names no hash. Empty: the algorithm has its own. */
  hashes: readonly HashAlgorithm[]
  /** The key as importKey takes it without parsing, which is faster; undefined: it takes the SubjectPublicKeyInfo. */
  raw?: Bytes
  /** Parameters for importKey; they differ by hash only for RSA. */
  importAs(hash: HashAlgorithm): Parameters<SubtleCrypto['importKey']>[2]
  verifyAs(hash: HashAlgorithm): Parameters<SubtleCrypto['verify']>[0]
  /** The signature as WebCrypto wants it, or undefined when it is malformed. */
  toRaw(signature: Bytes): Bytes | undefined
}

/**
 * The key a DER SubjectPublicKeyInfo holds, ready to verify. RSA keys verify PKCS#1 v1.5 (what cosign makes) unless
 * `rsaScheme` says PSS. Throws `KEY_INVALID` for keys outside the table: other curves, RSA below 2,048 bits or with
 * an exponent other than 65537, points that are not on their curve.
 */
export async function importVerifyingKey(
  spki: Bytes,
  rsaScheme: 'RSASSA_PKCS1_V1_5' | 'RSASSA_PSS' = 'RSASSA_PKCS1_V1_5',
): Promise<VerifyingKey> {
  const own = spki.slice()
  const method = methodFor(own, rsaScheme)
  const keys = await importAll(own, method)
  const fingerprint = toHex(await sha256(own))
  return {
    name: method.name,
    fingerprint,
    spki: own,
    async verify(message, signature, hashAlgorithm) {
      const raw = signature.length > MAX_SIGNATURE_BYTES ? undefined : method.toRaw(signature)
      if (raw === undefined) return undefined
      if (method.hashes.length === 0) {
        const verified = await verifyWith(keys.sha256, method.verifyAs('sha256'), raw, message)
        return verified ? { scheme: method.scheme } : undefined
      }
      for (const hash of hashAlgorithm === undefined ? method.hashes : [hashAlgorithm]) {
        if (await verifyWith(keys[hash], method.verifyAs(hash), raw, message)) {
          return { scheme: method.scheme, hash }
        }
      }
      return undefined
    },
  }
}

async function importAll(
  spki: Bytes,
  method: Method,
): Promise<Readonly<Record<HashAlgorithm, CryptoKey>>> {
  const { raw = spki } = method
  const format = raw === spki ? 'spki' : 'raw'
  const importFor = (hash: HashAlgorithm) =>
    crypto.subtle.importKey(format, raw, method.importAs(hash), false, ['verify'])
  try {
    const sha256 = await importFor('sha256')
    // Only RSA keys are imported for a hash.
    if (!method.scheme.startsWith('RSA')) return { sha256, sha384: sha256, sha512: sha256 }
    const [sha384, sha512] = await Promise.all([importFor('sha384'), importFor('sha512')])
    return { sha256, sha384, sha512 }
  } catch (cause) {
    throw new AdmissionError('KEY_INVALID', `public key: not a valid ${method.name} key`, { cause })
  }
}

async function verifyWith(
  key: CryptoKey,
  algorithm: Parameters<SubtleCrypto['verify']>[0],
  signature: Bytes,
  message: Bytes,
): Promise<boolean> {
  try {
    return await crypto.subtle.verify(algorithm, key, signature, message)
  } catch {
    // Platforms disagree on whether a signature of the wrong length is false or an exception; it is a "no".
    return false
  }
}

function methodFor(spki: Bytes, rsaScheme: Scheme): Method {
  const { algorithm, parameters, key } = parseSpki(spki)
  switch (algorithm) {
    case EC_PUBLIC_KEY:
      return ecdsa(parameters, key)
    case RSA_ENCRYPTION:
      return rsa(parameters, key, rsaScheme)
    case ED25519:
      return ed25519(parameters, key)
    default:
      throw refused(algorithm)
  }
}

/** SEQUENCE { SEQUENCE { OID, parameters? }, BIT STRING } with nothing after it. */
function parseSpki(spki: Bytes): { algorithm: string; parameters: Bytes; key: Bytes } {
  const outer = readOnly(spki, TAG.sequence)
  const [identifier, bits, ...rest] = (outer && readDer(outer)) ?? []
  const [oid] = (identifier?.tag === TAG.sequence && readDer(identifier.content)) || []
  if (bits?.tag !== TAG.bitString || bits.content[0] !== 0 || rest.length > 0) throw notSpki()
  if (oid?.tag !== TAG.oid || identifier === undefined) throw notSpki()
  return {
    algorithm: toHex(oid.content),
    // Everything after the OID (2 bytes of header: no OID here is 128 bytes long).
    parameters: identifier.content.subarray(2 + oid.content.length),
    key: bits.content.subarray(1),
  }
}

function ecdsa(parameters: Bytes, point: Bytes): Method {
  const oid = readOnly(parameters, TAG.oid)
  if (oid === undefined) throw invalid('an elliptic curve key without a named curve')
  const curve = Object.hasOwn(CURVES, toHex(oid)) ? CURVES[toHex(oid)] : undefined
  if (curve === undefined) throw refused(toHex(oid))
  const { namedCurve, scalarBytes, hashes } = curve
  // Go, and so cosign, reads uncompressed points only; WebCrypto implementations differ on the others.
  if (point[0] !== 4 || point.length !== 1 + 2 * scalarBytes) {
    throw invalid(`an ECDSA ${namedCurve} key whose point is not in uncompressed form`)
  }
  return {
    name: `ECDSA ${namedCurve}`,
    scheme: 'ECDSA',
    hashes,
    raw: point,
    importAs: () => ({ name: 'ECDSA', namedCurve }),
    verifyAs: (hash) => ({ name: 'ECDSA', hash: HASHES[hash].name }),
    toRaw: (signature) => ecdsaSignatureToRaw(signature, scalarBytes),
  }
}

function rsa(parameters: Bytes, key: Bytes, scheme: Scheme): Method {
  const bits = rsaBits(parameters, key)
  const name = scheme === 'RSASSA_PSS' ? 'RSA-PSS' : 'RSASSA-PKCS1-v1_5'
  return {
    name: `RSA ${bits}`,
    scheme,
    hashes: ['sha256'],
    importAs: (hash) => ({ name, hash: HASHES[hash].name }),
    verifyAs: (hash) => (name === 'RSA-PSS' ? { name, saltLength: HASHES[hash].bytes } : { name }),
    toRaw: (signature) => (signature.length === Math.ceil(bits / 8) ? signature : undefined),
  }
}

/** The size of the modulus, after every check an RSA key has to pass. */
function rsaBits(parameters: Bytes, key: Bytes): number {
  if (readOnly(parameters, TAG.null)?.length !== 0) throw notSpki()
  const sequence = readOnly(key, TAG.sequence)
  const [modulus, exponent, ...rest] = (sequence && readDer(sequence)) ?? []
  if (modulus?.tag !== TAG.integer || exponent?.tag !== TAG.integer || rest.length > 0) {
    throw notSpki()
  }
  const magnitude = positiveInteger(modulus.content)
  if (magnitude === undefined) throw notSpki()
  const bits = 8 * magnitude.length - Math.clz32(magnitude[0] ?? 0) + 24
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS) {
    throw invalid(`an RSA key of ${bits} bits, expected ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`)
  }
  if (toHex(exponent.content) !== '010001') {
    throw invalid('an RSA key whose exponent is not 65537')
  }
  return bits
}

function ed25519(parameters: Bytes, key: Bytes): Method {
  if (parameters.length !== 0 || key.length !== 32) throw notSpki()
  return {
    name: 'Ed25519',
    scheme: 'ED25519',
    hashes: [],
    raw: key,
    importAs: () => ({ name: 'Ed25519' }),
    verifyAs: () => ({ name: 'Ed25519' }),
    toRaw: (signature) => (signature.length === 64 ? signature : undefined),
  }
}

function refused(oid: string): AdmissionError {
  const name = Object.hasOwn(REFUSED, oid) ? REFUSED[oid] : `an unknown algorithm (OID ${oid})`
  return invalid(`${name}; supported are ECDSA P-256, P-384, P-521, RSA and Ed25519`)
}

function notSpki(): AdmissionError {
  return invalid('bytes that are not a DER SubjectPublicKeyInfo')
}

function invalid(found: string): AdmissionError {
  return new AdmissionError('KEY_INVALID', `public key: found ${found}`)
}
