import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { LoadOptions } from '#shared/policy/load.ts'
import type { SigstoreTrust } from '#shared/signature/types.ts'
import { mint, mintRoot, NOTARY_NAME, pemOf, TIME_STAMPING } from '#test/fakes/pki.ts'
import { SigstoreWorld } from '#test/fakes/sigstore.ts'
import { load, PEM, policyDocument, said } from './documents.ts'

const ROOT = JSON.stringify(new SigstoreWorld().trustedRoot())
const OTHER = JSON.stringify(new SigstoreWorld().trustedRoot())
const MIRROR = 'https://tuf.example.com'
const TUF_ROOT = btoa('a TUF root')
/** An operator whose config has both roots. */
const CONFIG: LoadOptions = {
  kmsRegion: 'eu-west-1',
  trustedRoot: (mirror) => (mirror === undefined ? ROOT : mirror === MIRROR ? OTHER : undefined),
  tufRootHash: (mirror) =>
    mirror === MIRROR ? createHash('sha256').update('a TUF root').digest('hex') : undefined,
}

const ca = mintRoot({ keyName: 'policy ca' })
const leaf = mint({ keyName: 'policy leaf', issuer: ca })
const [CA, LEAF] = [pemOf(ca), pemOf(leaf)]
const tsaCa = mintRoot({ keyName: 'policy tsa ca', subject: NOTARY_NAME('tsa ca') })
const TSA = pemOf(
  mint({
    keyName: 'policy tsa',
    issuer: tsaCa,
    subject: NOTARY_NAME('tsa'),
    purposes: [TIME_STAMPING],
    purposesCritical: true,
  }),
)
const TSA_CHAIN = TSA + pemOf(tsaCa)
const base64 = (text: string) => btoa(text)

const KEY = { key: { data: PEM } }
const IDENTITY = { issuer: 'https://issuer.example.com', subject: 'me' }
const KEYLESS = { keyless: { identities: [IDENTITY] } }
const IGNORE = { insecureIgnoreTlog: true }

const documentOf = (cosign: object, annotations?: Record<string, string>) => ({
  ...policyDocument({ attestors: [{ name: 'a', cosign }] }),
  ...(annotations && { metadata: { name: 'must-sign', annotations } }),
})
const at = (field: string) => `spec.attestors[0].cosign${field === '' ? '' : `.${field}`}`

/** The only attestor of a policy that must load. */
async function attestorOf(cosign: object, options = CONFIG, annotations?: Record<string, string>) {
  const { policies, faults } = await load([documentOf(cosign, annotations)], options)
  expect(said(faults)).toEqual([])
  return policies[0]?.attestors[0]
}

