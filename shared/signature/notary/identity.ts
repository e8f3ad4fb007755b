import { fromHex, fromUtf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { MAX_IDENTITY_CHARS, MAX_TRUSTED_IDENTITIES } from '../../limits.ts'
import { ATTRIBUTE_NAMES, type Name } from '../x509/name.ts'

/** Attributes a signer's subject must have, by dotted type; or anybody the trust store vouches for. */
export type TrustedIdentity = { any: true } | { any: false; subject: ReadonlyMap<string, string> }

const PREFIX = 'x509.subject:'
const MANDATORY = ['C', 'ST', 'O']

const TYPES: ReadonlyMap<string, string> = new Map([
  ...Object.entries(ATTRIBUTE_NAMES).map(([oid, name]) => [name, oid] as const),
  // The Notary Project's other spelling of the state.
  ['S', '2.5.4.8'],
])

/**
 * The identities a trust policy names: `*` alone, or `x509.subject: C=US, ST=WA, O=Example` with at least C, ST and O. Throws
 * `POLICY_INVALID` for an empty list and everything that could be read in two ways.
 */
export function parseIdentities(texts: readonly string[]): readonly TrustedIdentity[] {
  if (texts.length === 0 || texts.length > MAX_TRUSTED_IDENTITIES) {
    throw invalid(`1 to ${MAX_TRUSTED_IDENTITIES} are needed`)
  }
  if (!texts.includes('*')) return texts.map(parseIdentity)
  if (texts.length > 1) throw invalid('* stands for everybody and must be alone')
  return [{ any: true }]
}

/** True when the subject has, exactly once each, all attributes that one of the identities names. */
export function isTrustedIdentity(subject: Name, identities: readonly TrustedIdentity[]): boolean {
  const attributes = subject.rdns.flat()
  return identities.some((identity) => {
    if (identity.any) return true
    return [...identity.subject].every(([type, value]) => {
      const found = attributes.filter((attribute) => attribute.type === type)
      return found.length === 1 && found[0]?.value === value
    })
  })
}

function parseIdentity(text: string): TrustedIdentity {
  if (text.length > MAX_IDENTITY_CHARS) throw invalid(`more than ${MAX_IDENTITY_CHARS} characters`)
  if (!text.startsWith(PREFIX)) throw invalid(`expected * or ${PREFIX} …`)
  const subject = new Map<string, string>()
  for (const part of splitUnescaped(text.slice(PREFIX.length))) {
    const at = part.indexOf('=')
    const type = TYPES.get(part.slice(0, Math.max(at, 0)).trim().toUpperCase())
    if (type === undefined) throw invalid('a part is not a known attribute and a value')
    if (subject.has(type)) throw invalid(`${ATTRIBUTE_NAMES[type]} occurs twice`)
    subject.set(type, parseValue(part.slice(at + 1).replace(/^ +/, '')))
  }
  for (const name of MANDATORY) {
    if (!subject.has(TYPES.get(name) ?? '')) throw invalid(`${MANDATORY.join(', ')} are needed`)
  }
  return { any: false, subject }
}

/** Parts between commas that are not escaped. */
function splitUnescaped(text: string): string[] {
  const parts = text.match(/(?:\\[\s\S]|[^\\,])+/g) ?? []
  if (parts.join(',') !== text) throw invalid('a part is empty or ends with a backslash')
  return parts
}

/** The value of an RFC 4514 string. Quotes, `+` and other characters that need an escape there need it here. */
function parseValue(text: string): string {
  const trimmed = text.replace(/(?<!\\) +$/, '')
  if (trimmed === '' || /^#/.test(trimmed)) throw invalid('a value is empty or hexadecimal')
  const tokens = trimmed.match(/(?:\\[0-9a-fA-F]{2})+|\\[\s\S]|[^\\]/gu) ?? []
  if (tokens.join('') !== trimmed) throw invalid('a value has a broken escape')
  return tokens.map(unescapeToken).join('')
}

function unescapeToken(token: string): string {
  if (!token.startsWith('\\')) {
    if (/["+;<>=]/.test(token)) throw invalid('a value has a character that needs an escape')
    return token
  }
  if (/^\\[ "#+,;<=>\\]$/.test(token)) return token.slice(1)
  const bytes = fromHex(token.replaceAll('\\', ''))
  if (bytes === undefined) throw invalid('a value has a broken escape')
  try {
    return fromUtf8(bytes)
  } catch (cause) {
    throw invalid('a value has an escape that is not UTF-8', cause)
  }
}

function invalid(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('POLICY_INVALID', `trusted identities: ${message}`, { cause })
}
