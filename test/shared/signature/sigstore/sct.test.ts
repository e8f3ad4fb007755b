import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { digestOf, newPair, type Pair, pairOf, spkiOf } from '#functions/local/sigstore/keys.ts'
import { toBase64 } from '#shared/bytes.ts'
import { mintSigner, type SctOptions, SignerWorld } from '#test/fakes/fulcio.ts'
import { mintIntermediate, mintRoot } from '#test/fakes/pki.ts'
import type { Json } from '#test/fakes/sigstore.ts'
import { AT, judgeBundle, refused } from './setup.ts'

const anchor = mintRoot()
const issuer = mintIntermediate(anchor)
const log = newPair()
const second = pairOf('RSA')
const P384 = newPair('P-384')
const stranger = newPair()
const sct = (options: Partial<SctOptions> = {}): SctOptions => ({ log, time: AT, ...options })

const logOf = (key: Pair, validFor: Json = { start: '2025-01-01T00:00:00Z' }) => ({
  baseUrl: 'https://ct.example.com',
  publicKey: { rawBytes: toBase64(spkiOf(key)), validFor },
  logId: { keyId: toBase64(digestOf(spkiOf(key))) },
})

interface Setup {
  scts?: readonly SctOptions[]
  sctValue?: Uint8Array
  logs?: readonly Json[]
  wanted?: number
}

function judge({ scts = [], sctValue, logs = [logOf(log)], wanted = 1 }: Setup) {
  const world = new SignerWorld(mintSigner({ issuer, scts, ...(sctValue && { sctValue }) }))
  const root = world.rootWith([issuer, anchor])
  root.ctlogs = logs
  return judgeBundle(world.bundle(), root, { thresholds: { certificateLogs: wanted } })
}

const few = (seen: number, wanted: number, why = '') =>
  refused(
    `certificate is not trusted: seen by ${seen} known certificate logs, expected ${wanted}${why}`,
  )
const INVALID = ': a signed certificate timestamp does not verify'
const UNTIMELY = ': a log key was not valid when it saw the certificate'

describe('a certificate that enough logs have seen', () => {
  test.each<{ name: string } & Setup>([
    { name: 'one', scts: [sct()] },
    {
      name: 'one whose timestamp has extensions',
      scts: [sct({ extensions: Uint8Array.of(1, 2, 3) })],
    },
    {
      name: 'one with an RSA key',
      scts: [sct({ log: second, algorithm: [4, 1] })],
      logs: [logOf(second)],
    },
    {
      name: 'one with a P-384 key, which signs SHA-256 as well',
      scts: [sct({ log: P384 })],
      logs: [logOf(P384)],
    },
    {
      name: 'two of two',
      scts: [sct(), sct({ log: second, algorithm: [4, 1] })],
      logs: [logOf(log), logOf(second)],
      wanted: 2,
    },
    { name: 'one beside an unknown one', scts: [sct({ log: stranger }), sct()] },
    { name: 'one beside a version nobody knows', scts: [sct({ version: 1 }), sct()] },
    { name: 'one beside a forged one', scts: [sct({ issuer: stranger }), sct()] },
    {
      name: 'to the millisecond the log begins',
      scts: [sct()],
      logs: [logOf(log, { start: new Date(AT).toISOString() })],
    },
    {
      name: 'to the millisecond the log ends',
      scts: [sct()],
      logs: [logOf(log, { start: '2025-01-01T00:00:00Z', end: new Date(AT).toISOString() })],
    },
    { name: 'none where none is asked for', logs: [], wanted: 0 },
    {
      name: 'none where none is asked for, with a list that is none',
      sctValue: der.octets(Uint8Array.of(9)),
      wanted: 0,
    },
  ])('$name', async (setup) => {
    expect(await judge(setup)).toMatchObject({ status: 'verified' })
  })
})

describe('a certificate that too few logs have seen', () => {
  test.each<{ name: string; verdict: Json } & Setup>([
    { name: 'none', verdict: few(0, 1) },
    { name: 'an unknown one', scts: [sct({ log: stranger })], verdict: few(0, 1) },
    {
      name: 'one twice, in place of two',
      scts: [sct(), sct({ time: AT - 1 })],
      logs: [logOf(log), logOf(second)],
      wanted: 2,
      verdict: few(1, 2),
    },
    {
      name: 'one whose key signed for another authority',
      scts: [sct({ issuer: stranger })],
      verdict: few(0, 1, INVALID),
    },
    {
      name: 'one whose name another key uses',
      scts: [sct({ log: stranger, logId: digestOf(spkiOf(log)) })],
      verdict: few(0, 1, INVALID),
    },
    {
      name: 'one that signed another hash',
      scts: [sct({ log: P384, hash: 'sha384' })],
      logs: [logOf(P384)],
      verdict: few(0, 1, INVALID),
    },
    {
      name: 'one with an algorithm nobody knows',
      scts: [sct({ algorithm: [2, 3] })],
      verdict: few(0, 1),
    },
    { name: 'one of a version nobody knows', scts: [sct({ version: 1 })], verdict: few(0, 1) },
    {
      name: 'one a millisecond before its log begins',
      scts: [sct()],
      logs: [logOf(log, { start: new Date(AT + 1).toISOString() })],
      verdict: few(0, 1, UNTIMELY),
    },
    {
      name: 'one a millisecond after its log ended',
      scts: [sct()],
      logs: [logOf(log, { start: '2025-01-01T00:00:00Z', end: new Date(AT - 1).toISOString() })],
      verdict: few(0, 1, UNTIMELY),
    },
    {
      name: 'one with bytes behind its signature',
      scts: [sct({ tail: Uint8Array.of(0) })],
      verdict: refused('a certificate timestamp has bytes behind it'),
    },
    {
      name: 'a list that ends early',
      sctValue: der.octets(Uint8Array.of(0, 9, 0, 7, 0)),
      verdict: refused('a certificate timestamp is cut off'),
    },
    {
      name: 'a list with bytes behind it',
      sctValue: der.octets(Uint8Array.of(0, 0, 0)),
      verdict: refused('a certificate timestamp has bytes behind it'),
    },
    {
      name: 'no list at all',
      sctValue: der.octets(new Uint8Array()),
      verdict: refused('a certificate timestamp is cut off'),
    },
    {
      name: 'more than anybody has',
      scts: Array.from({ length: 33 }, () => sct({ version: 1 })),
      verdict: refused('too many certificate timestamps'),
    },
  ])('$name', async ({ verdict, ...setup }) => {
    expect(await judge(setup)).toEqual(verdict)
  })
})

test('whatever the list holds, the answer is a no', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      const { status } = await judge({ sctValue: der.octets(bytes) })
      return status === 'rejected'
    }),
    { numRuns: 40 },
  )
})