describe('who has to have witnessed a signature', () => {
  test.each<{ name: string; cosign: object; trust: SigstoreTrust | undefined }>([
    { name: 'a key: the public-good log', cosign: KEY, trust: { root: ROOT } },
    { name: 'a key with an empty ctlog', cosign: { ...KEY, ctlog: {} }, trust: { root: ROOT } },
    {
      name: 'a key with insecureIgnoreTlog: false',
      cosign: { ...KEY, ctlog: { insecureIgnoreTlog: false } },
      trust: { root: ROOT },
    },
    { name: 'a key: nobody, if it says so', cosign: { ...KEY, ctlog: IGNORE }, trust: undefined },
    {
      name: 'a key: insecureIgnoreSCT does not waive the log',
      cosign: { ...KEY, ctlog: { insecureIgnoreSCT: true } },
      trust: { root: ROOT, ignoreSct: true },
    },
    {
      name: 'a key of a key service',
      cosign: { key: { kms: 'awskms:///alias/a' } },
      trust: { root: ROOT },
    },
    {
      name: "a key: one's own log, and no root for it",
      cosign: { ...KEY, ctlog: { rekorPubKey: PEM } },
      trust: { rekorPubKey: PEM },
    },
    {
      name: 'a key: only an authority for timestamps',
      cosign: { ...KEY, ctlog: { ...IGNORE, tsaCertChain: TSA_CHAIN } },
      trust: { tsaCertChain: TSA_CHAIN, ignoreTlog: true },
    },
    { name: 'identities: the public-good root', cosign: KEYLESS, trust: { root: ROOT } },
    {
      name: 'identities: the root of the policy before any other',
      cosign: { ...KEYLESS, trustedRoot: { value: OTHER }, tuf: { mirror: 'https://x.test' } },
      trust: { root: OTHER },
    },
    {
      name: "identities: the root of a mirror, descended from the policy's own",
      cosign: { ...KEYLESS, tuf: { mirror: MIRROR, root: { data: TUF_ROOT } } },
      trust: { root: OTHER },
    },
    {
      name: "identities: one's own authority in place of the root's",
      cosign: { keyless: { identities: [IDENTITY], roots: CA } },
      trust: { root: ROOT, roots: CA },
    },
    {
      name: "identities: nothing but one's own",
      cosign: {
        keyless: { identities: [IDENTITY], roots: base64(CA) },
        ctlog: { rekorPubKey: PEM, ctLogPubKey: PEM },
      },
      trust: { roots: CA, rekorPubKey: PEM, ctLogPubKey: PEM },
    },
    {
      name: 'identities without logs',
      cosign: { ...KEYLESS, ctlog: { ...IGNORE, insecureIgnoreSCT: true } },
      trust: { root: ROOT, ignoreTlog: true, ignoreSct: true },
    },
    {
      name: 'a certificate: the log, if nothing is said',
      cosign: { certificate: { cert: { value: LEAF } } },
      trust: { root: ROOT },
    },
    {
      name: 'a certificate alone, as good as its key',
      cosign: { certificate: { cert: { value: LEAF } }, ctlog: IGNORE },
      trust: undefined,
    },
    {
      name: 'a certificate with its chain: the certificate log as well',
      cosign: {
        certificate: { cert: { value: LEAF }, certChain: { value: CA } },
        ctlog: IGNORE,
      },
      trust: { root: ROOT, ignoreTlog: true },
    },
    {
      name: 'a chain, and nobody else',
      cosign: {
        certificate: { certChain: { value: CA } },
        ctlog: { ...IGNORE, insecureIgnoreSCT: true },
      },
      trust: { ignoreTlog: true, ignoreSct: true },
    },
  ])('$name', async ({ cosign, trust }) => {
    const attestor = await attestorOf(cosign)
    expect(attestor && 'trust' in attestor ? attestor.trust : undefined).toEqual(trust)
  })
})

describe('what else an attestor keeps', () => {
  test.each<{ name: string; cosign: object; keeps: object }>([
    {
      name: 'annotations',
      cosign: { annotations: { stage: 'ci' } },
      keeps: { annotations: { stage: 'ci' } },
    },
    {
      name: 'where signatures are',
      cosign: {
        source: {
          repository: 'registry.example.com/signatures',
          tagPrefix: 'qa-',
          PullSecrets: [{ name: 'regcred' }],
        },
      },
      keeps: {
        source: {
          repository: 'registry.example.com/signatures',
          tagPrefix: 'qa-',
          pullSecrets: ['regcred'],
        },
      },
    },
    {
      name: 'extensions, with every identity',
      cosign: {
        ...KEYLESS,
        key: undefined,
        keyless: {
          identities: [IDENTITY],
          additionalExtensions: { githubWorkflowRepository: 'shop/api' },
        },
      },
      keeps: {
        identities: [{ ...IDENTITY, extensions: { githubWorkflowRepository: 'shop/api' } }],
      },
    },
    {
      name: 'a certificate in base64 of PEM',
      cosign: {
        key: undefined,
        certificate: { cert: { value: base64(LEAF) }, certChain: { value: base64(CA) } },
      },
      keeps: { kind: 'cosign-certificate', certificate: LEAF, chain: CA },
    },
  ])('$name, as part of its hash', async ({ cosign, keeps }) => {
    const plain = await attestorOf({ ...KEY, ctlog: IGNORE })
    const attestor = await attestorOf({ ...KEY, ctlog: IGNORE, ...cosign })
    expect(attestor).toMatchObject(keeps)
    expect(attestor?.hash).not.toBe(plain?.hash)
  })

  test('another trusted root is another attestor', async () => {
    const others = { ...CONFIG, trustedRoot: () => OTHER }
    expect((await attestorOf(KEY))?.hash).not.toBe((await attestorOf(KEY, others))?.hash)
  })
})

