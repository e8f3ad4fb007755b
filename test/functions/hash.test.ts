import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeHash } from '#functions/hash-node.ts'
import { portableHash } from '#functions/hash-portable.ts'
import { type Bytes, toHex, utf8 } from '#shared/bytes.ts'

const bytes = fc.uint8Array({ maxLength: 300 })

test.each([
  { name: 'of Node', hash: nodeHash },
  { name: 'in JavaScript', hash: portableHash },
])('the hashes $name are those of WebCrypto', async ({ hash }) => {
  expect(toHex(hash.sha256(utf8('abc')))).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 100 }),
      bytes,
      async (key, message) => {
        const algorithm = { name: 'HMAC', hash: 'SHA-256' }
        const imported = await crypto.subtle.importKey('raw', key as Bytes, algorithm, false, [
          'sign',
        ])
        const [digest, mac] = await Promise.all([
          crypto.subtle.digest('SHA-256', message as Bytes),
          crypto.subtle.sign('HMAC', imported, message as Bytes),
        ])
        expect(hash.sha256(message)).toEqual(new Uint8Array(digest))
        expect(hash.hmacSha256(key, message)).toEqual(new Uint8Array(mac))
      },
    ),
    { numRuns: 50 },
  )
})
