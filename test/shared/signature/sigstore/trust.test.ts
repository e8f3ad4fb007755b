import { describe, expect, test } from 'vitest'
import { digestOf, newPair, pairOf, signWith, spkiOf } from '#functions/local/sigstore/keys.ts'
import { type Bytes, concat, toBase64, utf8 } from '#shared/bytes.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { createCertificateSigner, createTrust } from '#shared/signature/sigstore/trust.ts'
import type { BundleVerdict, Thresholds } from '#shared/signature/sigstore/types.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import type { SigstoreTrust } from '#shared/signature/types.ts'
import { authorityOf, mintSigner } from '#test/fakes/fulcio.ts'
import {
  type CertificateOptions,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
  pemOf,
} from '#test/fakes/pki.ts'
import {
  ARTIFACT,
  type BundleOptions,
  type Json,
  SIGNED_AT,
  SigstoreWorld,
} from '#test/fakes/sigstore.ts'
import { mintTsa } from '#test/fakes/tsa.ts'
import { AT, IDENTITY, refused } from './setup.ts'

const world = new SigstoreWorld()
const ROOT = JSON.stringify(world.trustedRoot())
/** Of a Sigstore whose keys are all others. */
const FOREIGN = JSON.stringify(new SigstoreWorld().trustedRoot())
const pem = (...ders: Uint8Array[]) => ders.map((each) => pemOf({ der: each as Bytes })).join('')
const keyPem = (pair: ReturnType<typeof newPair>) =>
  pair.publicKey.export({ type: 'spki', format: 'pem' }) as string
const TSA = pem(world.tsaCertificate(), world.tsaRoot)
const changedRoot = (change: object) => JSON.stringify({ ...world.trustedRoot(), ...change })
const FUTURE = { until: SIGNED_AT + 10_000 }

interface Setup {
  trust: SigstoreTrust
  thresholds?: Partial<Thresholds>
  bundle?: BundleOptions
  change?: (bundle: Json) => void
  now?: number
}

async function judge({
  trust,
  thresholds,
  bundle,
  change,
  now = AT,
}: Setup): Promise<BundleVerdict> {
  const document = world.bundle(bundle)
  change?.(document)
  return verifyBundle(utf8(JSON.stringify(document)), {
    artifact: { bytes: ARTIFACT as Bytes },
    trust: await createTrust(trust, thresholds),
    signer: { identity: await createIdentityMatcher([IDENTITY]) },
    now,
  })
}

const OURS: SigstoreTrust = {
  roots: pem(world.caCertificate),
  rekorPubKey: keyPem(world.rekor),
  ctLogPubKey: keyPem(world.ctLog),
  tsaCertChain: TSA,
}

describe('trust holds', () => {
  test.each<{ name: string } & Setup>([
    { name: 'in a trusted root', trust: { root: ROOT } },
    { name: 'in keys and certificates alone', trust: OURS },
    {
      name: 'in keys and certificates in the place of a foreign root’s',
      trust: { root: FOREIGN, ...OURS },
    },
    {
      name: 'in keys and certificates, for Rekor v1 with a timestamp as well',
      trust: OURS,
      bundle: { timestamps: [SIGNED_AT] },
    },
    {
      name: 'in a log by its key alone, whatever its checkpoints are called',
      trust: { ...OURS, root: ROOT },
      bundle: {
        note: (note) => note.replace('rekor.example.com', 'log.example.org'),
        signatures: (lines) => lines.replace('rekor.example.com', 'log.example.org'),
      },
    },
    {
      name: 'in Rekor v2 by its key alone',
      trust: { ...OURS, rekorPubKey: keyPem(world.rekor2) },
      bundle: { rekor: 'v2' },
    },
    {
      name: 'in Rekor v2 by its key alone, named together with its origin',
      trust: { ...OURS, rekorPubKey: keyPem(world.rekor2) },
      bundle: { rekor: 'v2' },
      change: nameByOrigin,
    },
    {
      name: 'without logs, by a timestamp',
      trust: { ...OURS, ignoreTlog: true },
      bundle: { rekor: 'none', timestamps: [SIGNED_AT] },
      now: AT + 1e9,
    },
    {
      name: 'without logs or timestamps, while the certificate is valid',
      trust: { ...OURS, ignoreTlog: true },
      bundle: { rekor: 'none', timestamps: [], leaf: FUTURE },
      now: AT + 9_000_000,
    },
    {
      name: 'without logs, whatever entries say',
      trust: { ...OURS, ignoreTlog: true },
      change: (bundle) =>
        Object.assign(bundle.verificationMaterial.tlogEntries[0], {
          canonicalizedBody: 'no base64',
        }),
    },
    {
      name: 'without certificate logs',
      trust: { root: FOREIGN, ...OURS, ctLogPubKey: '', ignoreSct: true },
      bundle: { leaf: { sct: 'none' } },
    },
    {
      name: 'in empty fields as in absent ones',
      trust: { root: ROOT, roots: '', rekorPubKey: '', ctLogPubKey: '', tsaCertChain: '' },
    },
  ])('$name', async (setup) => {
    expect(await judge(setup)).toMatchObject({ status: 'verified' })
  })
})

