import { type Bytes, isDigest, utf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { pinnedDigest } from '../image/pin.ts'
import { decodeJson, getOwn, isJsonObject, type JsonValue, stringifyJson } from '../json.ts'
import { MAX_SEAL_BYTES } from '../limits.ts'
import { isLasting } from './facts.ts'
import type { Fact, Outcomes } from './types.ts'

/** The host function whose facts are about attestations. */
const ATTESTATIONS = 'verifyAttestationSignatures'

/** What is inside a seal. Times are epoch milliseconds. */
export interface SealBody {
  outcomes: Outcomes
  issuedAt: number
  expiresAt: number
}

/**
 * The bytes of a seal's body. Texts that repeat are written once and referred to by their index, so that hundreds of facts fit:
 * `{iat, exp, policies: [[name, hash, evaluated]], functions, images, attestors, facts: [[policy, function, image, attestor]]}`. An attestor
 * that expressions gave texts is `[name, hash of them]`. A fact
 * about an attestation has two more, into `attestations` and `blobs: [[digest, size]]`, which are there only with such facts: who knows
 * neither refuses the body. The digest of a fact is the end of its image; facts about images that are not pinned to theirs are left
 * out. Throws `SEAL_TOO_LARGE`.
 */
export function encodeBody({ outcomes, issuedAt, expiresAt }: SealBody): Bytes {
  const policies = new Table()
  const functions = new Table()
  const images = new Table()
  const attestors = new Table()
  const attestations = new Table()
  const blobs = new Table()
  for (const { policy, policyHash } of outcomes.policies) policies.index([policy, policyHash, 1])
  const evaluated = policies.size
  const facts = outcomes.facts.filter(isLasting).map((fact) => {
    const known = policies.find([fact.policy, fact.policyHash, 1])
    return [
      known ?? policies.index([fact.policy, fact.policyHash, 0]),
      functions.index(fact.function),
      images.index(fact.image),
      attestors.index(fact.material === undefined ? fact.attestor : [fact.attestor, fact.material]),
      ...(fact.attestation === undefined || fact.payload === undefined
        ? []
        : [
            attestations.index(fact.attestation),
            blobs.index([fact.payload.digest, fact.payload.size]),
          ]),
    ]
  })
  const bytes = utf8(
    stringifyJson({
      iat: issuedAt,
      exp: expiresAt,
      policies: policies.rows,
      functions: functions.rows,
      images: images.rows,
      attestors: attestors.rows,
      ...(attestations.size === 0 ? {} : { attestations: attestations.rows, blobs: blobs.rows }),
      facts,
    }),
  )
  if (bytes.length > MAX_SEAL_BYTES) {
    throw new AdmissionError(
      'SEAL_TOO_LARGE',
      `a seal of ${facts.length} facts and ${evaluated} policies takes ${bytes.length} bytes, at most ${MAX_SEAL_BYTES} may be`,
    )
  }
  return bytes
}

/** The body in these bytes. Throws `JSON_INVALID` or `SIGNATURE_MALFORMED` for anything that `encodeBody` does not write. */
export function decodeBody(bytes: Uint8Array): SealBody {
  const body = decodeJson(bytes, { maxDepth: 3 })
  if (!isJsonObject(body)) throw malformed('is not an object')
  const policies = list(body, 'policies').map((row) => tuple(row, ['string', 'string', 'number']))
  const functions = list(body, 'functions').map((row) => text(row))
  const images = list(body, 'images').map((row) => text(row))
  const attestors = list(body, 'attestors').map(readAttestor)
  const attested = readAttested(body)
  const facts = list(body, 'facts').map((row): Fact => {
    const isAttested = Array.isArray(row) && row.length > 4
    const [p, f, i, a, t, b] = tuple(row, Array(isAttested ? 6 : 4).fill('number'))
    const [policy, policyHash] = at(policies, p)
    const image = at(images, i)
    const digest = pinnedDigest(image)
    if (digest === undefined) throw malformed('has a fact about an image that is not pinned')
    const name = at(functions, f)
    if ((name === ATTESTATIONS) !== isAttested)
      throw malformed('has a fact that does not say what of')
    return {
      policy: text(policy),
      policyHash: text(policyHash),
      function: name,
      image,
      digest,
      ...at(attestors, a),
      ...(isAttested
        ? { attestation: at(attested.attestations, t), payload: at(attested.blobs, b) }
        : {}),
    }
  })
  const evaluated = policies.filter(([, , flag]) => flag === 1)
  return {
    outcomes: {
      policies: evaluated.map(([policy, hash]) => ({
        policy: text(policy),
        policyHash: text(hash),
      })),
      facts,
    },
    issuedAt: time(body, 'iat'),
    expiresAt: time(body, 'exp'),
  }
}

function readAttestor(row: JsonValue): Pick<Fact, 'attestor' | 'material'> {
  if (typeof row === 'string') return { attestor: row }
  const [name, hash] = tuple(row, ['string', 'string'])
  return { attestor: text(name), material: text(hash) }
}

/** The two tables of facts about attestations, empty where there are none. */
function readAttested(body: { [key: string]: JsonValue }) {
  if (getOwn(body, 'attestations') === undefined) return { attestations: [], blobs: [] }
  const blobs = list(body, 'blobs').map((row) => {
    const [digest, size] = tuple(row, ['string', 'number'])
    if (typeof digest !== 'string' || !isDigest(digest))
      throw malformed('has a blob without a digest')
    if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
      throw malformed('has a blob without a size')
    }
    return { digest, size }
  })
  return { attestations: list(body, 'attestations').map((row) => text(row)), blobs }
}

/** Distinct rows in the order they were first seen. */
class Table {
  readonly rows: JsonValue[] = []
  readonly #indices = new Map<string, number>()

  get size(): number {
    return this.rows.length
  }

  find(row: JsonValue): number | undefined {
    return this.#indices.get(stringifyJson(row))
  }

  index(row: JsonValue): number {
    const key = stringifyJson(row)
    const known = this.#indices.get(key)
    if (known !== undefined) return known
    this.#indices.set(key, this.rows.length)
    return this.rows.push(row) - 1
  }
}

function list(body: { [key: string]: JsonValue }, key: string): JsonValue[] {
  const value = getOwn(body, key)
  if (!Array.isArray(value)) throw malformed(`has no list "${key}"`)
  return value
}

function tuple(row: JsonValue, types: readonly ('string' | 'number')[]): JsonValue[] {
  const found = Array.isArray(row) ? row.map((value) => typeof value) : []
  if (!Array.isArray(row) || found.join() !== types.join()) {
    throw malformed('has a row of the wrong shape')
  }
  return row
}

function at<T>(rows: readonly T[], index: JsonValue | undefined): T {
  const row = typeof index === 'number' ? rows[index] : undefined
  if (row === undefined) throw malformed('refers to a row that does not exist')
  return row
}

function text(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw malformed('has something else where a string must be')
  return value
}

function time(body: { [key: string]: JsonValue }, key: string): number {
  const value = getOwn(body, key)
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw malformed(`has no time "${key}"`)
  }
  return value
}

function malformed(problem: string): AdmissionError {
  return new AdmissionError('SIGNATURE_MALFORMED', `the body of the seal ${problem}`)
}
