import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as der from '#functions/local/der.ts'
import { type Bytes, fromBase64, sha256, toBase64, toHex, utf8 } from '#shared/bytes.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import type {
  Artifact,
  BundleVerdict,
  Identity,
  SigstoreSigner,
  Thresholds,
} from '#shared/signature/sigstore/types.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import {
  ARTIFACT,
  type BundleOptions,
  ISSUER,
  type Json,
  pairOf,
  SIGNED_AT,
  SigstoreWorld,
  SUBJECT,
} from '#test/fakes/sigstore.ts'

const world = new SigstoreWorld()
const DAY = 86_400
const YEARS_LATER = (SIGNED_AT + 1000 * DAY) * 1000

interface Setup {
  bundle?: BundleOptions
  /** Changes the document afterwards. */
  change?: (bundle: Json) => void
  changeRoot?: (root: Json) => void
  thresholds?: Partial<Thresholds>
  identities?: Identity[]
  key?: Bytes
  artifact?: Artifact
  now?: number
}

async function judge(setup: Setup): Promise<BundleVerdict> {
  const bundle = world.bundle(setup.bundle)
  setup.change?.(bundle)
  const document = world.trustedRoot()
  setup.changeRoot?.(document)
  const trust = await loadTrustedRoot(utf8(JSON.stringify(document)), setup.thresholds)
  const signer: SigstoreSigner =
    setup.key === undefined
      ? {
          identity: await createIdentityMatcher(
            setup.identities ?? [{ issuer: ISSUER, subject: SUBJECT }],
          ),
        }
      : { key: await importVerifyingKey(setup.key), spki: setup.key }
  return verifyBundle(utf8(JSON.stringify(bundle)), {
    artifact: setup.artifact ?? { bytes: ARTIFACT as Bytes },
    trust,
    signer,
    now: setup.now ?? YEARS_LATER,
  })
}

const spkiOf = (pair: ReturnType<typeof pairOf>) =>
  new Uint8Array(pair.publicKey.export({ type: 'spki', format: 'der' }))
const ARTIFACT_SHA256 = toHex(await sha256(ARTIFACT))
const P256 = pairOf('P-256')
const entryOf = (bundle: Json) => bundle.verificationMaterial.tlogEntries[0]
const DSSE = { content: 'dsse' } as const
const GITHUB = { tlogs: [], ctlogs: [] }
const V1 = 'application/vnd.dev.sigstore.bundle+json;version=0.1'
const V2 = 'application/vnd.dev.sigstore.bundle+json;version=0.2'
const asChain = (bundle: Json, ...more: Uint8Array[]) => {
  const { certificate, ...rest } = bundle.verificationMaterial
  const certificates = [certificate, ...more.map((each) => ({ rawBytes: toBase64(each) }))]
  bundle.verificationMaterial = { ...rest, x509CertificateChain: { certificates } }
}

/** A bit of the base64 text flipped in its middle. */
function flipped(text: string): string {
  const bytes = fromBase64(text) as Uint8Array
  const at = bytes.length >> 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  return toBase64(bytes)
}