describe('trust does not hold', () => {
  const FOREIGN_ENTRIES =
    'entries of 0 known transparency logs, expected 1; those it has are of others'
  const issued = 'certificate is not trusted: no trusted authority issued it'
  test.each<{ name: string; reason: string } & Setup>([
    {
      name: 'in a foreign root',
      trust: { root: FOREIGN },
      reason: FOREIGN_ENTRIES,
    },
    {
      name: 'in foreign authorities in the place of the root’s',
      trust: { root: ROOT, roots: pemOf(mintRoot()) },
      reason: issued,
    },
    {
      name: 'in a foreign log key in the place of the root’s',
      trust: { root: ROOT, rekorPubKey: keyPem(newPair()) },
      reason: FOREIGN_ENTRIES,
    },
    {
      name: 'in a foreign certificate log key in the place of the root’s',
      trust: { root: ROOT, ctLogPubKey: keyPem(newPair()) },
      reason: 'certificate is not trusted: seen by 0 known certificate logs, expected 1',
    },
    {
      name: 'in a foreign timestamp authority in the place of the root’s',
      trust: { root: ROOT, tsaCertChain: pems(mintTsa().chain) },
      bundle: { rekor: 'v2' },
      reason: 'times by 0 trusted witnesses, expected 1 (timestamp: its signer is another)',
    },
    {
      name: 'in a log key alone when nobody issued the certificate',
      trust: { rekorPubKey: keyPem(world.rekor) },
      reason: issued,
    },
    {
      name: 'without an entry unless logs are ignored',
      trust: OURS,
      bundle: { rekor: 'none', timestamps: [SIGNED_AT] },
      reason: 'entries of 0 known transparency logs, expected 1',
    },
    {
      name: 'with logs ignored in a certificate that has ended',
      trust: { ...OURS, ignoreTlog: true },
      bundle: { rekor: 'none', timestamps: [] },
      now: AT + 301_000,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'with logs ignored in what an entry says of the time',
      trust: { ...OURS, ignoreTlog: true },
      now: AT + 301_000,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'with certificate logs ignored in certificates of nobody',
      trust: { ...OURS, roots: pemOf(mintRoot()), ignoreSct: true },
      reason: issued,
    },
    {
      name: 'in a certificate no log has seen unless that is ignored',
      trust: OURS,
      bundle: { leaf: { sct: 'none' } },
      reason: 'certificate is not trusted: seen by 0 known certificate logs, expected 1',
    },
    {
      name: 'in a key named together with another origin',
      trust: { ...OURS, rekorPubKey: keyPem(world.rekor2) },
      bundle: { rekor: 'v2' },
      change: (bundle) => {
        nameByOrigin(bundle)
        const { checkpoint } = bundle.verificationMaterial.tlogEntries[0].inclusionProof
        checkpoint.envelope = checkpoint.envelope.replaceAll('log2', 'log3')
      },
      reason: FOREIGN_ENTRIES,
    },
    {
      name: 'with more witnesses asked for than there are',
      trust: OURS,
      thresholds: { times: 2 },
      reason: 'times by 1 trusted witnesses, expected 2',
    },
  ])('$name', async ({ name: _, reason, ...setup }) => {
    expect(await judge(setup)).toEqual(refused(reason))
  })
})

