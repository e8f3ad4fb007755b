import { fromBase64 } from '../../bytes.ts'
import { AdmissionError, toAdmissionError } from '../../errors.ts'
import { MAX_TRUST_STORE_CHARS, MAX_TRUSTED_CERTIFICATES } from '../../limits.ts'
import { type Certificate, parseCertificate } from './certificate.ts'

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([^-]*)-----END ([A-Z0-9 ]{1,64})-----/g

/**
 * The certificates of a PEM bundle in its order, none for a text without any. Text between blocks is comment, as `openssl` writes it.
 * Throws `KEY_INVALID` for other kinds of blocks, damaged ones, and more than `MAX_TRUSTED_CERTIFICATES`; the text is never repeated,
 * since it may hold a private key.
 */
export function certificatesFromPem(text: string): readonly Certificate[] {
  if (text.length > MAX_TRUST_STORE_CHARS) {
    throw invalid(`${text.length} characters, at most ${MAX_TRUST_STORE_CHARS} are read`)
  }
  const blocks = [...text.matchAll(BLOCK)]
  if (blocks.some(([, label, , end]) => label !== 'CERTIFICATE' || end !== label)) {
    throw invalid('a PEM block that is not a certificate')
  }
  if (text.split('-----BEGIN').length - 1 !== blocks.length) throw invalid('a damaged PEM block')
  if (blocks.length > MAX_TRUSTED_CERTIFICATES) throw invalid(`${blocks.length} certificates`)
  return blocks.map(([, , body = ''], index) => {
    const der = fromBase64(body.replace(/\s/g, ''))
    if (der === undefined) throw invalid(`certificate ${index + 1} is not base64`)
    try {
      return parseCertificate(der)
    } catch (thrown) {
      const cause = toAdmissionError(thrown, 'reading a certificate')
      throw invalid(`certificate ${index + 1}: ${cause.message}`, cause)
    }
  })
}

function invalid(found: string, cause?: unknown): AdmissionError {
  return new AdmissionError('KEY_INVALID', `certificates: found ${found}`, { cause })
}
