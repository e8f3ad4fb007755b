import { loadRegex } from '../../cel/regex.ts'
import { AdmissionError } from '../../errors.ts'
import { type CertificateIdentity, extensionId } from './fulcio.ts'
import type { Identity } from './types.ts'

/** True when the certificate's issuer, one of its names and its extensions are those of an identity. */
export type IdentityMatcher = (certificate: CertificateIdentity) => boolean

/**
 * A test for any of the identities. Each needs an issuer AND a subject, either exact or as a RegExp, never both: a subject alone would be
 * anybody's who runs an identity provider. Throws `POLICY_INVALID` otherwise, also for no identity, for what is not RE2, and for
 * extensions that Fulcio does not have.
 */
export async function createIdentityMatcher(
  identities: readonly Identity[],
): Promise<IdentityMatcher> {
  if (identities.length === 0) throw invalid('at least one identity is needed')
  const matchers = await Promise.all(
    identities.map(async ({ issuer, issuerRegExp, subject, subjectRegExp, extensions = {} }) => ({
      isIssuer: await matcher(issuer, issuerRegExp, 'issuer'),
      isSubject: await matcher(subject, subjectRegExp, 'subject'),
      wanted: Object.entries(extensions).map(([name, value]) => [idOf(name), value] as const),
    })),
  )
  return ({ issuer, names, extension }) =>
    issuer !== undefined &&
    matchers.some(
      ({ isIssuer, isSubject, wanted }) =>
        isIssuer(issuer) &&
        names.some(isSubject) &&
        wanted.every(([oid, value]) => extension(oid) === value),
    )
}

function idOf(name: string): string {
  const oid = extensionId(name)
  if (oid === undefined) throw invalid(`${JSON.stringify(name)} is no extension of Fulcio`)
  return oid
}

async function matcher(
  exact: string | undefined,
  pattern: string | undefined,
  what: string,
): Promise<(text: string) => boolean> {
  // Empty means absent in the policy fields of the field.
  if (Boolean(exact) === Boolean(pattern)) {
    throw invalid(`an identity needs either ${what} or ${what}RegExp`)
  }
  if (exact) return (text) => text === exact
  const engine = await loadRegex()
  try {
    const regex = engine.compile(pattern ?? '')
    return (text) => regex.test(text)
  } catch (cause) {
    throw new AdmissionError('POLICY_INVALID', `identity: ${what}RegExp is not RE2`, { cause })
  }
}

function invalid(reason: string): AdmissionError {
  return new AdmissionError('POLICY_INVALID', `identity: ${reason}`)
}
