import { constants, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  digestOf,
  newPair,
  type Pair,
  pairOf,
  signWith,
  spkiOf,
} from '#functions/local/sigstore/keys.ts'
import { type Bytes, concat, fromBase64, toBase64, toHex, utf8 } from '#shared/bytes.ts'
import type { LayerEvidence, SignedContent } from '#shared/signature/content.ts'
import { IN_TOTO, preAuthenticationEncoding } from '#shared/signature/dsse.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { checkSigstore } from '#shared/signature/sigstore/check.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { createTrust } from '#shared/signature/sigstore/trust.ts'
import type { BundleVerdict, SigstoreSigner } from '#shared/signature/sigstore/types.ts'
import type { SigstoreTrust } from '#shared/signature/types.ts'
import { mintIntermediate, mintRoot, pemOf } from '#test/fakes/pki.ts'
import {
  type BundleOptions,
  type Json,
  type LeafOptions,
  SIGNED_AT,
  SigstoreWorld,
  SUBJECT,
} from '#test/fakes/sigstore.ts'
import { AT, IDENTITY, refused } from './setup.ts'

const world = new SigstoreWorld()
const ROOT: SigstoreTrust = { root: JSON.stringify(world.trustedRoot()) }
const LATER = AT + 1e12
const P256 = newPair()

/** A `.sig` layer's payload, or an `.att` layer's statement. */
const PAYLOAD = utf8('{"critical":{},"optional":null}')
const STATEMENT = utf8('{"_type":"https://in-toto.io/Statement/v0.1","predicate":{}}')

interface Setup {
  /** Of what kind the layer is. */
  att?: boolean
  signer?: Pair
  hash?: 'sha256' | 'sha384' | 'sha512'
  pss?: boolean
  leaf?: LeafOptions
  /** No certificate: by a plain key. */
  plainKey?: boolean
  kind?: string
  changeBody?: BundleOptions['changeBody']
  integratedTime?: number
  rekor?: 'v1' | 'unknown' | 'none'
  /** Seconds. */
  timestamp?: number
  stamped?: Uint8Array
  /** Changes the annotations afterwards. */
  change?: (layer: Mutable) => void
  /** Changes the log's promise afterwards. */
  changePromise?: (promise: Json) => void
  trust?: SigstoreTrust
  by?: (signer: Pair) => Promise<SigstoreSigner>
  now?: number
}

type Mutable = { -readonly [K in keyof LayerEvidence]: LayerEvidence[K] }

const byIdentity = async (): Promise<SigstoreSigner> => ({
  identity: await createIdentityMatcher([IDENTITY]),
})
const byKey = async (pair: Pair): Promise<SigstoreSigner> => {
  const spki = spkiOf(pair) as Bytes
  return { key: await importVerifyingKey(spki), spki }
}

function contentOf(setup: Setup): SignedContent {
  const { att = false, signer = newPair(), hash = 'sha256', rekor = 'v1' } = setup
  const message = att ? preAuthenticationEncoding(IN_TOTO, STATEMENT) : PAYLOAD
  const signature = setup.pss ? signPss(message, signer) : signWith(message, signer, hash)
  const leaf = setup.plainKey ? undefined : world.leaf(signer, setup.leaf)
  const stamped = att
    ? utf8(JSON.stringify({ payload: toBase64(STATEMENT), sig: toBase64(signature) }))
    : signature
  const layer: Mutable = { stamped: stamped as Bytes }
  if (leaf !== undefined) layer.certificate = pemOf({ der: leaf as Bytes })
  if (rekor !== 'none') {
    const about = { signature, leaf, signer, payload: att ? STATEMENT : message, message, hash }
    const kind = setup.kind ?? (att ? 'dsse 0.0.1' : 'hashedrekord 0.0.1')
    const { changeBody, integratedTime } = setup
    const entry = world.entry(about, {
      rekor,
      kind,
      ...(changeBody && { changeBody }),
      ...(integratedTime && { integratedTime }),
    }) as Json
    const promise = promiseOf(entry)
    setup.changePromise?.(promise)
    layer.bundle = JSON.stringify(promise)
  }
  if (setup.timestamp !== undefined) {
    const response = world.timestamp(setup.stamped ?? stamped, setup.timestamp)
    layer.timestamp = JSON.stringify({ SignedRFC3161Timestamp: toBase64(response) })
  }
  setup.change?.(layer)
  return {
    message: message as Bytes,
    signature: signature as Bytes,
    layer,
    ...(att && { statement: STATEMENT as Bytes }),
  }
}

