import { describe, expect, test } from 'vitest'
import { nodeHash } from '#functions/hash-node.ts'
import { type Bytes, concat, toHex, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { kmsKeyRing, type RingSecret, secretKeyRing } from '#shared/outcome/keyring.ts'
import type { KeyRing, MacKey } from '#shared/outcome/types.ts'
import type { KmsKey, KmsPort } from '#shared/ports.ts'

const HOUR = 3_600_000
const EPOCH = 497_000
const NOW = EPOCH * HOUR + 1000
const SIGNAL = new AbortController().signal
const KEY: KmsKey = { keyId: 'alias/seal', region: 'eu-central-1' }

/** A KMS with one real HMAC key; `messages` are the GenerateMac calls it got, `fail` makes them fail. */
function hmacKms(secret = new Uint8Array(32).fill(7)) {
  const messages: Bytes[] = []
  const state: { fail?: unknown; length?: number } = {}
  const kms: KmsPort = {
    getPublicKey: () => Promise.reject(new Error('not asked for')),
    verify: () => Promise.reject(new Error('not asked for')),
    async generateMac(key, message, signal) {
      signal.throwIfAborted()
      expect(key).toEqual(KEY)
      messages.push(message)
      if (state.fail !== undefined) throw state.fail
      const algorithm = { name: 'HMAC', hash: 'SHA-256' }
      const imported = await crypto.subtle.importKey('raw', secret, algorithm, false, ['sign'])
      const mac = new Uint8Array(await crypto.subtle.sign('HMAC', imported, message))
      return mac.slice(0, state.length ?? 32)
    },
  }
  return { kms, messages, state }
}

/** The MAC a key makes: two keys are the same when their MACs are. */
function fingerprint(key: MacKey | undefined): string | undefined {
  return key === undefined ? undefined : toHex(key.mac(utf8('x')))
}

async function find(ring: KeyRing, kid: string, now = NOW): Promise<string | undefined> {
  return fingerprint(await ring.find(kid, now, SIGNAL))
}

describe('kmsKeyRing', () => {
  test('seals with the key of the hour, derived from the label and the hour', async () => {
    const { kms, messages } = hmacKms()
    const { kid, key } = await kmsKeyRing({ kms, key: KEY, hash: nodeHash }).current(NOW, SIGNAL)
    expect(kid).toBe('h497000')
    expect(key.mac(utf8('x'))).toHaveLength(32)
    const hour = new Uint8Array(8)
    new DataView(hour.buffer).setBigUint64(0, BigInt(EPOCH))
    expect(messages).toEqual([concat(utf8('countersign.dev/seal/key/v1'), hour)])
  })

  test('two isolates derive the same key, another KMS key gives another', async () => {
    const one = await kmsKeyRing({ kms: hmacKms().kms, key: KEY, hash: nodeHash }).current(
      NOW,
      SIGNAL,
    )
    const two = kmsKeyRing({ kms: hmacKms().kms, key: KEY, hash: nodeHash })
    const other = kmsKeyRing({
      kms: hmacKms(new Uint8Array(32).fill(8)).kms,
      key: KEY,
      hash: nodeHash,
    })
    expect(await find(two, one.kid)).toBe(fingerprint(one.key))
    expect(await find(other, one.kid)).not.toBe(fingerprint(one.key))
  })

  test('asks KMS once per hour', async () => {
    const { kms, messages } = hmacKms()
    const ring = kmsKeyRing({ kms, key: KEY, hash: nodeHash })
    for (let minute = 0; minute < 59; minute++) await ring.current(NOW + minute * 60_000, SIGNAL)
    await ring.find('h497000', NOW, SIGNAL)
    expect(messages).toHaveLength(1)
    expect((await ring.current(NOW + HOUR, SIGNAL)).kid).toBe('h497001')
    expect(messages).toHaveLength(2)
  })

  test.each([
    { kid: 'h496999', known: true },
    { kid: 'h497000', known: true },
    { kid: 'h497001', known: true },
    { kid: 'h496998', known: false },
    { kid: 'h497002', known: false },
    { kid: 'h0', known: false },
    { kid: 'h0497000', known: false },
    { kid: 'h-1', known: false },
    { kid: 'h497000x', known: false },
    { kid: 'h4.97e5', known: false },
    { kid: 'k1', known: false },
    { kid: 'H497000', known: false },
    { kid: `h${'9'.repeat(31)}`, known: false },
  ])('knows $kid: $known, and asks KMS about no other', async ({ kid, known }) => {
    const { kms, messages } = hmacKms()
    const ring = kmsKeyRing({ kms, key: KEY, hash: nodeHash })
    expect((await find(ring, kid)) !== undefined).toBe(known)
    expect(messages).toHaveLength(known ? 1 : 0)
  })

  test('each hour has a key of its own', async () => {
    const ring = kmsKeyRing({ kms: hmacKms().kms, key: KEY, hash: nodeHash })
    const keys = await Promise.all(['h496999', 'h497000', 'h497001'].map((kid) => find(ring, kid)))
    expect(new Set(keys).size).toBe(3)
  })

  test('forgets a key when its hours are over', async () => {
    const { kms, messages } = hmacKms()
    const ring = kmsKeyRing({ kms, key: KEY, hash: nodeHash })
    await ring.current(NOW, SIGNAL)
    expect(await find(ring, 'h497000', NOW + 2 * HOUR)).toBeUndefined()
    expect(messages).toHaveLength(1)
  })

  test.each([
    { name: 'throttles', fail: new AdmissionError('KMS_UNAVAILABLE', 'ThrottlingException') },
    { name: 'refuses', fail: new AdmissionError('KMS_REFUSED', 'AccessDeniedException') },
    { name: 'breaks its contract', fail: new TypeError('oops') },
  ])(
    'says that the key is unavailable when KMS $name, and asks again next time',
    async ({ fail }) => {
      const { kms, messages, state } = hmacKms()
      const ring = kmsKeyRing({ kms, key: KEY, hash: nodeHash })
      state.fail = fail
      await expect(ring.current(NOW, SIGNAL)).rejects.toMatchObject({
        code: 'SEAL_KEY_UNAVAILABLE',
        transient: true,
      })
      await expect(ring.find('h497000', NOW, SIGNAL)).rejects.toMatchObject({
        code: 'SEAL_KEY_UNAVAILABLE',
      })
      expect(messages).toHaveLength(2)
      delete state.fail
      expect(await find(ring, 'h497000')).toBeDefined()
    },
  )

  test('a MAC of the wrong length is no key', async () => {
    const { kms, state } = hmacKms()
    state.length = 16
    await expect(
      kmsKeyRing({ kms, key: KEY, hash: nodeHash }).current(NOW, SIGNAL),
    ).rejects.toMatchObject({
      code: 'SEAL_KEY_UNAVAILABLE',
      message: 'KMS answered a MAC of 16 bytes, expected 32',
    })
  })

  test('ends with the signal of the request', async () => {
    const ring = kmsKeyRing({ kms: hmacKms().kms, key: KEY, hash: nodeHash })
    await expect(ring.current(NOW, AbortSignal.abort())).rejects.toMatchObject({
      code: 'SEAL_KEY_UNAVAILABLE',
    })
    expect(await find(ring, 'h497000')).toBeDefined()
  })

  test('a call that hangs holds up no other request', async () => {
    const { kms } = hmacKms()
    let calls = 0
    const hanging: KmsPort = {
      ...kms,
      generateMac: (...call) => (calls++ === 0 ? new Promise(() => {}) : kms.generateMac(...call)),
    }
    const ring = kmsKeyRing({ kms: hanging, key: KEY, hash: nodeHash })
    void ring.current(NOW, SIGNAL)
    expect((await ring.current(NOW, SIGNAL)).kid).toBe('h497000')
  })
})

describe('secretKeyRing', () => {
  const A: RingSecret = { kid: 'a', secret: new Uint8Array(32).fill(1) }
  const B: RingSecret = { kid: 'b', secret: new Uint8Array(32).fill(2) }

  test('seals with the first, opens with all', async () => {
    const ring = secretKeyRing([B, A], nodeHash)
    const { kid, key } = await ring.current(NOW, SIGNAL)
    expect(kid).toBe('b')
    expect(await find(ring, 'b')).toBe(fingerprint(key))
    expect(await find(ring, 'a')).toBe(await find(secretKeyRing([A], nodeHash), 'a'))
    expect(await find(ring, 'c')).toBeUndefined()
    expect(await find(ring, '__proto__')).toBeUndefined()
  })

  test('the key is not the secret itself, and another for another id', async () => {
    const keys = [
      toHex(nodeHash.hmacSha256(A.secret, utf8('x'))),
      await find(secretKeyRing([A], nodeHash), 'a'),
      await find(secretKeyRing([{ ...A, kid: 'x' }], nodeHash), 'x'),
      await find(secretKeyRing([B], nodeHash), 'b'),
    ]
    expect(new Set(keys).size).toBe(4)
  })

  test('does not see later changes of the secret', async () => {
    const secret = new Uint8Array(32).fill(1)
    const ring = secretKeyRing([{ kid: 'a', secret }], nodeHash)
    secret.fill(9)
    expect(await find(ring, 'a')).toBe(await find(secretKeyRing([A], nodeHash), 'a'))
  })

  test.each([
    { name: 'an empty ring', secrets: [], path: '[0]' },
    {
      name: 'a short secret',
      secrets: [A, { kid: 'b', secret: new Uint8Array(31) }],
      path: '[1].secret',
    },
    { name: 'an id with a dot', secrets: [{ ...A, kid: 'a.b' }], path: '[0].kid' },
    { name: 'an empty id', secrets: [{ ...A, kid: '' }], path: '[0].kid' },
    { name: 'an id of 33 characters', secrets: [{ ...A, kid: 'a'.repeat(33) }], path: '[0].kid' },
    { name: 'an id given twice', secrets: [A, { ...B, kid: 'a' }], path: '[1].kid' },
  ])('refuses $name', ({ secrets, path }) => {
    expect(() => secretKeyRing(secrets, nodeHash)).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        faults: [expect.objectContaining({ path })],
      }),
    )
  })
})