describe('attestations that count as signatures', () => {
  const NAME = 'countersign.dev/signature-predicate-types'
  const cosign = { ...KEY, ctlog: IGNORE }

  test('are named by an annotation of the policy', async () => {
    const types = 'https://slsa.dev/provenance/v1, https://in-toto.io/x'
    const attestor = await attestorOf(cosign, CONFIG, { [NAME]: types })
    expect(attestor).toMatchObject({
      predicateTypes: ['https://in-toto.io/x', 'https://slsa.dev/provenance/v1'],
    })
    expect(attestor?.hash).not.toBe((await attestorOf(cosign))?.hash)
  })

  test.each([
    { value: '', says: 'Invalid value: "": not the URI of a predicate type' },
    { value: 'slsa', says: 'Invalid value: "slsa": not the URI of a predicate type' },
    {
      value: 'https://a.test/x,,https://b.test/y',
      says: 'Invalid value: "": not the URI of a predicate type',
    },
    {
      value: Array.from({ length: 21 }, (_, at) => `https://a.test/${at}`).join(),
      says: 'Too many: 21: must have at most 20 items',
    },
  ])('are no $value', async ({ value, says }) => {
    const { policies, faults } = await load([documentOf(cosign, { [NAME]: value })], CONFIG)
    expect(policies).toEqual([])
    const path = `metadata.annotations["${NAME}"]`
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path, message: says }])
  })
})

describe('what is wrong with an attestor', () => {
  const needs = (what: string, fix = '') =>
    `no trusted root is known, and ${what} needs one: run countersign trust, set trustedRoot.value${fix}`
  const chainOf = (length: number) => pemOf(ca).repeat(length)

  test.each<{ cosign: object; path: string; says: string; options?: LoadOptions }>([
    {
      cosign: KEY,
      options: {},
      path: '',
      says: needs(
        'the transparency log',
        ', or ctlog.insecureIgnoreTlog: true for a key without a log',
      ),
    },
    {
      cosign: { ...KEYLESS, ctlog: IGNORE },
      options: {},
      path: '',
      says: needs('the authority of certificates, the certificate log'),
    },
    {
      cosign: { ...KEYLESS, tuf: { mirror: 'https://x.test' } },
      path: 'tuf.mirror',
      says: 'no trusted root of https://x.test is known, and the authority of certificates, the transparency log, the certificate log needs one: run countersign trust, set trustedRoot.value',
    },
    {
      cosign: { ...KEYLESS, tuf: { mirror: MIRROR, root: { data: btoa('another') } } },
      path: 'tuf.root.data',
      says: 'the trusted root of this mirror descends from another TUF root',
    },
    {
      cosign: { ...KEYLESS, tuf: { root: { data: TUF_ROOT } } },
      path: 'tuf.root.data',
      says: 'no TUF root of this mirror is in the config; run countersign trust',
    },
    {
      cosign: { ...KEYLESS, tuf: { root: { data: '***' } } },
      path: 'tuf.root.data',
      says: 'not base64',
    },
    {
      cosign: { ...KEY, ...KEYLESS },
      path: '',
      says: 'Invalid value: key and keyless are set, only one may be',
    },
    {
      cosign: { ...KEY, certificate: { cert: { value: LEAF } } },
      path: '',
      says: 'Invalid value: key and certificate are set, only one may be',
    },
    {
      cosign: { certificate: {} },
      path: 'certificate',
      says: 'Required value: one of cert and certChain must be set',
    },
    {
      cosign: { certificate: { cert: { value: '' } } },
      path: 'certificate',
      says: 'Required value: one of cert and certChain must be set',
    },
    {
      cosign: { certificate: { cert: { value: 'junk' } } },
      path: 'certificate.cert.value',
      says: 'found neither PEM nor base64 of PEM',
    },
    {
      cosign: { certificate: { cert: { value: PEM } } },
      path: 'certificate.cert.value',
      says: 'certificate.cert: certificates: found a PEM block that is not a certificate',
    },
    {
      cosign: { certificate: { certChain: { value: chainOf(12) } } },
      path: 'certificate.certChain.value',
      says: 'certificate.certChain: certificate chain too long (12), maximum allowed is 11',
    },
    {
      cosign: { ...KEY, ctlog: { tsaCertChain: chainOf(13) } },
      path: 'ctlog.tsaCertChain',
      says: 'ctlog.tsaCertChain: TSA certificate chain contains too many certificates (13), maximum allowed is 12',
    },
    {
      cosign: { ...KEY, ctlog: { tsaCertChain: TSA + TSA_CHAIN } },
      path: 'ctlog.tsaCertChain',
      says: 'ctlog.tsaCertChain: certificate chain must contain at most one TSA certificate',
    },
    {
      cosign: { ...KEY, ctlog: { rekorPubKey: LEAF } },
      path: 'ctlog.rekorPubKey',
      says: 'ctlog.rekorPubKey: public key: found a certificate; give its public key (openssl x509 -pubkey -noout)',
    },
    {
      cosign: { ...KEYLESS, ctlog: { ctLogPubKey: 'junk' } },
      path: 'ctlog.ctLogPubKey',
      says: 'ctlog.ctLogPubKey: public key: found no PEM block (-----BEGIN PUBLIC KEY-----)',
    },
    {
      cosign: { ...KEY, ctlog: IGNORE, trustedRoot: { value: '{}' } },
      path: 'trustedRoot.value',
      says: 'trusted root: no trusted root of version 0.1 or 0.2',
    },
    {
      cosign: { keyless: { identities: [IDENTITY], roots: LEAF } },
      path: 'keyless.roots',
      says: 'keyless.roots: a certificate of no authority for code signing',
    },
    {
      cosign: { keyless: { identities: [IDENTITY], additionalExtensions: { color: 'red' } } },
      path: 'keyless.identities',
      says: 'identity: "color" is no extension of Fulcio',
    },
    {
      cosign: { ...KEY, source: { repository: 'registry.example.com/app:1' } },
      path: 'source.repository',
      says: 'a repository has neither tag nor digest',
    },
    {
      cosign: { ...KEY, source: { tagPrefix: 'a/b' } },
      path: 'source.tagPrefix',
      says: '"a/b" cannot begin a tag of a digest',
    },
    {
      cosign: { ...KEY, source: { PullSecrets: [{ name: 'regcred' }] } },
      options: { ...CONFIG, registries: { secrets: [], providers: [], plainHttp: [] } },
      path: 'source.PullSecrets[0]',
      says: 'Not found: "regcred": Secrets are not read from a cluster; registries.secrets of the config needs an entry of this name',
    },
    {
      cosign: { ...KEY, annotations: { a: 1 } },
      path: 'annotations.a',
      says: 'Invalid value: "integer": must be of type string',
    },
  ])('$path: $says', async ({ cosign, path, says, options = CONFIG }) => {
    const { policies, faults } = await load([documentOf(cosign)], options)
    expect(policies).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path: at(path), message: says }])
  })
})