describe('a key in a root that names no log', () => {
  const signer = pairOf('P-256')
  const root = changedRoot({ tlogs: [], ctlogs: [] })
  const judgeKey = async (timestamps: number[], trust: SigstoreTrust) => {
    const spki = spkiOf(signer) as Bytes
    const bundle = world.bundle({ rekor: 'none', plainKey: true, signer, timestamps })
    return verifyBundle(utf8(JSON.stringify(bundle)), {
      artifact: { bytes: ARTIFACT as Bytes },
      trust: await createTrust(trust),
      signer: { key: await importVerifyingKey(spki), spki },
      now: AT,
    })
  }

  test('counts with a timestamp', async () => {
    expect(await judgeKey([SIGNED_AT], { root })).toMatchObject({ status: 'verified' })
  })

  test('says no without one, since nobody at all has seen the signature', async () => {
    const reason = 'times by 0 trusted witnesses, expected 1'
    expect(await judgeKey([], { root })).toEqual(refused(reason))
  })

  test('counts without one where no witness is asked for', async () => {
    expect(await judgeKey([], { root, ignoreTlog: true })).toMatchObject({ status: 'verified' })
  })
})

describe('material that is wrong', () => {
  const root = mintRoot()
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) =>
      mintIntermediate(root, { keyName: `i${i}`, subject: NOTARY_NAME(`i${i}`) }),
    )
  const needed = 'is needed'
  test.each<{ name: string; trust: SigstoreTrust; says: string }>([
    {
      name: 'nothing at all',
      trust: {},
      says: `ctlog: a trusted root, a key of a transparency log, or to ignore it ${needed}`,
    },
    {
      name: 'authorities without a word on certificate logs',
      trust: { roots: OURS.roots!, ignoreTlog: true },
      says: `keyless.roots: a trusted root, a key of a certificate log, or to ignore it ${needed}`,
    },
    {
      name: 'a root without anybody who sees signatures',
      trust: { root: changedRoot({ tlogs: [], timestampAuthorities: [] }) },
      says: 'trusted root: neither a transparency log nor a timestamp authority is in it',
    },
    { name: 'a root that is not JSON', trust: { root: '{' }, says: 'trusted root: not JSON' },
    {
      name: 'a log key that is a certificate',
      trust: { rekorPubKey: TSA },
      says: 'ctlog.rekorPubKey: public key: found a certificate',
    },
    {
      name: 'a log key that is none',
      trust: { rekorPubKey: 'x' },
      says: 'ctlog.rekorPubKey: public key: found no PEM block',
    },
    {
      name: 'a certificate log key on a curve nobody takes',
      trust: { root: ROOT, ctLogPubKey: keyPem(newPair('secp256k1')) },
      says: 'ctlog.ctLogPubKey: public key: found ECDSA secp256k1',
    },
    {
      name: 'roots that are none',
      trust: { root: ROOT, roots: 'x' },
      says: 'keyless.roots: no certificate',
    },
    {
      name: 'a root of no authority',
      trust: { root: ROOT, roots: pemOf(mint()) },
      says: 'keyless.roots: a certificate of no authority for code signing',
    },
    {
      name: 'a damaged root',
      trust: { root: ROOT, roots: OURS.roots!.replace('A', '!') },
      says: 'keyless.roots: certificates: found',
    },
    {
      name: 'a timestamp authority of 13 certificates',
      trust: { root: ROOT, tsaCertChain: TSA + pems(many(11)) },
      says: 'ctlog.tsaCertChain: TSA certificate chain contains too many certificates (13), maximum allowed is 12',
    },
    {
      name: 'a timestamp authority of eleven intermediates',
      trust: { root: ROOT, tsaCertChain: pemOf(root) + pems(many(11)) },
      says: 'ctlog.tsaCertChain: TSA certificate chain contains too many intermediate certificates (11), maximum allowed is 10',
    },
    {
      name: 'two timestamp authorities',
      trust: { root: ROOT, tsaCertChain: TSA + pems(mintTsa().chain) },
      says: 'ctlog.tsaCertChain: certificate chain must contain at most one TSA certificate',
    },
    {
      name: 'a timestamp authority without a root',
      trust: { root: ROOT, tsaCertChain: pem(world.tsaCertificate()) },
      says: 'ctlog.tsaCertChain: no root certificate',
    },
    {
      name: 'a timestamp authority of another root',
      trust: { root: ROOT, tsaCertChain: pem(world.tsaCertificate()) + pemOf(root) },
      says: 'ctlog.tsaCertChain: its certificates are no chain',
    },
    {
      name: 'a timestamp authority of nothing',
      trust: { root: ROOT, tsaCertChain: 'x' },
      says: 'ctlog.tsaCertChain: no certificate',
    },
  ])('is refused when the policy loads: $name', async ({ trust, says }) => {
    const made = createTrust(trust)
    await expect(made).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(made).rejects.toThrow(says)
  })

  test('of one kind in a root does not spoil the rest', async () => {
    const document = world.trustedRoot()
    const unknown = {
      baseUrl: 'https://old.example.com',
      publicKey: {
        rawBytes: toBase64(spkiOf(newPair('secp256k1'))),
        validFor: { start: '2020-01-01T00:00:00Z' },
      },
      logId: { keyId: toBase64(new Uint8Array(32)) },
    }
    document.tlogs.push(unknown)
    document.ctlogs.push(unknown)
    document.certificateAuthorities.push(authorityOf([mintRoot({ spec: 'RSA 1024' })]))
    document.timestampAuthorities.push(authorityOf([mintTsa().signer, mintRoot({ keyName: 'x' })]))
    expect(await judge({ trust: { root: JSON.stringify(document) } })).toMatchObject({
      status: 'verified',
    })
  })

  test('with a checkpoint key of its own, as short as a key hint', async () => {
    const document = world.trustedRoot()
    document.tlogs[0].checkpointKeyId = {
      keyId: toBase64(digestOf(spkiOf(world.rekor)).subarray(0, 4)),
    }
    expect(await judge({ trust: { root: JSON.stringify(document) } })).toMatchObject({
      status: 'verified',
    })
    document.tlogs[0].checkpointKeyId = { keyId: toBase64(new Uint8Array(4)) }
    expect(await judge({ trust: { root: JSON.stringify(document) } })).toEqual(
      refused('checkpoint is not signed by the log of the entry'),
    )
  })
})