describe('bundles that hold', () => {
  const rows: ({ name: string } & Setup)[] = [
    { name: 'a message signature in Rekor v1' },
    { name: 'a DSSE envelope in Rekor v1', bundle: DSSE },
    { name: 'a message signature in Rekor v2', bundle: { rekor: 'v2' } },
    { name: 'a DSSE envelope in Rekor v2, logged over its PAE', bundle: { ...DSSE, rekor: 'v2' } },
    { name: 'a DSSE entry of Rekor v2', bundle: { ...DSSE, rekor: 'v2', kind: 'dsse 0.0.2' } },
    { name: 'an intoto entry of 0.0.1', bundle: { ...DSSE, kind: 'intoto 0.0.1' } },
    { name: 'an intoto entry of 0.0.2', bundle: { ...DSSE, kind: 'intoto 0.0.2' } },
    {
      name: 'version 0.1 with a promise only and a chain',
      bundle: { mediaType: V1, proof: false },
      change: (bundle) => asChain(bundle),
    },
    { name: 'version 0.2', bundle: { mediaType: V2 }, change: (bundle) => asChain(bundle) },
    {
      name: 'a proof without a promise, seen by a timestamp authority',
      bundle: { promise: false, timestamps: [SIGNED_AT] },
    },
    { name: 'a promise and a timestamp', bundle: { timestamps: [SIGNED_AT + 1] } },
    {
      name: 'a root without logs and a timestamp',
      bundle: { rekor: 'none', leaf: { sct: 'none' } },
      changeRoot: (root) => Object.assign(root, GITHUB),
    },
    {
      name: 'an entry of an unknown log beside one of a known log',
      change: (bundle) =>
        bundle.verificationMaterial.tlogEntries.unshift(
          entryOf(world.bundle({ rekor: 'unknown' })),
        ),
    },
    { name: 'a certificate to the second it begins', bundle: { leaf: { from: SIGNED_AT } } },
    { name: 'a certificate to the second it ends', bundle: { leaf: { until: SIGNED_AT } } },
    {
      name: 'P-384 with SHA-384',
      bundle: { signer: pairOf('P-384'), hash: 'sha384' },
    },
    {
      name: 'P-384 with SHA-384 in a DSSE envelope in Rekor v2',
      bundle: { ...DSSE, rekor: 'v2', signer: pairOf('P-384'), hash: 'sha384' },
    },
    { name: 'P-521 with SHA-512', bundle: { signer: pairOf('P-521'), hash: 'sha512' } },
    { name: 'P-384 with SHA-256', bundle: { signer: pairOf('P-384') } },
    { name: 'RSA with SHA-256', bundle: { signer: pairOf('RSA') } },
    { name: 'RSA with SHA-512', bundle: { signer: pairOf('RSA'), hash: 'sha512' } },
    { name: 'an Ed25519 message signature', bundle: { signer: pairOf('Ed25519') } },
    { name: 'an Ed25519 envelope', bundle: { ...DSSE, signer: pairOf('Ed25519') } },
    {
      name: 'a plain key',
      bundle: { plainKey: true, signer: P256 },
      key: spkiOf(P256),
    },
    {
      name: 'a plain key in Rekor v2 without a timestamp',
      bundle: { plainKey: true, signer: P256, rekor: 'v2', timestamps: [] },
      key: spkiOf(P256),
    },
    {
      name: 'a certificate without any witness while it is valid, when the root asks for none',
      bundle: { rekor: 'none', timestamps: [], leaf: { sct: 'none', until: SIGNED_AT + DAY } },
      thresholds: { logs: 0, times: 0, certificateLogs: 0 },
      now: (SIGNED_AT + 3600) * 1000,
    },
    {
      name: 'witnesses after the log signature',
      bundle: { rekor: 'v2', signatures: (lines) => `${lines}— witness.example.com AAAAAAAA\n` },
    },
    {
      name: 'witnesses before the log signature',
      bundle: { rekor: 'v2', signatures: (lines) => `— witness.example.com AAAAAAAA\n${lines}` },
    },
    {
      name: 'members that are null, which is absent',
      change: (bundle) => {
        Object.assign(bundle, { dsseEnvelope: null })
        Object.assign(bundle.verificationMaterial, { publicKey: null, x509CertificateChain: null })
      },
    },
    {
      name: 'an identity by its second name',
      bundle: { leaf: { names: { email: ['a@example.com'], uri: [SUBJECT] } } },
    },
    {
      name: 'an identity by its other name',
      bundle: { leaf: { names: { other: ['somebody!example.com'] } } },
      identities: [{ issuer: ISSUER, subject: 'somebody!example.com' }],
    },
    { name: 'the older issuer extension', bundle: { leaf: { issuer: null, issuerV1: ISSUER } } },
    { name: 'both issuer extensions', bundle: { leaf: { issuerV1: ISSUER } } },
    {
      name: 'a RegExp anywhere in the text, as Go matches',
      identities: [{ issuerRegExp: 'issuer\\.example', subjectRegExp: 'shop/api' }],
    },
    {
      name: 'the second of two identities',
      identities: [
        { issuer: ISSUER, subject: 'x' },
        { issuer: ISSUER, subject: SUBJECT },
      ],
    },
  ]
  test.each(rows)('$name', async (setup) => {
    expect(await judge(setup)).toMatchObject({ status: 'verified' })
  })

  test('say who signed, what and when', async () => {
    const verdict = await judge({ bundle: DSSE })
    expect(verdict).toMatchObject({
      status: 'verified',
      signer: `${SUBJECT} (${ISSUER})`,
      times: [SIGNED_AT * 1000],
    })
    const { statement = new Uint8Array() } = verdict as { statement?: Uint8Array }
    expect(JSON.parse(new TextDecoder().decode(statement)).predicateType).toBe(
      'https://example.com/predicate',
    )
  })
})