describe('an operator is told', () => {
  test.each<{ name: string; cosign: object; path: string; says: string }>([
    {
      name: 'that no log is asked',
      cosign: { ...KEY, ctlog: { url: 'https://rekor.example.com' } },
      path: 'ctlog.url',
      says: 'nothing is asked online: a signature has to bring its log entry along; Kyverno would search this log for one',
    },
    {
      name: 'whose authorities count',
      cosign: { keyless: { identities: [IDENTITY], roots: CA } },
      path: 'keyless.roots',
      says: 'these take the place of the certificate authorities of the trusted root; Kyverno ignores them beside one',
    },
    {
      name: 'that a certificate alone is a key',
      cosign: { certificate: { cert: { value: LEAF } } },
      path: 'certificate.cert',
      says: 'without certChain only the key of the certificate counts: neither its end nor who issued it is looked at',
    },
    {
      name: 'which of two roots is used',
      cosign: { ...KEYLESS, trustedRoot: { value: ROOT }, tuf: { mirror: MIRROR } },
      path: 'tuf',
      says: 'the trusted root is that of trustedRoot.value, so that this is not used',
    },
  ])('$name', async ({ cosign, path, says }) => {
    const { faults, warnings } = await load([documentOf(cosign)], CONFIG)
    expect(said(faults)).toEqual([])
    expect(said(warnings)).toContainEqual({ code: 'POLICY_NOTE', path: at(path), message: says })
  })
})
