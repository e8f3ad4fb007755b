import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nodeHash } from '#functions/hash-node.ts'
import { concat, fromBase64Url, fromUtf8, toBase64Url, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { parseJson, stringifyJson } from '#shared/json.ts'
import { MAX_SEAL_CHARS, MAX_SEAL_TTL_MS } from '#shared/limits.ts'
import { secretKeyRing } from '#shared/outcome/keyring.ts'
import { openSeal, sealOutcomes } from '#shared/outcome/seal.ts'
import type { Fact, KeyRing, Opened, Outcomes, SealContext } from '#shared/outcome/types.ts'

const NOW = 1_790_000_000_000
const TTL = 120_000
const SIGNAL = new AbortController().signal
const DIGEST = `sha256:${'a'.repeat(64)}`
const HASH = 'c'.repeat(64)

const CONTEXT: SealContext = {
  cluster: 'prod-eu',
  resource: '/v1/pods',
  namespace: 'shop',
  operation: 'CREATE',
  name: ['n', 'web'],
}

const FACT: Fact = {
  policy: 'release',
  policyHash: HASH,
  function: 'verifyImageSignatures',
  image: `registry.test/web:1@${DIGEST}`,
  digest: DIGEST,
  attestor: 'release-key',
}

const OUTCOMES: Outcomes = {
  policies: [{ policy: 'release', policyHash: HASH }],
  facts: [FACT],
}

const ring = secretKeyRing([{ kid: 'k1', secret: new Uint8Array(32).fill(1) }], nodeHash)

async function seal(
  changes: {
    outcomes?: Outcomes
    context?: SealContext
    keys?: KeyRing
    now?: number
    ttlMs?: number
  } = {},
): Promise<string> {
  const { outcomes = OUTCOMES, context = CONTEXT, keys = ring, now = NOW, ttlMs = TTL } = changes
  return sealOutcomes(outcomes, context, await keys.current(now, SIGNAL), now, ttlMs)
}

function open(
  annotation: string | undefined,
  changes: { context?: SealContext; keys?: KeyRing; now?: number } = {},
): Promise<Opened> {
  const { context = CONTEXT, keys = ring, now = NOW } = changes
  return openSeal(annotation, context, keys, now, SIGNAL)
}

const refused = (problem: string): Opened => ({
  status: 'refused',
  reason: problem,
})
const FOREIGN = refused('it was not made by us for this object')

/** A token with any body, sealed with the right key as only we could. */
async function sealText(body: string): Promise<string> {
  const { kid, key } = await ring.current(NOW, SIGNAL)
  const parts = [
    'countersign.dev/seal/v1',
    kid,
    'prod-eu',
    '/v1/pods',
    'shop',
    'CREATE',
    'n',
    'web',
    body,
  ]
  const framed = parts.flatMap((part) => {
    const length = new Uint8Array(4)
    new DataView(length.buffer).setUint32(0, utf8(part).length)
    return [length, utf8(part)]
  })
  return `v1.${kid}.${body}.${toBase64Url(key.mac(concat(...framed)))}`
}

describe('a seal', () => {
  test('opens to the same outcomes for the same context', async () => {
    expect(await open(await seal())).toEqual({
      status: 'open',
      outcomes: OUTCOMES,
      issuedAt: NOW,
      expiresAt: NOW + TTL,
    })
  })

  test('is v1, the key id, the body and 32 bytes of MAC', async () => {
    expect(await seal()).toMatch(/^v1\.k1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/)
  })

  test('may hold nothing at all', async () => {
    const outcomes: Outcomes = { policies: [], facts: [] }
    expect(await open(await seal({ outcomes }))).toMatchObject({ status: 'open', outcomes })
  })

  test('opens a clock difference of five seconds before it was issued, and until its last millisecond', async () => {
    const token = await seal()
    expect(await open(token, { now: NOW - 5000 })).toMatchObject({ status: 'open' })
    expect(await open(token, { now: NOW + TTL - 1 })).toMatchObject({ status: 'open' })
  })

  test('never lives longer than five minutes, whatever was asked for', async () => {
    const token = await seal({ ttlMs: 86_400_000 })
    expect(await open(token)).toMatchObject({ expiresAt: NOW + MAX_SEAL_TTL_MS })
  })

  test.each([
    { name: 'another cluster', context: { ...CONTEXT, cluster: 'prod-us' } },
    { name: 'another namespace', context: { ...CONTEXT, namespace: 'bank' } },
    { name: 'no namespace', context: { ...CONTEXT, namespace: '' } },
    { name: 'another resource', context: { ...CONTEXT, resource: 'apps/v1/deployments' } },
    { name: 'a subresource', context: { ...CONTEXT, resource: '/v1/pods/ephemeralcontainers' } },
    { name: 'another operation', context: { ...CONTEXT, operation: 'UPDATE' } },
    { name: 'another name', context: { ...CONTEXT, name: ['n', 'web2'] as const } },
    { name: 'the same text as generateName', context: { ...CONTEXT, name: ['g', 'web'] as const } },
    {
      name: 'text moved from one part to the next',
      context: { ...CONTEXT, cluster: 'prod-eu/v', resource: '1/pods' },
    },
  ])('does not count for $name', async ({ context }) => {
    expect(await open(await seal(), { context })).toEqual(FOREIGN)
  })

  test('for a generated name counts for the same generateName only', async () => {
    const generated: SealContext = { ...CONTEXT, name: ['g', 'web-'] }
    const token = await seal({ context: generated })
    expect(await open(token, { context: generated })).toMatchObject({ status: 'open' })
    expect(await open(token, { context: { ...generated, name: ['g', 'web-x'] } })).toEqual(FOREIGN)
    expect(await open(token, { context: { ...generated, name: ['n', 'web-'] } })).toEqual(FOREIGN)
  })

  test.each([
    { name: 'it has expired', now: NOW + TTL, problem: 'it has expired' },
    { name: 'it expired long ago', now: NOW + 100 * TTL, problem: 'it has expired' },
    { name: 'it comes from the future', now: NOW - 5001, problem: 'it was issued in the future' },
  ])('does not count when $name', async ({ now, problem }) => {
    expect(await open(await seal(), { now })).toEqual(refused(problem))
  })

  test('of another key with the same id does not count', async () => {
    const other = secretKeyRing([{ kid: 'k1', secret: new Uint8Array(32).fill(2) }], nodeHash)
    expect(await open(await seal({ keys: other }))).toEqual(FOREIGN)
  })

  test('of a key that is not in the ring does not count', async () => {
    const other = secretKeyRing([{ kid: 'k9', secret: new Uint8Array(32).fill(1) }], nodeHash)
    expect(await open(await seal({ keys: other }))).toEqual(
      refused('its key is not one of ours, or no longer'),
    )
  })

  test('does not count under the id of another live key', async () => {
    const two = secretKeyRing(
      [
        { kid: 'k2', secret: new Uint8Array(32).fill(2) },
        { kid: 'k1', secret: new Uint8Array(32).fill(1) },
      ],
      nodeHash,
    )
    const token = (await seal()).replace('v1.k1.', 'v1.k2.')
    expect(await open(token, { keys: two })).toEqual(FOREIGN)
  })

  test('with the body of another seal of ours does not count', async () => {
    const [version, kid, , mac] = (await seal()).split('.')
    const [, , body] = (
      await seal({ context: { ...CONTEXT, namespace: 'bank' }, now: NOW + 1 })
    ).split('.')
    expect(await open([version, kid, body, mac].join('.'))).toEqual(FOREIGN)
  })

  test('does not count with a single bit flipped, wherever it is', async () => {
    const token = await seal()
    await fc.assert(
      fc.asyncProperty(
        fc.nat(token.length - 1),
        fc.integer({ min: 0, max: 6 }),
        async (at, bit) => {
          const flipped = String.fromCharCode(token.charCodeAt(at) ^ (1 << bit))
          const opened = await open(token.slice(0, at) + flipped + token.slice(at + 1))
          expect(opened.status).toBe('refused')
        },
      ),
      { numRuns: 500 },
    )
  })

  test('does not count cut short or made longer, wherever', async () => {
    const token = await seal()
    for (let length = 0; length < token.length; length += 7) {
      expect((await open(token.slice(0, length))).status).toBe('refused')
    }
    for (const more of ['A', '.', '=', '\n', ' ', token]) {
      expect((await open(token + more)).status).toBe('refused')
      expect((await open(more + token)).status).toBe('refused')
    }
  })

  test('open never throws, whatever the annotation says', async () => {
    const piece = fc.oneof(
      fc.constantFrom('v1', 'k1', '.', '..', 'v1.k1.e30.AAAA', '=', '\u0000'),
      fc.string(),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
        expect((await open(pieces.join(''))).status).toBe('refused')
      }),
    )
  })

  test('an annotation of 200 KiB is refused without looking for a key', async () => {
    const none: KeyRing = {
      current: () => Promise.reject(new Error('asked')),
      find: () => Promise.reject(new Error('asked')),
    }
    const token = `v1.k1.${'A'.repeat(200 * 1024)}.${'A'.repeat(43)}`
    expect(await open(token, { keys: none })).toEqual(
      refused(`it has ${token.length} characters, at most ${MAX_SEAL_CHARS} may be`),
    )
  })

  test('no annotation is absent, an empty one is refused', async () => {
    expect(await open(undefined)).toEqual({ status: 'absent' })
    expect(await open('')).toEqual(refused('it does not have four parts'))
  })

  test.each([
    {
      name: 'does not answer',
      error: new AdmissionError('SEAL_KEY_UNAVAILABLE', 'KMS throttles'),
      reason: 'KMS throttles',
    },
    { name: 'breaks', error: new RangeError('oops'), reason: 'opening the seal: RangeError: oops' },
  ])(
    'is unavailable, neither open nor refused, when the key service $name',
    async ({ error, reason }) => {
      const down: KeyRing = {
        current: () => Promise.reject(error),
        find: () => Promise.reject(error),
      }
      expect(await open(await seal(), { keys: down })).toEqual({ status: 'unavailable', reason })
    },
  )

  test.each([
    {
      name: 'its version is another',
      change: (token: string) => token.replace('v1.', 'v2.'),
      problem: 'its version is not v1',
    },
    {
      name: 'its key id has a slash',
      change: (token: string) => token.replace('.k1.', '.k/1.'),
      problem: 'its key id has other characters than a-z 0-9 -',
    },
    {
      name: 'its key id is in upper case',
      change: (token: string) => token.replace('.k1.', '.K1.'),
      problem: 'its key id has other characters than a-z 0-9 -',
    },
    {
      name: 'its MAC is padded',
      change: (token: string) => `${token}=`,
      problem: 'its MAC is not 32 bytes of base64url',
    },
    {
      name: 'its MAC is short',
      change: (token: string) => token.slice(0, -2),
      problem: 'its MAC is not 32 bytes of base64url',
    },
  ])('does not count when $name', async ({ change, problem }) => {
    expect(await open(change(await seal()))).toEqual(refused(problem))
  })
})

