import type { Bytes } from '../../bytes.ts'
import { type DerElement, TAG } from '../der.ts'
import { HASHES, type SignatureAlgorithm } from '../key.ts'
import type { HashAlgorithm } from '../types.ts'
import { DerReader, dottedOid, smallInteger } from './reader.ts'

const HASH_OIDS: Readonly<Record<string, HashAlgorithm>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
}

/** RSA PKCS#1 and ECDSA with a hash in the identifier; RSA has a NULL parameter, ECDSA none. */
const SIGNATURE_OIDS: Readonly<Record<string, SignatureAlgorithm>> = {
  '1.2.840.113549.1.1.11': { scheme: 'RSASSA_PKCS1_V1_5', hash: 'sha256' },
  '1.2.840.113549.1.1.12': { scheme: 'RSASSA_PKCS1_V1_5', hash: 'sha384' },
  '1.2.840.113549.1.1.13': { scheme: 'RSASSA_PKCS1_V1_5', hash: 'sha512' },
  '1.2.840.10045.4.3.2': { scheme: 'ECDSA', hash: 'sha256' },
  '1.2.840.10045.4.3.3': { scheme: 'ECDSA', hash: 'sha384' },
  '1.2.840.10045.4.3.4': { scheme: 'ECDSA', hash: 'sha512' },
}

const RSA_PSS = '1.2.840.113549.1.1.10'
const RSA_ENCRYPTION = '1.2.840.113549.1.1.1'
const ED25519 = '1.3.101.112'
const MGF1 = '1.2.840.113549.1.1.8'

/** The identifier's name in dotted form and its parameters, from the content of an AlgorithmIdentifier. */
export function parseAlgorithm(
  content: Bytes,
  what: string,
): { oid: string; parameters: readonly DerElement[] } {
  const reader = new DerReader(content, what)
  return { oid: dottedOid(reader.next(TAG.oid).content), parameters: reader.rest() }
}

/** The hash an AlgorithmIdentifier names, or undefined for others: SHA-1 and MD5 among them. */
export function hashOf(content: Bytes, what: string): HashAlgorithm | undefined {
  const { oid, parameters } = parseAlgorithm(content, what)
  return Object.hasOwn(HASH_OIDS, oid) && isNullOrAbsent(parameters) ? HASH_OIDS[oid] : undefined
}

/**
 * How a signature with this AlgorithmIdentifier is made, or undefined for what is not verified here: SHA-1, MD5, DSA, PSS with
 * unequal hashes or another salt length than the hash's. `messageHash` is CMS's digest algorithm, which plain `rsaEncryption`
 * leaves the hash to.
 */
export function signatureAlgorithmOf(
  content: Bytes,
  what: string,
  messageHash?: HashAlgorithm,
): SignatureAlgorithm | undefined {
  const { oid, parameters } = parseAlgorithm(content, what)
  if (oid === RSA_PSS) return pssOf(parameters, what)
  if (oid === ED25519) return parameters.length === 0 ? { scheme: 'ED25519' } : undefined
  if (oid === RSA_ENCRYPTION && messageHash !== undefined) {
    return isNullOrAbsent(parameters)
      ? { scheme: 'RSASSA_PKCS1_V1_5', hash: messageHash }
      : undefined
  }
  const known = Object.hasOwn(SIGNATURE_OIDS, oid) ? SIGNATURE_OIDS[oid] : undefined
  if (known === undefined) return undefined
  const fits = known.scheme === 'ECDSA' ? parameters.length === 0 : isNullOrAbsent(parameters)
  return fits ? known : undefined
}

/** RSASSA-PSS-params (RFC 4055 section 3.1) with the one hash throughout and a salt of its length. */
function pssOf(parameters: readonly DerElement[], what: string): SignatureAlgorithm | undefined {
  const [element] = parameters
  if (element?.tag !== TAG.sequence || parameters.length !== 1) return undefined
  const reader = new DerReader(element.content, what)
  const hashField = reader.optional(0xa0)
  const maskField = reader.optional(0xa1)
  const saltField = reader.optional(0xa2)
  // An absent field means SHA-1 or its salt length; a trailer field is never written.
  if (!hashField || !maskField || !saltField || !reader.done) return undefined
  const hash = hashOf(new DerReader(hashField.content, what).next(TAG.sequence).content, what)
  const maskContent = new DerReader(maskField.content, what).next(TAG.sequence).content
  const { oid, parameters: inner } = parseAlgorithm(maskContent, what)
  const [maskHash] = inner
  const salt = smallInteger(new DerReader(saltField.content, what).next(TAG.integer).content, what)
  if (hash === undefined || oid !== MGF1 || maskHash?.tag !== TAG.sequence) return undefined
  const equal = hashOf(maskHash.content, what) === hash && salt === HASHES[hash].bytes
  return equal ? { scheme: 'RSASSA_PSS', hash } : undefined
}

function isNullOrAbsent(parameters: readonly DerElement[]): boolean {
  const [only, ...more] = parameters
  if (only === undefined) return true
  return more.length === 0 && only.tag === TAG.null && only.content.length === 0
}