// --- one's own certificates

const pki = mintRoot()
const between = mintIntermediate(pki)
const signerOf = (options: Partial<CertificateOptions> = {}) =>
  mintSigner({ issuer: between, oidcIssuer: null, subject: NOTARY_NAME('builder'), ...options })
const builder = signerOf()

class OwnWorld extends SigstoreWorld {
  readonly own: Minted
  constructor(own: Minted) {
    super()
    this.own = own
  }
  override leaf(): Uint8Array {
    return this.own.der
  }
}

interface OwnSetup {
  policy: { certificate?: string; chain?: string }
  own?: Minted
  trust?: (world: SigstoreWorld) => SigstoreTrust
  bundle?: BundleOptions
  now?: number
}

const UNWITNESSED = () => ({ ignoreTlog: true, ignoreSct: true })

async function judgeOwn({
  policy,
  own = builder,
  trust = UNWITNESSED,
  bundle,
  now = AT,
}: OwnSetup) {
  const place = new OwnWorld(own)
  const document = place.bundle({ rekor: 'none', timestamps: [], signer: own.keys, ...bundle })
  return verifyBundle(utf8(JSON.stringify(document)), {
    artifact: { bytes: ARTIFACT as Bytes },
    trust: await createTrust(trust(place)),
    signer: { certificate: await createCertificateSigner(policy) },
    now,
  })
}