async function judge(setup: Setup): Promise<BundleVerdict> {
  const { signer = newPair(), by = setup.plainKey ? byKey : byIdentity } = setup
  const content = contentOf({ ...setup, signer })
  return checkSigstore(
    content,
    await by(signer),
    await createTrust(setup.trust ?? ROOT),
    setup.now ?? LATER,
  )
}

/** The form cosign keeps a promise in. */
function promiseOf(entry: Json): Json {
  return {
    SignedEntryTimestamp: entry.inclusionPromise.signedEntryTimestamp,
    Payload: {
      body: entry.canonicalizedBody,
      integratedTime: Number(entry.integratedTime),
      logIndex: Number(entry.logIndex),
      logID: toHex(fromBase64(entry.logId.keyId) as Bytes),
    },
  }
}

const signPss = (message: Uint8Array, { privateKey }: Pair) =>
  new Uint8Array(
    sign('sha256', message, {
      key: privateKey,
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: 32,
    }),
  )
const GITHUB: SigstoreTrust = {
  root: JSON.stringify({ ...world.trustedRoot(), tlogs: [], ctlogs: [] }),
}
const IGNORING: SigstoreTrust = { ...ROOT, ignoreTlog: true }
const RSA = pairOf('RSA')

describe('a layer holds', () => {
  test.each<{ name: string } & Setup>([
    { name: 'a signature by an identity' },
    { name: 'a signature by an identity with a timestamp as well', timestamp: SIGNED_AT + 1 },
    {
      name: 'a signature by an identity with a timestamp alone',
      rekor: 'none',
      timestamp: SIGNED_AT,
      trust: GITHUB,
      leaf: { sct: 'none' },
    },
    {
      name: 'a signature by an identity, logs ignored, with a timestamp',
      timestamp: SIGNED_AT,
      trust: IGNORING,
      change: (layer) => {
        layer.bundle = 'no JSON'
      },
    },
    {
      name: 'a signature by an identity, logs ignored, while the certificate is valid',
      trust: IGNORING,
      now: AT,
    },
    { name: 'a signature by a key in the log', plainKey: true },
    {
      name: 'a signature by a key in the log, whatever certificate is beside it',
      plainKey: true,
      change: (layer) => {
        layer.certificate = 'no PEM'
        layer.chain = 'no PEM'
      },
    },
    { name: 'an attestation in an entry of the kind dsse', att: true },
    {
      name: 'an attestation in an entry of the kind intoto 0.0.1',
      att: true,
      kind: 'intoto 0.0.1',
    },
    {
      name: 'an attestation in an entry of the kind intoto 0.0.2',
      att: true,
      kind: 'intoto 0.0.2',
    },
    { name: 'an attestation with a timestamp over its envelope', att: true, timestamp: SIGNED_AT },
    {
      name: 'an attestation with a timestamp alone',
      att: true,
      rekor: 'none',
      timestamp: SIGNED_AT,
      trust: GITHUB,
      leaf: { sct: 'none' },
    },
    { name: 'an attestation by a key in the log', att: true, plainKey: true },
    { name: 'a P-384 signature over SHA-256', signer: newPair('P-384') },
    { name: 'a P-384 signature over SHA-384', signer: newPair('P-384'), hash: 'sha384' },
    { name: 'a P-521 signature over SHA-512', signer: newPair('P-521'), hash: 'sha512' },
    { name: 'an RSA signature', signer: RSA },
    { name: 'an Ed25519 signature', signer: pairOf('Ed25519') },
    { name: 'an Ed25519 attestation', att: true, signer: pairOf('Ed25519') },
    {
      name: 'an RSA signature with PSS by a key for that',
      plainKey: true,
      pss: true,
      signer: RSA,
      by: async (pair) => ({
        key: await importVerifyingKey(spkiOf(pair) as Bytes, 'RSASSA_PSS'),
        spki: spkiOf(pair) as Bytes,
      }),
    },
    {
      name: 'a signature whose chain has the root, which cosign writes',
      change: (layer) => {
        layer.chain = pemOf({ der: world.caCertificate as Bytes })
      },
    },
    {
      name: 'a signature with foreign certificates in its chain',
      change: (layer) => {
        layer.chain = pemOf(mintIntermediate(mintRoot()))
      },
    },
  ])('$name', async (setup) => {
    expect(await judge(setup)).toMatchObject({ status: 'verified' })
  })

  test('whose statement is given back', async () => {
    expect(await judge({ att: true })).toMatchObject({
      signer: `${SUBJECT} (${IDENTITY.issuer})`,
      statement: STATEMENT,
      times: [AT],
    })
  })
})