describe('bundles that do not', () => {
  const rows: ({ name: string; reason: string } & Setup)[] = [
    // the content
    {
      name: 'another artifact',
      artifact: { bytes: utf8('another') },
      reason: 'bundle is about another artifact',
    },
    {
      name: 'another artifact in a statement',
      bundle: DSSE,
      artifact: { bytes: utf8('another') },
      reason: 'statement is about another artifact',
    },
    {
      name: 'a subject with one right and one wrong digest',
      bundle: {
        ...DSSE,
        subjectDigest: { sha256: ARTIFACT_SHA256, sha512: '00'.repeat(64) },
      },
      reason: 'statement is about another artifact',
    },
    {
      name: 'a signature by another key',
      change: (bundle) => {
        bundle.messageSignature.signature = world.bundle().messageSignature.signature
      },
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'a payload that was changed',
      bundle: DSSE,
      change: (bundle) => {
        bundle.dsseEnvelope.payload = flipped(bundle.dsseEnvelope.payload)
      },
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'two DSSE signatures',
      bundle: DSSE,
      change: (bundle) => bundle.dsseEnvelope.signatures.push(bundle.dsseEnvelope.signatures[0]),
      reason: 'DSSE envelope has 2 signatures, expected one',
    },
    {
      name: 'base64 with something in it that decoders skip',
      change: (bundle) => {
        bundle.messageSignature.signature = `\n${bundle.messageSignature.signature}`
      },
      reason: 'message signature is not base64 of at most 2048 bytes',
    },
    {
      name: 'a hash algorithm of no use',
      change: (bundle) => {
        bundle.messageSignature.messageDigest.algorithm = 'SHA3_256'
      },
      reason: 'message digest has the algorithm "SHA3_256", expected SHA2_256, _384 or _512',
    },
    {
      name: 'both kinds of content',
      change: (bundle) => {
        bundle.dsseEnvelope = world.bundle(DSSE).dsseEnvelope
      },
      reason: 'bundle holds neither or both of a message signature and a DSSE envelope',
    },
    // the form
    {
      name: 'another media type',
      bundle: { mediaType: 'application/vnd.dev.sigstore.bundle.v0.9+json' },
      reason: 'bundle has the media type "application/vnd.dev.sigstore.bundle.v0.9+json"',
    },
    {
      name: 'a chain in version 0.3',
      change: (bundle) => asChain(bundle),
      reason: 'bundle of version 0.3 with a certificate chain',
    },
    {
      name: 'a root of its own',
      bundle: { mediaType: V2 },
      change: (bundle) => asChain(bundle, world.caCertificate),
      reason: 'bundle brings a root certificate',
    },
    {
      name: 'one entry twice',
      change: (bundle) => bundle.verificationMaterial.tlogEntries.push(entryOf(bundle)),
      reason: 'bundle holds one log entry twice',
    },
    {
      name: 'one timestamp twice',
      bundle: { timestamps: [SIGNED_AT] },
      change: (bundle) => {
        const stamps = bundle.verificationMaterial.timestampVerificationData.rfc3161Timestamps
        stamps.push(stamps[0])
      },
      reason: 'bundle holds one timestamp twice',
    },
    {
      name: 'more entries than anybody needs',
      change: (bundle) => {
        bundle.verificationMaterial.tlogEntries = Array(33).fill(entryOf(bundle))
      },
      reason: 'log entries are not a list of at most 32',
    },
    {
      name: 'a negative log index',
      change: (bundle) => {
        entryOf(bundle).logIndex = '-1'
      },
      reason: 'log index is not a number from 0 to 9007199254740991',
    },
    {
      name: 'version 0.1 without a promise',
      bundle: { mediaType: V1, promise: false },
      reason: 'log entry without an inclusion promise',
    },
    {
      name: 'version 0.3 without a proof',
      bundle: { proof: false },
      reason: 'log entry without an inclusion proof',
    },
    // transparency logs
    {
      name: 'no entry although the root names logs',
      bundle: { rekor: 'none' },
      reason: 'entries of 0 known transparency logs, expected 1',
    },
    {
      name: 'only an entry of an unknown log',
      bundle: { rekor: 'unknown', timestamps: [SIGNED_AT] },
      reason: 'entries of 0 known transparency logs, expected 1; those it has are of others',
    },
    {
      name: 'fewer logs than the root asks for',
      thresholds: { logs: 2 },
      reason: 'entries of 1 known transparency logs, expected 2',
    },
    {
      name: 'two entries of one log where two logs are asked for',
      thresholds: { logs: 2 },
      change: (bundle) => {
        const { inclusionPromise: _, ...second } = entryOf(bundle)
        bundle.verificationMaterial.tlogEntries.push({ ...second, logIndex: '42' })
      },
      reason: 'entries of 1 known transparency logs, expected 2',
    },
    {
      name: 'another integrated time than the promised one',
      change: (bundle) => {
        entryOf(bundle).integratedTime = String(SIGNED_AT + 1)
      },
      reason: 'inclusion promise does not verify',
    },
    {
      name: 'a promise from before the log key',
      bundle: { integratedTime: SIGNED_AT - 100 * DAY },
      reason: 'log key was not valid at the integrated time',
    },
    {
      name: 'a hash of the proof changed',
      change: (bundle) => {
        const { hashes } = entryOf(bundle).inclusionProof
        hashes[0] = flipped(hashes[0])
      },
      reason: 'inclusion proof does not lead to the checkpoint',
    },
    {
      name: 'a proof with a hash more',
      change: (bundle) => {
        const { hashes } = entryOf(bundle).inclusionProof
        hashes.push(hashes[0])
      },
      reason: 'inclusion proof does not fit the size of the log',
    },
    {
      name: 'a proof of an index beyond the log',
      change: (bundle) => {
        entryOf(bundle).inclusionProof.logIndex = '3'
      },
      reason: 'inclusion proof does not fit the size of the log',
    },
    {
      name: 'a checkpoint whose signature was changed',
      change: (bundle) => {
        const { checkpoint } = entryOf(bundle).inclusionProof
        checkpoint.envelope = checkpoint.envelope.replace(
          /(\S+)\n$/,
          (_: string, text: string) => `${flipped(text)}\n`,
        )
      },
      reason: 'checkpoint is not signed by the log of the entry',
    },
    {
      name: 'a checkpoint that only others signed',
      bundle: { signatures: () => '— witness.example.com AAAAAAAA\n' },
      reason: 'checkpoint is not signed by the log of the entry',
    },
    {
      name: 'a checkpoint with a false signature of the log before the right one',
      change: (bundle) => {
        const { checkpoint } = entryOf(bundle).inclusionProof
        checkpoint.envelope = checkpoint.envelope.replace(
          /(— \S+ \S{8})(\S+\n)/,
          (line: string, begin: string) => `${begin}MAYCAQECAQE=\n${line}`,
        )
      },
      reason: 'checkpoint is not signed by the log of the entry',
    },
    {
      name: 'a checkpoint signature whose name is an expression',
      bundle: { signatures: (lines) => lines.replace('rekor.example.com', '.*') },
      reason: 'checkpoint is not signed by the log of the entry',
    },
    {
      name: 'a checkpoint of another log',
      bundle: { note: (note) => note.replace('rekor.example.com', 'rekor.example.org') },
      reason: 'checkpoint of another log',
    },
    {
      name: 'a checkpoint without a root hash',
      bundle: { note: (note) => `${note.split('\n').slice(0, 2).join('\n')}\n` },
      reason: 'checkpoint without size or root hash',
    },
    {
      name: 'an entry about another signature',
      bundle: {
        changeBody: (body) => {
          body.spec.signature.content = flipped(body.spec.signature.content)
        },
      },
      reason: 'log entry is about another signature',
    },
    {
      name: 'an entry about another key',
      bundle: {
        changeBody: (body) => {
          body.spec.signature.publicKey.content =
            bodyOfAnother('hashedrekord 0.0.1').spec.signature.publicKey.content
        },
      },
      reason: 'log entry is about another key',
    },
    {
      name: 'an entry of Rekor v2 about another key',
      bundle: {
        rekor: 'v2',
        changeBody: (body) => {
          body.spec.hashedRekordV002.signature.verifier = {
            x509Certificate: { rawBytes: toBase64(world.leaf(pairOf('P-256'))) },
          }
        },
      },
      reason: 'log entry is about another key',
    },
    {
      name: 'an intoto 0.0.1 entry about another key',
      bundle: {
        ...DSSE,
        kind: 'intoto 0.0.1',
        changeBody: (body) => {
          body.spec.publicKey = bodyOfAnother('intoto 0.0.1').spec.publicKey
        },
      },
      reason: 'log entry is about another key',
    },
    {
      name: 'an intoto 0.0.1 entry about another payload',
      bundle: {
        ...DSSE,
        kind: 'intoto 0.0.1',
        changeBody: (body) => {
          body.spec.content.payloadHash.value = '00'.repeat(32)
        },
      },
      reason: 'log entry is about other content',
    },
    {
      name: 'an entry about another digest',
      bundle: {
        changeBody: (body) => {
          body.spec.data.hash.value = '00'.repeat(32)
        },
      },
      reason: 'log entry is about other content',
    },
    {
      name: 'an entry of Rekor v2 over the payload instead of its PAE',
      bundle: {
        ...DSSE,
        rekor: 'v2',
        changeBody: (body) => {
          body.spec.hashedRekordV002.data.digest = toBase64(new Uint8Array(32))
        },
      },
      reason: 'log entry is about other content',
    },
    {
      name: 'a dsse entry with two signatures',
      bundle: {
        ...DSSE,
        changeBody: (body) => body.spec.signatures.push(body.spec.signatures[0]),
      },
      reason: 'log entry does not hold exactly one signature',
    },
    {
      name: 'an envelope entry about a message',
      bundle: {
        changeBody: (body) => {
          body.kind = 'rekord'
        },
      },
      reason: 'log entry is of another kind than its body',
    },
    {
      name: 'an entry of an unknown kind',
      bundle: { kind: 'rekord 0.0.1' },
      reason: 'log entry is of the unknown kind "rekord 0.0.1"',
    },
    {
      name: 'a dsse entry for a message signature',
      bundle: { kind: 'dsse 0.0.1' },
      reason: 'log entry of the kind "dsse" does not fit',
    },
    // times
    {
      name: 'Rekor v2 without a timestamp',
      bundle: { rekor: 'v2', timestamps: [] },
      reason: 'times by 0 trusted witnesses, expected 1',
    },
    {
      name: 'an integrated time that nobody promised',
      bundle: { promise: false },
      reason: 'times by 0 trusted witnesses, expected 1',
    },
    {
      name: 'a timestamp over another signature',
      bundle: { rekor: 'v2', stamped: utf8('other') },
      reason: 'times by 0 trusted witnesses, expected 1 (timestamp: it is about other bytes)',
    },
    {
      name: 'a timestamp by an authority nobody trusts',
      bundle: { rekor: 'v2' },
      changeRoot: (root) => {
        root.timestampAuthorities = new SigstoreWorld().trustedRoot().timestampAuthorities
      },
      reason:
        'times by 0 trusted witnesses, expected 1 (timestamp: its signature is not by the certificate of its signer)',
    },
    {
      name: 'a timestamp by an authority for web servers',
      bundle: { rekor: 'v2' },
      changeRoot: (root) => {
        setTsa(root, world.tsaCertificate(der.sequence(der.oid('1.3.6.1.5.5.7.3.1'))))
      },
      reason:
        'times by 0 trusted witnesses, expected 1 (timestamp: CN=Example TSA is not for timestamps only)',
    },
    {
      name: 'a timestamp by an authority that is not critically for timestamps',
      bundle: { rekor: 'v2' },
      changeRoot: (root) => {
        setTsa(root, world.tsaCertificate(der.sequence(der.oid('1.3.6.1.5.5.7.3.8')), false))
      },
      reason:
        'times by 0 trusted witnesses, expected 1 (timestamp: CN=Example TSA is not for timestamps only)',
    },
    {
      name: 'a timestamp from after the authority',
      bundle: { rekor: 'v2' },
      changeRoot: (root) => {
        root.timestampAuthorities[0].validFor.end = new Date((SIGNED_AT - 1) * 1000).toISOString()
      },
      reason:
        'times by 0 trusted witnesses, expected 1 (timestamp: its authority does not count at its time)',
    },
    {
      name: 'fewer witnesses of the time than the root asks for',
      thresholds: { times: 2 },
      reason: 'times by 1 trusted witnesses, expected 2',
    },
    {
      name: 'a log of Rekor v2 from after the signature',
      bundle: { rekor: 'v2' },
      changeRoot: (root) => {
        root.tlogs[1].publicKey.validFor.start = new Date((SIGNED_AT + 1) * 1000).toISOString()
      },
      reason: 'log key was not valid when the signature was made',
    },
    // certificates
    {
      name: 'a certificate that began later',
      bundle: { leaf: { from: SIGNED_AT + 1 } },
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'a certificate that had ended',
      bundle: { leaf: { until: SIGNED_AT - 1 } },
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'one of two times outside the certificate',
      bundle: { timestamps: [SIGNED_AT + 301] },
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'an expired certificate where nobody has to say when',
      bundle: { rekor: 'none', timestamps: [], leaf: { sct: 'none' } },
      thresholds: { logs: 0, times: 0, certificateLogs: 0 },
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'a certificate authority nobody trusts',
      changeRoot: (root) => {
        root.certificateAuthorities = new SigstoreWorld().trustedRoot().certificateAuthorities
      },
      reason: 'certificate is not trusted: no trusted authority issued it',
    },
    {
      name: 'a certificate authority that had not begun',
      changeRoot: (root) => {
        root.certificateAuthorities[0].validFor.start = new Date(
          (SIGNED_AT + 1) * 1000,
        ).toISOString()
      },
      reason: 'certificate is not trusted: its authority was not valid when the signature was made',
    },
    {
      name: 'a certificate no log has seen',
      bundle: { leaf: { sct: 'none' } },
      reason: 'certificate is not trusted: seen by 0 known certificate logs, expected 1',
    },
    {
      name: 'a certificate whose log signature is forged',
      bundle: { leaf: { sct: 'forged' } },
      reason:
        'certificate is not trusted: seen by 0 known certificate logs, expected 1: a signed certificate timestamp does not verify',
    },
    {
      name: 'a certificate for web servers',
      bundle: { leaf: { usages: ['serverAuth'] } },
      reason: 'certificate is not for code signing',
    },
    {
      name: 'a certificate for nothing in particular',
      bundle: { leaf: { usages: [] } },
      reason: 'certificate is not for code signing',
    },
    {
      name: 'a certificate that may not sign',
      bundle: { leaf: { keyUsage: 0x06 } },
      reason: 'certificate is not for digital signatures',
    },
    {
      name: 'a certificate of an authority',
      bundle: { leaf: { isCa: true } },
      reason: 'certificate is one of an authority, expected one of a signer',
    },
    {
      name: 'a root as signer',
      bundle: { leaf: { selfIssued: true } },
      reason: 'certificate is a root, expected one of a signer',
    },
    {
      name: 'a critical extension nobody knows',
      bundle: {
        leaf: {
          extra: [der.sequence(der.oid('1.2.3.4'), der.boolean(true), der.octets(utf8('x')))],
        },
      },
      reason: 'certificate has extension 1.2.3.4, not supported',
    },
    {
      name: 'an extension twice',
      bundle: {
        leaf: {
          extra: [der.sequence(der.oid('1.3.6.1.4.1.57264.1.8'), der.octets(der.utf8String('x')))],
        },
      },
      reason: 'extension 1.3.6.1.4.1.57264.1.8 occurs twice',
    },
    {
      name: 'two issuers that differ',
      bundle: { leaf: { issuerV1: 'https://elsewhere.example.com' } },
      reason: 'certificate names two issuers that differ',
    },
    {
      name: 'bytes that are no certificate',
      change: (bundle) => {
        bundle.verificationMaterial.certificate.rawBytes = 'AAAA'
      },
      reason: 'certificate is not strict DER',
    },
    // identities
    {
      name: 'no issuer',
      bundle: { leaf: { issuer: null } },
      reason: 'certificate names no issuer',
    },
    {
      name: 'another issuer',
      identities: [{ issuer: 'https://elsewhere.example.com', subject: SUBJECT }],
      reason: `signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'a subject that only begins with the name',
      identities: [{ issuer: ISSUER, subject: SUBJECT.slice(0, -1) }],
      reason: `signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'an exact subject read as an expression',
      identities: [{ issuer: ISSUER, subject: '.*' }],
      reason: `signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'an anchored RegExp of a part',
      identities: [{ issuer: ISSUER, subjectRegExp: '^shop/api$' }],
      reason: `signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'issuer of one identity and subject of another',
      identities: [
        { issuer: ISSUER, subject: 'x' },
        { issuer: 'y', subject: SUBJECT },
      ],
      reason: `signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'a certificate without a name',
      bundle: { leaf: { names: {} } },
      reason: `signed by [] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'a key where an identity is expected',
      bundle: { plainKey: true },
      reason: 'signature comes without a certificate, expected one of the signer',
    },
    // keys
    {
      name: 'another key than the configured one',
      bundle: { plainKey: true },
      key: spkiOf(P256),
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'a plain key that no log has seen',
      bundle: { plainKey: true, signer: P256, rekor: 'none' },
      key: spkiOf(P256),
      reason: 'entries of 0 known transparency logs, expected 1',
    },
  ]
  test.each(rows)('$name', async ({ name: _, reason, ...setup }) => {
    expect(await judge(setup)).toEqual({ status: 'rejected', reason })
  })
})

