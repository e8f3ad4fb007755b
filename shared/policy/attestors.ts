import type { HashAlgorithm } from '../signature/types.ts'
import {
  type Faults,
  flag,
  isRecord,
  isSet,
  listOf,
  listRule,
  mapOf,
  object,
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

interface NotaryFields {
  name: string
  /** PEM bundles. */
  notary: { certs: string; tsaCerts?: string }
}

/** Empty is absent, as in the policy fields of the field. */
const filled: Shape<string> = (value, path, faults) => text(value, path, faults) || undefined

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
    expression: optional(
      refused('keys given by an expression are not supported yet; write data or kms'),
    ),
  },
  (fields, path, faults) => {
    const given = ['data', 'kms', 'expression'].filter((name) => isSet(fields, name))
    if (given.length === 0) faults.add(path, 'Required value: one of data and kms must be set')
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
    subjectExpression: optional(refused('subjects given by an expression are not supported yet')),
  },
  (fields, path, faults) => {
    for (const name of ['issuer', 'subject']) {
      const given = [name, `${name}RegExp`].filter((each) => isSet(fields, each))
      if (given.length === 1) continue
      faults.add(path, `Invalid value: exactly one of ${name} and ${name}RegExp must be set`)
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

/** `{value|expression}`, the value only. */
const byValue = (reason: string) =>
  object({ value: optional(filled), expression: optional(refused(reason)) })

const CERTIFICATES = 'certificates given by an expression are not supported yet; write value'

const certificate = object(
  { cert: optional(byValue(CERTIFICATES)), certChain: optional(byValue(CERTIFICATES)) },
  (fields, path, faults) => {
    const given = ['cert', 'certChain'].filter((name) => saysSomething(own(fields, name)))
    if (given.length === 0)
      faults.add(path, 'Required value: one of cert and certChain must be set')
  },
)

/** An expression counts too: it has a fault of its own. */
function saysSomething(source: unknown): boolean {
  return isRecord(source) && (isSet(source, 'value') || isSet(source, 'expression'))
}

const source = object({
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
    source: optional(source),
    ctlog: optional(ctlog),
    tuf: optional(tuf),
    trustedRoot: optional(byValue('trusted roots given by an expression are not supported yet')),
  },
  oneSigner,
)

/** What `cosign` holds: texts that are not empty, expressions refused. */
export type CosignSpec = NonNullable<ReturnType<typeof cosign>>

/** Certificates by value. An empty text is refused where it stands: nothing would ever verify. */
const certificates = object(
  {
    value: optional(text),
    expression: optional(refused(CERTIFICATES)),
  },
  (fields, path, faults) => {
    if (!isSet(fields, 'value') && !isSet(fields, 'expression')) {
      faults.add(path, 'Required value: certificates in PEM')
    }
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
  (fields, path, faults) => {
    const kinds = ['cosign', 'notary'].filter((kind) => isPresent(fields, kind))
    if (kinds.length === 0) faults.add(path, 'Required value: one of cosign, notary must be set')
    if (kinds.length > 1) faults.add(path, 'Invalid value: only one of cosign, notary may be set')
  },
)

/** One entry of `spec.attestors`. Whether its key is one is asked later, where it takes time. */
export const attestor: Shape<AttestorFields> = (value: unknown, path: Path, faults: Faults) => {
  const read = entry(value, path, faults)
  if (read?.notary !== undefined) return notaryFields(read.name, read.notary)
  return read?.cosign === undefined ? undefined : { name: read.name, cosign: read.cosign }
}

function notaryFields(
  name: string,
  { certs, tsaCerts }: { certs: { value?: string }; tsaCerts?: { value?: string } },
): NotaryFields | undefined {
  // Without a value a fault was added.
  if (certs.value === undefined) return undefined
  const tsa = tsaCerts?.value === undefined ? {} : { tsaCerts: tsaCerts.value }
  return { name, notary: { certs: certs.value, ...tsa } }
}

function isPresent(fields: Record<string, unknown>, name: string): boolean {
  const value = own(fields, name)
  return value !== undefined && value !== null
}
