import { toBase64 } from '../../bytes.ts'
import { bytes, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult } from '../values.ts'

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** The bytes of standard base64, padded or not; line ends are skipped and unused bits ignored, as in Go. */
function decode(text: string): CelResult {
  const plain = text.replace(/[\r\n]/g, '')
  if (!BASE64.test(plain)) return new CelError('illegal base64 data')
  return Uint8Array.from(atob(plain), (character) => character.charCodeAt(0))
}

/** cel-go's `base64.` functions. */
export const encoders: Library = {
  base64_encode_bytes: overload('base64.encode', [bytes], toBase64),
  base64_decode_string: overload('base64.decode', [string], decode),
}