describe('a body that only a holder of our key could write', () => {
  const good = async () => parseJson(fromUtf8(fromBase64Url((await seal()).split('.')[2]!)!))

  test('is what this suite seals by hand', async () => {
    const body = toBase64Url(utf8(stringifyJson(await good())))
    expect(await sealText(body)).toBe(await seal())
  })

  const rows = {
    iat: NOW,
    exp: NOW + TTL,
    policies: [['release', HASH, 1]],
    functions: ['verifyImageSignatures'],
    images: [`web@${DIGEST}`],
    attestors: ['key'],
    facts: [[0, 0, 0, 0]],
  }
  test.each([
    { name: 'the body these rows are made from is fine', body: rows, status: 'open' },
    { name: 'an image that is not pinned', body: { ...rows, images: ['web:1'] } },
    {
      name: 'an image that is a row',
      body: { ...rows, images: [[`web@${DIGEST}`, DIGEST]] },
    },
    { name: 'a digest that is none', body: { ...rows, images: ['web@x'] } },
    { name: 'an index past the end', body: { ...rows, facts: [[0, 0, 1, 0]] } },
    { name: 'a negative index', body: { ...rows, facts: [[0, 0, -1, 0]] } },
    { name: 'a fact with an index too few', body: { ...rows, facts: [[0, 0, 0]] } },
    { name: 'a fact of strings', body: { ...rows, facts: [['0', 0, 0, 0]] } },
    { name: 'no facts', body: { ...rows, facts: null } },
    { name: 'a policy without hash', body: { ...rows, policies: [['release', 1]] } },
    { name: 'an attestor that is a number', body: { ...rows, attestors: [1] } },
    { name: 'a lifetime beyond the maximum', body: { ...rows, exp: NOW + MAX_SEAL_TTL_MS + 1 } },
    { name: 'an end before its beginning', body: { ...rows, exp: NOW - 1 } },
    { name: 'a time that is text', body: { ...rows, iat: `${NOW}` } },
    { name: 'a time with a fraction', body: { ...rows, iat: NOW + 0.5 } },
    { name: 'a list', body: [] },
  ])('$name', async ({ body, status = 'refused' }) => {
    const token = await sealText(toBase64Url(utf8(JSON.stringify(body))))
    expect((await open(token)).status).toBe(status)
  })

  test.each([
    { name: 'not base64url', body: 'e30!' },
    { name: 'base64url with a spare bit set', body: 'e31' },
    { name: 'not JSON', body: toBase64Url(utf8('{')) },
    { name: 'not UTF-8', body: toBase64Url(new Uint8Array([0x22, 0xff, 0x22])) },
    { name: 'a repeated key', body: toBase64Url(utf8('{"iat":1,"iat":2}')) },
    { name: 'nested deeply', body: toBase64Url(utf8('['.repeat(1000))) },
  ])('is refused when it is $name', async ({ body }) => {
    expect((await open(await sealText(body))).status).toBe('refused')
  })
})

