import type { HashAlgorithm } from '../signature/types.ts'
import {
  expression,
  type Faults,
  flag,
  isPresent,
  isRecord,
  isSet,
  listOf,
  listRule,
  mapOf,
  object,
  oneKind,
  optional,
  own,
  type Path,
  type Rule,
  refused,
  required,
  type Shape,
  text,
  unsupportedValue,
  words,
} from './shape.ts'

/** What a policy says about one attestor, as far as it is supported. */
export type AttestorFields = CosignFields | NotaryFields

/** `cosign` of an attestor: one of key, keyless and certificate, and what all of them may have (image-validating-policy.md 1.3). */
export interface CosignFields {
  name: string
  cosign: CosignSpec
}

/** `notary` of an attestor. */
export interface NotaryFields {
  name: string
  /** PEM bundles. */
  notary: { certs: TextSource; tsaCerts?: TextSource }
}

/** A text, or the expression that gives it: exactly one of them. */
export interface TextSource {
  value?: string
  expression?: string
}

/** True when there is a text, or an expression for it. */
export function isGiven(source: TextSource | undefined): source is TextSource {
  return (source?.value ?? source?.expression) !== undefined
}

/** Empty is absent, as in the policy fields of the field. */
const filled: Shape<string> = (value, path, faults) => text(value, path, faults) || undefined

/** The source of an expression; empty is absent here as well. */
const source: Shape<string> = (value, path, faults) =>
  value === '' ? undefined : expression(value, path, faults)

const hashAlgorithm: Shape<HashAlgorithm> = (value, path, faults) => {
  const name = filled(value, path, faults)
  if (name === undefined) return undefined
  if (name === 'sha224') {
    return faults.add(
      path,
      'sha224 is not supported: WebCrypto does not have it',
      'POLICY_UNSUPPORTED',
    )
  }
  const supported = ['sha256', 'sha384', 'sha512'] as const
  const found = supported.find((each) => each === name)
  return found ?? faults.add(path, unsupportedValue(name, supported))
}

const key = object(
  {
    data: optional(filled),
    kms: optional(filled),
    hashAlgorithm: optional(hashAlgorithm),
    expression: optional(source),
  },
  (fields, path, faults) => {
    const given = ['data', 'kms', 'expression'].filter((name) => isSet(fields, name))
    if (given.length === 0)
      faults.add(path, 'Required value: one of data, kms and expression must be set')
    if (given.length > 1) {
      faults.add(path, `Invalid value: ${given.join(' and ')} are set, only one may be`)
    }
  },
)

const ctlog = object({
  url: optional(filled),
  rekorPubKey: optional(filled),
  ctLogPubKey: optional(filled),
  tsaCertChain: optional(filled),
  insecureIgnoreTlog: optional(flag),
  insecureIgnoreSCT: optional(flag),
})

const identity = object(
  {
    issuer: optional(filled),
    issuerRegExp: optional(filled),
    subject: optional(filled),
    subjectRegExp: optional(filled),
    subjectExpression: optional(source),
  },
  (fields, path, faults) => {
    for (const names of [
      ['issuer', 'issuerRegExp'],
      ['subject', 'subjectRegExp', 'subjectExpression'],
    ]) {
      if (names.filter((each) => isSet(fields, each)).length === 1) continue
      const all = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
      faults.add(path, `Invalid value: exactly one of ${all} must be set`)
    }
  },
)

const keyless = object({
  identities: required(
    listRule(listOf(identity), (_items, path, faults, count) => {
      if (count === 0) faults.add(path, 'Required value: at least one identity')
    }),
  ),
  roots: optional(filled),
  additionalExtensions: optional(mapOf(text)),
})

const notBoth: Rule = (fields, path, faults) => {
  if (isSet(fields, 'value') && isSet(fields, 'expression')) {
    faults.add(path, 'Invalid value: value and expression are set, only one may be')
  }
}

const textSource = object({ value: optional(filled), expression: optional(source) }, notBoth)

const certificate = object(
  { cert: optional(textSource), certChain: optional(textSource) },
  (fields, path, faults) => {
    const given = ['cert', 'certChain'].filter((name) => saysSomething(own(fields, name)))
    if (given.length === 0)
      faults.add(path, 'Required value: one of cert and certChain must be set')
  },
)

function saysSomething(fields: unknown): boolean {
  return isRecord(fields) && (isSet(fields, 'value') || isSet(fields, 'expression'))
}

const signatureSource = object({
  repository: optional(filled),
  tagPrefix: optional(filled),
  // The field is spelled with a capital letter.
  PullSecrets: optional(listOf(object({ name: required(words) }))),
})

const tuf = object({
  mirror: optional(filled),
  root: optional(
    object({
      path: optional(
        refused('functions read no files; name the TUF root in the config, or set root.data'),
      ),
      data: optional(filled),
    }),
  ),
})

/** Upstream takes the first of them and ignores the others, which may be the ones that were meant. */
const oneSigner: Rule = (fields, path, faults) => {
  const given = ['key', 'keyless', 'certificate'].filter((name) => isPresent(fields, name))
  if (given.length === 0) {
    faults.add(
      path,
      'Required value: cosign verifier needs to have one key, keyless or certificate fields set',
    )
  }
  if (given.length > 1) {
    faults.add(path, `Invalid value: ${given.join(' and ')} are set, only one may be`)
  }
}

const cosign = object(
  {
    key: optional(key),
    keyless: optional(keyless),
    certificate: optional(certificate),
    annotations: optional(mapOf(text)),
    source: optional(signatureSource),
    ctlog: optional(ctlog),
    tuf: optional(tuf),
    trustedRoot: optional(textSource),
  },
  oneSigner,
)

/** What `cosign` holds: texts that are not empty. */
export type CosignSpec = NonNullable<ReturnType<typeof cosign>>

/** An empty text is refused where it stands: nothing would ever verify. */
const certificates = object(
  { value: optional(filled), expression: optional(source) },
  (fields, path, faults) => {
    if (!saysSomething(fields)) faults.add(path, 'Required value: certificates in PEM')
    notBoth(fields, path, faults)
  },
)

const notary = object({
  certs: required(certificates),
  tsaCerts: optional(certificates),
})

const entry = object(
  {
    name: required(words),
    cosign: optional(cosign),
    notary: optional(notary),
  },
  oneKind('cosign', 'notary'),
)

/** One entry of `spec.attestors`. Whether its key is one is asked later, where it takes time. */
export const attestor: Shape<AttestorFields> = (value: unknown, path: Path, faults: Faults) => {
  const read = entry(value, path, faults)
  if (read?.notary !== undefined) return { name: read.name, notary: read.notary }
  return read?.cosign === undefined ? undefined : { name: read.name, cosign: read.cosign }
}
