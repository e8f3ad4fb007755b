import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import { hmacSha256, sha256Short } from '#shared/hash.ts'

const bytes = fc.uint8Array({ maxLength: 300 })

test('SHA-256 and HMAC are those of the platform', () => {
  fc.assert(
    fc.property(bytes, bytes, (key, message) => {
      return (
        createHash('sha256').update(message).digest().equals(sha256Short(message)) &&
        createHmac('sha256', key).update(message).digest().equals(hmacSha256(key, message))
      )
    }),
  )
})
