import { type Bytes, fromUtf8 } from '../../bytes.ts'
import { malformed } from '../content.ts'
import { TAG } from '../der.ts'
import type { Certificate } from '../x509/certificate.ts'
import { DerReader, dottedOid } from '../x509/reader.ts'

/** The arc of Fulcio's extensions. */
const ARC = '1.3.6.1.4.1.57264.1.'
const ISSUER_V1 = `${ARC}1`
const ISSUER_V2 = `${ARC}8`
/** The name of somebody whose provider knows neither e-mail addresses nor URIs. */
const OTHER_NAME = `${ARC}7`

/** Names of the extensions in the order of their last number, from 1; empty where there is nothing to ask for. */
const NAMES =
  'oidcIssuer githubWorkflowTrigger githubWorkflowSha githubWorkflowName githubWorkflowRepository githubWorkflowRef  issuer buildSignerURI buildSignerDigest runnerEnvironment sourceRepositoryURI sourceRepositoryDigest sourceRepositoryRef sourceRepositoryIdentifier sourceRepositoryOwnerURI sourceRepositoryOwnerIdentifier buildConfigURI buildConfigDigest buildTrigger runInvocationURI sourceRepositoryVisibilityAtSigning deploymentEnvironment tokenSubject'
    .toLowerCase()
    .split(' ')

/** Whom a certificate is for, in the words of whoever issued it. */
export interface CertificateIdentity {
  /** Issuer of the identity token. */
  issuer: string | undefined
  /** Every subject alternative name: e-mail addresses, URIs, DNS names and Fulcio's other names. */
  names: readonly string[]
  /** The value of one of Fulcio's extensions by its dotted object identifier. Throws `SIGNATURE_MALFORMED`. */
  extension(oid: string): string | undefined
}

/**
 * The dotted object identifier of a Fulcio extension, given that or its name (upper and lower case are the same: the field writes both
 * `githubWorkflowSha` and `githubWorkflowSHA`); undefined for what is none.
 */
export function extensionId(name: string): string | undefined {
  if (name.startsWith(ARC)) return /^[1-9]\d{0,3}$/.test(name.slice(ARC.length)) ? name : undefined
  const index = name === '' ? -1 : NAMES.indexOf(name.toLowerCase())
  return index < 0 ? undefined : `${ARC}${index + 1}`
}

/** Whom the certificate is for. Throws `SIGNATURE_MALFORMED` for broken extensions, and for two issuers that differ. */
export function identityOf({ subjectAltNames = [], values }: Certificate): CertificateIdentity {
  const extension = (oid: string) => {
    const value = values.get(oid)
    if (value === undefined) return undefined
    // The first seven are raw text, later ones DER.
    return Number(oid.slice(ARC.length)) < 8 ? text(value) : utf8String(value)
  }
  const older = extension(ISSUER_V1)
  const issuer = extension(ISSUER_V2) ?? older
  if (older !== undefined && older !== issuer) {
    throw malformed('certificate names two issuers that differ')
  }
  const names = subjectAltNames.flatMap(({ kind, value, other }) => {
    if (other !== undefined) return otherName(other)
    return kind === 'email' || kind === 'dns' || kind === 'uri' ? [value] : []
  })
  return { issuer, names, extension }
}

function otherName(content: Bytes): string[] {
  const reader = new DerReader(content, 'otherName')
  if (dottedOid(reader.next(TAG.oid).content) !== OTHER_NAME) return []
  const value = reader.next(0xa0).content
  reader.end()
  return [utf8String(value)]
}

function utf8String(value: Bytes): string {
  const reader = new DerReader(value, 'certificate extension')
  const { content } = reader.next(0x0c)
  reader.end()
  return text(content)
}

function text(bytes: Bytes): string {
  try {
    return fromUtf8(bytes)
  } catch {
    throw malformed('certificate holds a text that is not UTF-8')
  }
}