const CHAIN = pems([between, pki])
const later = new Date(AT + 60_000)
const brief = signerOf({ validity: [new Date(AT - 60_000), later] })

describe('certificates of one’s own hold', () => {
  const logged = (place: SigstoreWorld) => ({ rekorPubKey: keyPem(place.rekor) })
  test.each<{ name: string } & OwnSetup>([
    { name: 'by a chain that signatures bring the certificate for', policy: { chain: CHAIN } },
    {
      name: 'by a root alone, for what it issued itself',
      policy: { chain: pemOf(pki) },
      own: mintSigner({ issuer: pki, oidcIssuer: null }),
    },
    { name: 'by an authority that is no root', policy: { chain: pemOf(between) } },
    {
      name: 'by one certificate with its chain',
      policy: { certificate: pemOf(builder), chain: CHAIN },
    },
    {
      name: 'by one certificate with a chain that begins with it',
      policy: { certificate: pemOf(builder), chain: pemOf(builder) + CHAIN },
    },
    { name: 'by one certificate alone', policy: { certificate: pemOf(builder) } },
    {
      name: 'by one certificate alone, long after it ended',
      policy: { certificate: pemOf(brief) },
      own: brief,
      now: AT + 1e12,
    },
    { name: 'in base64', policy: { certificate: btoa(pemOf(builder)), chain: btoa(CHAIN) } },
    { name: 'without a purpose', policy: { chain: CHAIN }, own: signerOf({ purposes: null }) },
    {
      name: 'for every purpose',
      policy: { chain: CHAIN },
      own: signerOf({ purposes: ['2.5.29.37.0'] }),
    },
    { name: 'of RSA', policy: { chain: CHAIN }, own: signerOf({ spec: 'RSA 2048' }) },
    {
      name: 'seen by a log while they were valid',
      policy: { chain: CHAIN },
      own: brief,
      trust: (place) => ({ ...logged(place), ignoreSct: true }),
      bundle: { rekor: 'v1' },
      now: AT + 1e12,
    },
    {
      name: 'one pinned certificate, seen by a log',
      policy: { certificate: pemOf(builder) },
      trust: logged,
      bundle: { rekor: 'v1' },
    },
    {
      name: 'one pinned certificate, of which the log has the key',
      policy: { certificate: pemOf(builder) },
      trust: logged,
      bundle: { rekor: 'v1', plainKey: true },
    },
    { name: 'to the second they end', policy: { chain: CHAIN }, own: brief, now: later.getTime() },
  ])('$name', async (setup) => {
    expect(await judgeOwn(setup)).toMatchObject({ status: 'verified' })
  })

  test('and say whose they are', async () => {
    expect(await judgeOwn({ policy: { chain: CHAIN } })).toMatchObject({
      signer:
        'C=US, ST=WA, O=Example, CN=builder, https://ci.example.com/shop/api/release.yml@refs/heads/main (C=US, ST=WA, O=Example, CN=intermediate)',
    })
  })
})