describe('sealOutcomes', () => {
  test('leaves out facts about images that are not pinned to their digest', async () => {
    const facts = [
      { ...FACT, image: 'registry.test/web:1' },
      { ...FACT, digest: `sha256:${'b'.repeat(64)}` },
      FACT,
    ]
    const opened = await open(await seal({ outcomes: { ...OUTCOMES, facts } }))
    expect(opened).toMatchObject({ status: 'open', outcomes: OUTCOMES })
  })

  test('a fact does not make its policy an evaluated one', async () => {
    const opened = await open(await seal({ outcomes: { policies: [], facts: [FACT] } }))
    expect(opened).toMatchObject({ outcomes: { policies: [], facts: [FACT] } })
  })

  test('holds hundreds of facts: thirty images, five policies, two attestors', async () => {
    const facts: Fact[] = []
    for (let image = 0; image < 30; image++) {
      const digest = `sha256:${image.toString(16).padStart(64, '0')}`
      for (let policy = 0; policy < 5; policy++) {
        for (const attestor of ['release-key', 'scan-key']) {
          facts.push({
            ...FACT,
            policy: `p${policy}`,
            policyHash: `${policy}`.repeat(64),
            digest,
            image: `registry.test/team/app-${image}:1.2.3@${digest}`,
            attestor,
          })
        }
      }
    }
    const token = await seal({ outcomes: { policies: [], facts } })
    expect(token.length).toBeLessThan(12_288)
    expect(await open(token)).toMatchObject({ outcomes: { facts } })
  })

  test('refuses what would not fit in an annotation', async () => {
    const facts = Array.from({ length: 400 }, (_, i): Fact => {
      const digest = `sha256:${i.toString(16).padStart(64, '0')}`
      return { ...FACT, digest, image: `registry.test/${'x'.repeat(100)}@${digest}` }
    })
    await expect(seal({ outcomes: { policies: [], facts } })).rejects.toMatchObject({
      code: 'SEAL_TOO_LARGE',
    })
  })

  test.each([{ ttlMs: 0 }, { ttlMs: -1 }, { ttlMs: Number.NaN }])(
    'a lifetime of $ttlMs is a mistake of the caller',
    async ({ ttlMs }) => {
      await expect(seal({ ttlMs })).rejects.toThrow(TypeError)
    },
  )

  test('opening gives back what was sealed', async () => {
    const name = fc.string({ minLength: 1, maxLength: 20 })
    const hex = fc.string({
      unit: fc.constantFrom(...'0123456789abcdef'),
      minLength: 64,
      maxLength: 64,
    })
    const fact = fc
      .record({
        policy: name,
        policyHash: hex,
        function: name,
        repository: name,
        digest: hex.map((d) => `sha256:${d}`),
        attestor: name,
      })
      .filter(({ repository }) => !repository.includes('@'))
      .map(({ repository, ...rest }) => ({ ...rest, image: `${repository}@${rest.digest}` }))
    const outcomes = fc.record({
      policies: fc.uniqueArray(fc.record({ policy: name, policyHash: hex }), {
        selector: (row) => JSON.stringify(row),
      }),
      facts: fc.array(fact),
    })
    await fc.assert(
      fc.asyncProperty(outcomes, name, async (given, namespace) => {
        const context = { ...CONTEXT, namespace }
        const opened = await open(await seal({ outcomes: given, context }), { context })
        expect(opened).toEqual({
          status: 'open',
          outcomes: given,
          issuedAt: NOW,
          expiresAt: NOW + TTL,
        })
      }),
    )
  })
})