describe('what cannot be told', () => {
  test('a message signature of which only the digest is known', async () => {
    const value = (await sha256(ARTIFACT)) as Bytes
    const verdict = await judge({ artifact: { digest: { algorithm: 'sha256', value } } })
    expect(verdict).toMatchObject({ status: 'inconclusive', error: { code: 'INTERNAL' } })
  })

  test('a digest of another algorithm than the signed one', async () => {
    const value = (await sha256(ARTIFACT)) as Bytes
    const verdict = await judge({
      bundle: { signer: pairOf('P-384'), hash: 'sha384' },
      artifact: { digest: { algorithm: 'sha256', value }, verifyDigest: () => true },
    })
    expect(verdict).toMatchObject({ status: 'inconclusive', error: { code: 'INTERNAL' } })
  })

  test.each([
    {
      name: 'no log key beginning',
      change: (root: Json) => delete root.tlogs[0].publicKey.validFor.start,
    },
    {
      name: 'no certificate log key beginning',
      change: (root: Json) => delete root.ctlogs[0].publicKey.validFor,
    },
    {
      name: 'no beginning of an authority',
      change: (root: Json) => delete root.certificateAuthorities[0].validFor.start,
    },
    {
      name: 'a beginning of a timestamp authority that is no time',
      change: (root: Json) => Object.assign(root.timestampAuthorities[0].validFor, { start: 'x' }),
    },
    { name: 'another media type', change: (root: Json) => delete root.mediaType },
    {
      name: 'a log without a key',
      change: (root: Json) => delete root.tlogs[0].publicKey.rawBytes,
    },
    { name: 'logs that are no list', change: (root: Json) => Object.assign(root, { tlogs: {} }) },
    {
      name: 'an authority that is no certificate',
      change: (root: Json) =>
        Object.assign(root.certificateAuthorities[0].certChain.certificates[0], {
          rawBytes: 'AAAA',
        }),
    },
    {
      name: 'a timestamp authority that is no certificate',
      change: (root: Json) =>
        Object.assign(root.timestampAuthorities[0].certChain.certificates[0], { rawBytes: 'AAAA' }),
    },
  ])('a trusted root with $name', async ({ change }) => {
    await expect(judge({ changeRoot: change })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  test.each<{ name: string; identities: Identity[] }>([
    { name: 'no identity', identities: [] },
    { name: 'a subject alone', identities: [{ subject: SUBJECT }] },
    { name: 'an issuer alone', identities: [{ issuer: ISSUER }] },
    { name: 'an empty issuer', identities: [{ issuer: '', subject: SUBJECT }] },
    {
      name: 'both forms of one',
      identities: [{ issuer: ISSUER, issuerRegExp: 'x', subject: SUBJECT }],
    },
    { name: 'what is not RE2', identities: [{ issuer: ISSUER, subjectRegExp: '(?=a)' }] },
  ])('identities with $name', async ({ identities }) => {
    await expect(judge({ identities })).rejects.toMatchObject({ code: 'POLICY_INVALID' })
  })
})

test('a certificate beside a configured key means nothing', async () => {
  const verdict = await judge({ bundle: { signer: P256 }, key: spkiOf(P256) })
  // The entry holds the certificate, which is not the key.
  expect(verdict).toEqual({ status: 'rejected', reason: 'log entry is about another key' })
})

test('ASN.1 nested to the bound is a no', async () => {
  let nested: Uint8Array = new Uint8Array()
  while (nested.length < 30_000) nested = der.octets(nested)
  const extra = [der.sequence(der.oid('1.2.3.4'), der.octets(nested))]
  const verdict = await judge({
    bundle: { rekor: 'v2', timestamps: [], leaf: { extra } },
    change: (bundle) => {
      bundle.verificationMaterial.timestampVerificationData.rfc3161Timestamps = Array.from(
        { length: 32 },
        (_, i) => ({
          signedTimestamp: toBase64(der.sequence(nested, der.integer(Uint8Array.of(i)))),
        }),
      )
    },
  })
  expect(verdict).toMatchObject({ status: 'rejected' })
})

test('no bundle whatsoever throws, and none without its bytes verifies', async () => {
  const trust = await loadTrustedRoot(utf8(JSON.stringify(world.trustedRoot())))
  const identity = await createIdentityMatcher([{ issuer: ISSUER, subject: SUBJECT }])
  const whole = utf8(JSON.stringify(world.bundle()))
  const wanted = { artifact: { bytes: ARTIFACT as Bytes }, trust, signer: { identity }, now: 0 }
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
      const cut = await verifyBundle(whole.subarray(0, at), wanted)
      const changed = whole.slice()
      changed[at] = (changed[at] ?? 0) ^ by
      const { status } = await verifyBundle(changed, wanted)
      // White space and names of members that nobody reads may change without harm.
      return cut.status === 'rejected' && status !== 'inconclusive'
    }),
    { numRuns: 60 },
  )
})

function bodyOfAnother(kind: string): Json {
  const bundle = world.bundle(kind === 'hashedrekord 0.0.1' ? {} : { ...DSSE, kind })
  return JSON.parse(Buffer.from(entryOf(bundle).canonicalizedBody, 'base64').toString())
}

function setTsa(root: Json, certificate: Uint8Array): void {
  root.timestampAuthorities[0].certChain.certificates[0].rawBytes = toBase64(certificate)
}
