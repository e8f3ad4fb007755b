import { type Bytes, fromBase64 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { MAX_KEY_CHARS } from '../limits.ts'

const BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----([^-]*)-----END ([A-Z0-9 ]{1,64})-----/g

/** What to do instead, by the label of a PEM block that is not a public key. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/PRIVATE KEY$/, 'a private key; take it out, replace the key pair and give the public key'],
  [/CERTIFICATE$/, 'a certificate; give its public key (openssl x509 -pubkey -noout)'],
  [/^RSA PUBLIC KEY$/, 'a PKCS#1 key; convert it with openssl rsa -RSAPublicKey_in -pubout'],
  [/^(EC|DSA|DH) PARAMETERS$/, 'parameters without a key'],
]

/**
 * The DER of the one `PUBLIC KEY` block the text holds. Throws `KEY_INVALID` for anything else (another kind of
 * block, several blocks, text around it, loose base64) and says what it found; the text itself is never repeated,
 * since it may be a private key.
 */
export function publicKeyFromPem(text: string): Bytes {
  if (text.length > MAX_KEY_CHARS) {
    throw invalid(`${text.length} characters, at most ${MAX_KEY_CHARS} are read`)
  }
  const blocks = [...text.matchAll(BLOCK)]
  // Reported before anything else: whoever pasted one has to know.
  const unfit = blocks.find(([, label]) => label !== 'PUBLIC KEY')
  if (unfit !== undefined) throw invalid(adviceFor(unfit[1] ?? ''))
  if (blocks.length > 1)
    throw invalid(`${blocks.length} PEM blocks, expected one; use an attestor per key`)
  const [block] = blocks
  if (block === undefined) throw invalid(withoutBlock(text))
  const [whole, label, body, end] = block
  if (end !== label) throw invalid('the BEGIN and END lines of the PEM block differ')
  if (text.replace(whole, '').trim() !== '') throw invalid('text outside the PEM block')
  const der = fromBase64((body ?? '').replaceAll(/[\r\n\t ]/g, ''))
  if (der === undefined || der.length === 0) throw invalid('the PEM block is not base64')
  return der
}

function adviceFor(label: string): string {
  const [, advice] = ADVICE.find(([pattern]) => pattern.test(label)) ?? []
  return advice ?? `a PEM block of type ${JSON.stringify(label)}, expected PUBLIC KEY`
}

function withoutBlock(text: string): string {
  if (text.trim() === '') return 'nothing'
  if (/PRIVATE KEY/.test(text)) return 'a damaged private key; take it out'
  if (/^\s*[a-z0-9]+:\/\//.test(text)) return 'a reference; references belong in key.kms'
  return 'no PEM block (-----BEGIN PUBLIC KEY-----)'
}

function invalid(found: string): AdmissionError {
  return new AdmissionError('KEY_INVALID', `public key: found ${found}`)
}