describe('a layer does not hold', () => {
  const noTime = (why = '') => `times by 0 trusted witnesses, expected 1${why}`
  const bare = `-----BEGIN PUBLIC KEY-----\n${toBase64(spkiOf(P256))}\n-----END PUBLIC KEY-----\n`
  test.each<{ name: string; reason: string } & Setup>([
    {
      name: 'a certificate',
      change: (layer) => delete layer.certificate,
      reason: 'signature comes without a certificate, expected one of the signer',
    },
    {
      name: 'a certificate in the place of a bare key',
      signer: P256,
      change: (layer) => {
        layer.certificate = bare
      },
      reason: 'certificates: found a PEM block that is not a certificate',
    },
    {
      name: 'one certificate',
      change: (layer) => {
        layer.certificate = `${layer.certificate}${layer.certificate}`
      },
      reason: 'certificate annotation holds several certificates',
    },
    {
      name: 'PEM',
      change: (layer) => {
        layer.certificate = 'x'
      },
      reason: 'certificate annotation holds no certificate',
    },
    {
      name: 'a chain in its place',
      change: (layer) => {
        layer.chain = bare
      },
      reason: 'certificates: found a PEM block that is not a certificate',
    },
    {
      name: 'a chain that ends',
      change: (layer) => {
        layer.chain = pemOf(mintRoot()).repeat(11)
      },
      reason: 'chain of 11 certificates, at most 10',
    },
    {
      name: 'the identity that is asked for',
      leaf: { names: { uri: ['https://evil.test'] } },
      reason: `signed by ["https://evil.test"] of "${IDENTITY.issuer}", expected another identity`,
    },
    {
      name: 'a signature by its certificate',
      change: (layer) => {
        layer.certificate = pemOf({ der: world.leaf(newPair()) as Bytes })
      },
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'a signature with PKCS#1 where the certificate is of RSA',
      signer: RSA,
      pss: true,
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'an entry',
      rekor: 'none',
      timestamp: SIGNED_AT,
      reason: 'entries of 0 known transparency logs, expected 1',
    },
    {
      name: 'an entry of a known log',
      rekor: 'unknown',
      timestamp: SIGNED_AT,
      reason: 'entries of 0 known transparency logs, expected 1; those it has are of others',
    },
    {
      name: 'an entry for a key',
      plainKey: true,
      rekor: 'none',
      reason: 'entries of 0 known transparency logs, expected 1',
    },
    {
      name: 'JSON for a promise',
      change: (layer) => {
        layer.bundle = '{}'
      },
      reason: 'log id is not 64 hex digits',
    },
    {
      name: 'a promise',
      changePromise: (promise) => delete promise.SignedEntryTimestamp,
      reason: 'inclusion promise is missing',
    },
    {
      name: 'the promised time',
      changePromise: (promise) => {
        promise.Payload.integratedTime++
      },
      reason: 'inclusion promise does not verify',
    },
    {
      name: 'the promised index',
      changePromise: (promise) => {
        promise.Payload.logIndex++
      },
      reason: 'inclusion promise does not verify',
    },
    {
      name: 'the promised body',
      changePromise: (promise) => {
        promise.Payload.body = toBase64(
          concat(fromBase64(promise.Payload.body) as Bytes, utf8(' ')),
        )
      },
      reason: 'inclusion promise does not verify',
    },
    {
      name: 'a log id in lower case',
      changePromise: (promise) => {
        promise.Payload.logID = promise.Payload.logID.toUpperCase()
      },
      reason: 'log id is not 64 hex digits',
    },
    {
      name: 'a body that is base64',
      changePromise: (promise) => {
        promise.Payload.body = ` ${promise.Payload.body}`
      },
      reason: 'log entry body is not strict base64 of 1 to 2097152 bytes',
    },
    {
      name: 'a body of some kind',
      changePromise: (promise) => {
        promise.Payload.body = toBase64(utf8('{}'))
      },
      reason: 'log entry without a kind',
    },
    {
      name: 'an entry of a kind that is known',
      kind: 'rekord 0.0.1',
      reason: 'log entry is of the unknown kind "rekord 0.0.1"',
    },
    {
      name: 'an entry about its signature',
      changeBody: (body: Json) => {
        body.spec.signature.content = toBase64(signWith(PAYLOAD, P256))
      },
      reason: 'log entry is about another signature',
    },
    {
      name: 'an entry about its payload',
      changeBody: (body: Json) => {
        body.spec.data.hash.value = toHex(digestOf(utf8('x')))
      },
      reason: 'log entry is about other content',
    },
    {
      name: 'an entry about its key',
      plainKey: true,
      changeBody: (body: Json) => {
        body.spec.signature.publicKey.content = btoa(bare)
      },
      reason: 'log entry is about another key',
    },
    {
      name: 'an entry with a certificate for a key',
      plainKey: true,
      signer: P256,
      changeBody: (body: Json) => {
        body.spec.signature.publicKey.content = btoa(pemOf({ der: world.leaf(P256) as Bytes }))
      },
      reason: 'log entry is about another key',
    },
    {
      name: 'an attestation in an entry about its payload',
      att: true,
      changeBody: (body: Json) => {
        body.spec.payloadHash.value = toHex(digestOf(PAYLOAD))
      },
      reason: 'log entry is about other content',
    },
    {
      name: 'a payload in an entry of an attestation',
      kind: 'intoto 0.0.1',
      reason: 'log entry of the kind "intoto" does not fit',
    },
    {
      name: 'an entry from before its log',
      integratedTime: SIGNED_AT - 400_000_000,
      reason: 'log key was not valid at the integrated time',
    },
    {
      name: 'a certificate that was valid at the promised time',
      integratedTime: SIGNED_AT + 301,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'a certificate that was valid at both times',
      timestamp: SIGNED_AT + 301,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'a certificate that is valid now, logs ignored',
      trust: IGNORING,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'an attestation with a timestamp over its envelope, but over its signature',
      att: true,
      rekor: 'none',
      timestamp: SIGNED_AT,
      stamped: utf8('x'),
      trust: GITHUB,
      leaf: { sct: 'none' },
      reason: noTime(' (timestamp: it is about other bytes)'),
    },
    {
      name: 'a timestamp in its annotation',
      rekor: 'none',
      change: (layer) => {
        layer.timestamp = '{}'
      },
      trust: GITHUB,
      reason: 'timestamp is not strict base64 of 1 to 65536 bytes',
    },
    {
      name: 'JSON in its annotation',
      change: (layer) => {
        layer.timestamp = '{'
      },
      reason: 'JSON is not valid at offset 1 (line 1, column 2): expected a key, found the end',
    },
    { name: 'a time', rekor: 'none', trust: GITHUB, reason: noTime() },
  ])('$name', async ({ name: _, reason, ...setup }) => {
    expect(await judge(setup)).toEqual(refused(reason))
  })

  test('anything at all: that is nobody’s to publish', async () => {
    const content = { message: PAYLOAD as Bytes, signature: PAYLOAD as Bytes }
    const verdict = await checkSigstore(content, await byIdentity(), await createTrust(ROOT), AT)
    expect(verdict).toMatchObject({ status: 'inconclusive', error: { code: 'INTERNAL' } })
  })

  test('whatever its annotations are', async () => {
    const trust = await createTrust(ROOT)
    const signer = await byIdentity()
    const { layer, ...content } = contentOf({ timestamp: SIGNED_AT })
    const members = ['certificate', 'chain', 'bundle', 'timestamp'] as const
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...members),
        fc.nat(),
        fc.string({ maxLength: 3 }),
        async (member, at, text) => {
          const whole = layer?.[member] ?? ''
          const cut = at % (whole.length + 1)
          const changed = {
            ...layer,
            stamped: content.signature,
            [member]: whole.slice(0, cut) + text + whole.slice(cut + 1),
          }
          const { status } = await checkSigstore({ ...content, layer: changed }, signer, trust, AT)
          return status !== 'inconclusive'
        },
      ),
      { numRuns: 150 },
    )
  })
})
