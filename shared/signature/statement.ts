import type { Bytes } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json.ts'
import { dig, digestHex, malformed, quote, readJson } from './content.ts'

/** Predicate type of the statement that signs an image; every other type is an attestation, not a signature. */
export const SIGN_PREDICATE = 'https://sigstore.dev/cosign/sign/v1'

const STATEMENT_TYPES: ReadonlySet<string> = new Set([
  'https://in-toto.io/Statement/v0.1',
  'https://in-toto.io/Statement/v1',
])

/** An in-toto statement about an image, of one of the wanted types. Nothing about it is verified but what it says. */
export interface Statement {
  predicateType: string
  /** `annotations` of the subject that is the image, those that are texts. */
  annotations: Readonly<Record<string, string>>
}

/**
 * What the statement says of this digest. Throws `SIGNATURE_MALFORMED` or `JSON_INVALID` unless it is an in-toto statement v0.1 or v1 of
 * one of the wanted predicate types and one of its subjects has the digest. Without the predicate type, a provenance or even a failed
 * scan by the same key would count as a signature (specs/signatures.md 1.3).
 */
export function readStatement(
  payload: Bytes,
  digest: string,
  wanted: readonly string[],
): Statement {
  const statement = readJson(payload)
  const type = dig(statement, '_type')
  if (typeof type !== 'string' || !STATEMENT_TYPES.has(type)) {
    throw malformed(`statement type is ${quote(type)}, expected an in-toto Statement v0.1 or v1`)
  }
  const predicateType = dig(statement, 'predicateType')
  if (typeof predicateType !== 'string' || !wanted.includes(predicateType)) {
    throw unwantedPredicate(predicateType, wanted)
  }
  const subjects = dig(statement, 'subject')
  const hex = digestHex(digest)
  const named = Array.isArray(subjects) ? subjects : []
  const subject = named.find((each) => dig(each, 'digest', 'sha256') === hex)
  if (subject === undefined) {
    const first = dig(named[0], 'digest', 'sha256')
    throw malformed(`statement is about sha256 ${quote(first)}, expected ${hex}`)
  }
  return { predicateType, annotations: textsOf(dig(subject, 'annotations')) }
}

/** A statement that is of none of the wanted types. */
export class UnwantedPredicate extends AdmissionError {
  readonly predicateType: string

  constructor(predicateType: string, message: string) {
    super('SIGNATURE_MALFORMED', message)
    this.predicateType = predicateType
  }
}

/** The fault of a statement that is of none of the wanted types. */
export function unwantedPredicate(
  found: JsonValue | undefined,
  wanted: readonly string[],
): UnwantedPredicate {
  const expected = wanted.includes(SIGN_PREDICATE)
    ? 'not an image signature'
    : `expected ${wanted.join(' or ')}`
  const named = quote(found)
  return new UnwantedPredicate(named, `an attestation of type ${named}, ${expected}`)
}

/** The members of an object that are texts; none for what is no object. Keys come from outside, so the record has no prototype. */
export function textsOf(value: JsonValue | undefined): Readonly<Record<string, string>> {
  const texts: Record<string, string> = Object.create(null)
  if (!isJsonObject(value)) return texts
  for (const [key, member] of Object.entries(value)) {
    if (typeof member === 'string') texts[key] = member
  }
  return texts
}
