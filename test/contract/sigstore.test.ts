import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { certified, keylessSigner, witnessed } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { type SignatureLayout, signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { mintSigner } from '#test/fakes/fulcio.ts'
import { mintIntermediate, mintRoot, NOTARY_NAME, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SIGNED_AT } from '#test/fakes/sigstore.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'
import { deploymentOf, MUST_BE_SIGNED, type Served, serve } from './deploy.ts'
import { pod } from './review.ts'
import { opened, TARGETS, validate } from './targets.ts'

// The functions go by the clock of their runtime; only certificates of one's own are judged by it here.
const NOW = Date.now()
const DAY = 86_400_000
const validity = [new Date(NOW - DAY), new Date(NOW + DAY)] as const

const sigstore = new LocalSigstore(SIGNED_AT)
const root = mintRoot({ validity, spec: 'P-384', hash: 'sha384' })
const middle = mintIntermediate(root, { validity, spec: 'P-384', hash: 'sha384' })
const builder = mintSigner({
  issuer: middle,
  hash: 'sha384',
  validity,
  oidcIssuer: null,
  subject: NOTARY_NAME('builder'),
})
const release = generateKeyPairSync('ed25519')
const pem = (key: typeof release.publicKey) =>
  key.export({ type: 'spki', format: 'pem' }).toString()
const P384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const P521 = generateKeyPairSync('ec', { namedCurve: 'P-521' })
const RSA = generateKeyPairSync('rsa', { modulusLength: 3072 })
const byKey = localSigner(release.privateKey)

/** Every signer and where its signature goes, by the repository of the image; `unsigned` is not. */
const SIGNED: Readonly<Record<string, readonly [Signer, SignatureLayout]>> = {
  bundle: [keylessSigner(sigstore), 'dsse'],
  message: [keylessSigner(sigstore), 'message'],
  tag: [keylessSigner(sigstore), 'tag'],
  'rekor-2': [keylessSigner(sigstore, { rekor: 'v2' }), 'dsse'],
  'p-384': [keylessSigner(sigstore, { key: P384.privateKey }), 'dsse'],
  'p-521': [keylessSigner(sigstore, { key: P521.privateKey }), 'tag'],
  rsa: [keylessSigner(sigstore, { key: RSA.privateKey }), 'dsse'],
  ed25519: [keylessSigner(sigstore, { key: release.privateKey }), 'dsse'],
  stranger: [keylessSigner(sigstore, { leaf: { names: { uri: ['https://evil.test'] } } }), 'dsse'],
  forged: [keylessSigner(sigstore, { leaf: { sct: 'forged' } }), 'dsse'],
  late: [keylessSigner(sigstore, { leaf: { until: SIGNED_AT - 1 } }), 'tag'],
  unlogged: [keylessSigner(sigstore, { rekor: 'unknown', timestamp: SIGNED_AT }), 'dsse'],
  'key-logged': [witnessed(byKey, sigstore), 'dsse'],
  'key-logged-tag': [witnessed(byKey, sigstore), 'tag'],
  key: [byKey, 'tag'],
  own: [certified(localSigner(builder.keys.privateKey), [builder.der]), 'tag'],
  'own-bundle': [certified(localSigner(builder.keys.privateKey), [builder.der]), 'dsse'],
}

const trustedRoot = { value: JSON.stringify(sigstore.trustedRoot()) }
const ATTESTORS: Readonly<Record<string, object>> = {
  keyless: { keyless: { identities: [{ issuer: ISSUER, subject: SUBJECT }] }, trustedRoot },
  key: { key: { data: pem(release.publicKey) }, trustedRoot },
  own: {
    certificate: { certChain: { value: pemOf(middle) + pemOf(root) } },
    ctlog: { insecureIgnoreTlog: true, insecureIgnoreSCT: true },
  },
}

/** What each attestor says of each image, wherever it is asked. */
const SAID: readonly (readonly [image: string, attestor: string, admitted: boolean])[] = [
  ...['bundle', 'message', 'tag', 'rekor-2', 'p-384', 'p-521', 'rsa', 'ed25519'].map(
    (image) => [image, 'keyless', true] as const,
  ),
  ...['stranger', 'forged', 'late', 'unlogged', 'key-logged', 'own', 'unsigned'].map(
    (image) => [image, 'keyless', false] as const,
  ),
  ['key-logged', 'key', true],
  ['key-logged-tag', 'key', true],
  ['key', 'key', false],
  ['bundle', 'key', false],
  ['own', 'own', true],
  ['own-bundle', 'own', true],
  ['bundle', 'own', false],
]

function policy(name: string, cosign: object): object {
  return policyDocument({ attestors: [{ name: 'a', cosign }], validations: [MUST_BE_SIGNED] }, name)
}

async function push(registry: LocalRegistry, name: string): Promise<[string, string]> {
  const target = { url: registry.url, repository: name }
  const descriptor = await pushImage(target, { text: name })
  const [signer, layout] = SIGNED[name] ?? []
  const reference = `${registry.host}/${name}`
  if (signer !== undefined && layout !== undefined) {
    const response = await fetch(`${registry.url}/v2/${name}/manifests/${descriptor.digest}`)
    const manifest = new Uint8Array(await response.arrayBuffer())
    await signImage(target, { descriptor, reference, manifest }, [signer], layout)
  }
  return [name, `${reference}@${descriptor.digest}`]
}

interface SigstoreServed extends Served {
  images: ReadonlyMap<string, string>
}

async function createWorld(): Promise<SigstoreServed> {
  const registry = await startRegistry()
  const images = new Map<string, string>()
  for (const name of [...Object.keys(SIGNED), 'unsigned'])
    images.set(...(await push(registry, name)))
  const documents = Object.entries(ATTESTORS).map(([name, cosign]) => policy(name, cosign))
  const registries = { plainHttp: [registry.host] }
  const served = await serve(await deploymentOf(documents, { registries }))
  const close = async () => {
    await Promise.all([registry.close(), served.close()])
  }
  return { ...served, images, close }
}

let world: SigstoreServed
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world?.close())

describe.each(Object.entries(TARGETS))('Sigstore signatures: %s', (_, open) => {
  const target = opened(() => open(world))

  test.each(SAID)(
    'the image %s for the attestor %s is admitted: %s',
    async (image, name, admitted) => {
      const said = await validate(target(), name, pod(world.images.get(image) ?? ''))
      expect(said).toContain(admitted ? 'admitted' : 'not signed')
    },
  )
})
