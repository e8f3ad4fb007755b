import type { Identity } from '../signature/sigstore/types.ts'
import {
  type Faults,
  flag,
  isRecord,
  isSet,
  listOf,
  listRule,
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
export type AttestorFields = KeyAttestorFields | KeylessAttestorFields | NotaryFields

/** Identities whose bundles count, against a trusted root that the policy holds. */
export interface KeylessAttestorFields {
  name: string
  keyless: { identities: readonly Identity[] }
  /** JSON. */
  trustedRoot: string
}

/** A cosign key without transparency log. */
export interface KeyAttestorFields {
  name: string
  key: { data?: string; kms?: string }
  hashAlgorithm?: 'sha256' | 'sha384' | 'sha512'
}

interface NotaryFields {
  name: string
  /** PEM bundles. */
  notary: { certs: string; tsaCerts?: string }
}

const hashAlgorithm: Shape<string> = (value, path, faults) => {
  const name = text(value, path, faults)
  if (name === 'sha224') {
    return faults.add(
      path,
      'sha224 is not supported: WebCrypto does not have it',
      'POLICY_UNSUPPORTED',
    )
  }
  const supported = ['sha256', 'sha384', 'sha512']
  return name === undefined || name === '' || supported.includes(name)
    ? name
    : faults.add(path, unsupportedValue(name, supported))
}

const key = object(
  {
    data: optional(text),
    kms: optional(text),
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
  url: optional(refused('a transparency log is not supported yet')),
  rekorPubKey: optional(refused('a transparency log is not supported yet')),
  ctLogPubKey: optional(refused('a certificate transparency log is not supported yet')),
  tsaCertChain: optional(refused('timestamp authorities are not supported yet')),
  insecureIgnoreTlog: optional(flag),
  insecureIgnoreSCT: optional(flag),
})

/** A key alone is checked without a log only when the policy says so: silence means the log is required. */
const needsNoLog: Rule = (cosign, path, faults) => {
  const log = own(cosign, 'ctlog')
  if (isRecord(log) && own(log, 'insecureIgnoreTlog') === true) return
  faults.add(
    [...path, 'ctlog', 'insecureIgnoreTlog'],
    'signatures in a transparency log are not supported yet; a key attestor needs ctlog.insecureIgnoreTlog: true',
    'POLICY_UNSUPPORTED',
  )
}

/** `{}` is still a wish for keyless or certificate verification, so unlike elsewhere an empty object counts. */
function refusedKind(reason: string): Shape<never> {
  return (_value, path, faults) => faults.add(path, reason, 'POLICY_UNSUPPORTED')
}

const identity = object(
  {
    issuer: optional(text),
    issuerRegExp: optional(text),
    subject: optional(text),
    subjectRegExp: optional(text),
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
  roots: optional(refused('roots beside trustedRoot are not supported yet')),
  additionalExtensions: optional(refused('certificate extensions are not supported yet')),
})

const trustedRoot = object({
  value: optional(text),
  expression: optional(refused('trusted roots given by an expression are not supported yet')),
})

/** Silence would mean that roots are downloaded, which is not done here. */
const needsTrustedRoot: Rule = (cosign, path, faults) => {
  const root = own(cosign, 'trustedRoot')
  if (!isRecord(root) || !isSet(root, 'value')) {
    faults.add(
      [...path, 'keyless'],
      'keyless signatures are verified against a trusted root in the policy only; set trustedRoot.value',
      'POLICY_UNSUPPORTED',
    )
  }
  const log = own(cosign, 'ctlog')
  for (const name of ['insecureIgnoreTlog', 'insecureIgnoreSCT']) {
    if (!isRecord(log) || own(log, name) !== true) continue
    const reason = `keyless signatures without logs are not supported yet; remove ${name}`
    faults.add([...path, 'ctlog', name], reason, 'POLICY_UNSUPPORTED')
  }
}

const OTHER_KINDS = ['keyless', 'certificate'] as const

const cosign = object(
  {
    key: optional(key),
    keyless: optional(keyless),
    certificate: optional(refusedKind('certificate attestors are not supported yet')),
    annotations: optional(refused('required annotations are not supported yet')),
    source: optional(refused('signatures kept in another repository are not supported yet')),
    ctlog: optional(ctlog),
    tuf: optional(refused('TUF roots are not supported yet')),
    trustedRoot: optional(trustedRoot),
  },
  (fields, path, faults) => {
    const isOther = OTHER_KINDS.some((kind) => isPresent(fields, kind))
    const isKeyless = isPresent(fields, 'keyless')
    if (isKeyless) needsTrustedRoot(fields, path, faults)
    else if (isSet(fields, 'trustedRoot')) {
      const reason = 'trusted roots are supported for keyless attestors only'
      faults.add([...path, 'trustedRoot'], reason, 'POLICY_UNSUPPORTED')
    }
    if (isKeyless && isPresent(fields, 'key')) {
      faults.add(path, 'Invalid value: key and keyless are set, only one may be')
    } else if (isPresent(fields, 'key')) needsNoLog(fields, path, faults)
    else if (!isOther) {
      faults.add(
        path,
        'Required value: cosign verifier needs to have one key, keyless or certificate fields set',
      )
    }
  },
)

/** Certificates by value. An empty text is refused where it stands: nothing would ever verify. */
const certificates = object(
  {
    value: optional(text),
    expression: optional(
      refused('certificates given by an expression are not supported yet; write value'),
    ),
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
  const { keyless: identities, trustedRoot: root } = read?.cosign ?? {}
  if (read !== undefined && identities !== undefined) {
    return { name: read.name, keyless: identities, trustedRoot: root?.value ?? '' }
  }
  if (read?.notary !== undefined) return notaryFields(read.name, read.notary)
  const found = read?.cosign?.key
  if (read === undefined || found === undefined) return undefined
  const { data, kms } = found
  const algorithm = found.hashAlgorithm
  return {
    name: read.name,
    key: {
      ...(data === undefined || data === '' ? {} : { data }),
      ...(kms === undefined || kms === '' ? {} : { kms }),
    },
    ...(algorithm === 'sha256' || algorithm === 'sha384' || algorithm === 'sha512'
      ? { hashAlgorithm: algorithm }
      : {}),
  }
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