describe('certificates of one’s own do not hold', () => {
  const other = mintRoot({ keyName: 'other', subject: NOTARY_NAME('other') })
  test.each<{ name: string; reason: string } & OwnSetup>([
    {
      name: 'by a chain to another root',
      policy: { chain: pemOf(other) },
      reason: 'certificate is not trusted: it does not chain to a certificate of the policy',
    },
    {
      name: 'by one certificate when another signed',
      policy: { certificate: pemOf(signerOf({ keyName: 'x' })), chain: CHAIN },
      reason: 'signature does not verify under the key of the signer',
    },
    {
      name: 'a second after they ended',
      policy: { chain: CHAIN },
      own: brief,
      now: later.getTime() + 1000,
      reason: 'certificate was not valid when the signature was made',
    },
    {
      name: 'when their authority had ended',
      policy: {
        chain: pems([
          mintIntermediate(pki, { validity: [new Date(AT - 9000), new Date(AT - 1000)] }),
          pki,
        ]),
      },
      reason: 'certificate is not trusted: its authority was not valid when the signature was made',
    },
    {
      name: 'for web servers',
      policy: { chain: CHAIN },
      own: signerOf({ purposes: ['1.3.6.1.5.5.7.3.1'] }),
      reason: 'certificate is not for code signing',
    },
    {
      name: 'of an authority',
      policy: { chain: CHAIN },
      own: signerOf({ ca: {} }),
      reason: 'certificate is one of an authority, expected one of a signer',
    },
    {
      name: 'where the signature brings none',
      policy: { chain: CHAIN },
      bundle: { plainKey: true },
      reason: 'signature comes without a certificate, expected one of the signer',
    },
    {
      name: 'that no log has seen when one is asked for',
      policy: { chain: CHAIN },
      trust: (place) => ({ rekorPubKey: keyPem(place.rekor) }),
      reason: 'entries of 0 known transparency logs, expected 1',
    },
    {
      name: 'that no certificate log has seen when the trust names one',
      policy: { chain: CHAIN },
      trust: (place) => ({ root: JSON.stringify(place.trustedRoot()) }),
      bundle: { rekor: 'v1' },
      reason: 'certificate is not trusted: seen by 0 known certificate logs, expected 1',
    },
    {
      name: 'one pinned certificate, of which the log has another',
      policy: { certificate: pemOf(builder) },
      trust: (place) => ({ rekorPubKey: keyPem(place.rekor) }),
      bundle: {
        rekor: 'v1',
        changeBody: (body) => {
          body.spec.signature.publicKey.content = btoa(pemOf(signerOf({ keyName: 'x' })))
        },
      },
      reason: 'log entry is about another key',
    },
  ])('$name', async ({ name: _, reason, ...setup }) => {
    expect(await judgeOwn(setup)).toEqual(refused(reason))
  })

  test.each<{ name: string; policy: OwnSetup['policy']; says: string }>([
    { name: 'nothing', policy: {}, says: 'certificate: no certificate' },
    {
      name: 'no certificate',
      policy: { certificate: 'x' },
      says: 'certificate.cert: no certificate',
    },
    {
      name: 'a public key',
      policy: { certificate: keyPem(newPair()) },
      says: 'certificate.cert: certificates: found a PEM block that is not a certificate',
    },
    {
      name: 'a key nobody takes',
      policy: { certificate: pemOf(mint({ spec: 'RSA 1024' })) },
      says: 'certificate.cert: public key: found an RSA key of 1024 bits',
    },
    {
      name: 'twelve certificates',
      policy: { chain: pems(Array.from({ length: 12 }, () => between)) },
      says: 'certificate.certChain: certificate chain too long (12), maximum allowed is 11',
    },
    {
      name: 'a chain of the certificate alone',
      policy: { certificate: pemOf(builder), chain: pemOf(builder) },
      says: 'certificate.certChain: no certificate of an authority',
    },
    {
      name: 'a chain of another',
      policy: { certificate: pemOf(builder), chain: pemOf(other) },
      says: 'certificate.cert: a certificate that does not chain to certChain',
    },
  ])('is refused when the policy loads: $name', async ({ policy, says }) => {
    const made = createCertificateSigner(policy)
    await expect(made).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(made).rejects.toThrow(says)
  })
})

function pems(chain: readonly Minted[]): string {
  return chain.map(pemOf).join('')
}

/** As Rekor v2 calls itself: a hash of its origin and its Ed25519 key, of which four bytes stand before a checkpoint's signature. */
function nameByOrigin(bundle: Json): void {
  const [entry] = bundle.verificationMaterial.tlogEntries
  const id = digestOf(
    concat(utf8('log2.example.com\n'), Uint8Array.of(1), spkiOf(world.rekor2).subarray(-32)),
  )
  entry.logId.keyId = toBase64(id)
  const { checkpoint } = entry.inclusionProof
  const [note] = checkpoint.envelope.split('\n\n')
  const signature = signWith(utf8(`${note}\n`), world.rekor2)
  checkpoint.envelope = `${note}\n\n— log2.example.com ${toBase64(concat(id.subarray(0, 4), signature))}\n`
}
