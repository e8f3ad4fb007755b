import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { certified, keylessSigner } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { pushReferrer } from '#functions/local/push.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { mintSigner } from '#test/fakes/fulcio.ts'
import { mintEnvelope } from '#test/fakes/notary.ts'
import { mint, mintIntermediate, mintRoot, NOTARY_NAME, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SIGNED_AT } from '#test/fakes/sigstore.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'
import { deploymentOf, MUST_BE_SIGNED, type Served, serve } from './deploy.ts'
import { pod } from './review.ts'
import { opened, TARGETS, validate } from './targets.ts'

// The functions go by the clock of their runtime.
const NOW = Date.now()
const DAY = 86_400_000
const validity = [new Date(NOW - DAY), new Date(NOW + DAY)] as const

const sigstore = new LocalSigstore(SIGNED_AT)
const [root, stranger] = [mintRoot({ validity }), mintRoot({ validity, keyName: 'stranger' })]
const middle = mintIntermediate(root, { validity })
const builder = mintSigner({
  issuer: middle,
  validity,
  oidcIssuer: null,
  subject: NOTARY_NAME('builder'),
})
const release = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ed25519')
const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString()

const SIGNERS: Readonly<Record<string, Signer>> = {
  key: localSigner(release.privateKey),
  keyless: keylessSigner(sigstore),
  own: certified(localSigner(builder.keys.privateKey), [builder.der]),
}

const IGNORE = { insecureIgnoreTlog: true, insecureIgnoreSCT: true }
const from = (name: string) => ({ expression: `object.metadata.annotations.${name}` })
/** An attestor for each image: its name is that of the image. */
const ATTESTORS: Readonly<Record<string, object>> = {
  key: { cosign: { key: from('key'), ctlog: IGNORE } },
  keyless: {
    cosign: {
      keyless: {
        identities: [{ issuer: ISSUER, subjectExpression: from('subject').expression }],
      },
      trustedRoot: from('root'),
    },
  },
  own: { cosign: { certificate: { certChain: from('chain') }, ctlog: IGNORE } },
  notary: { notary: { certs: from('certs') } },
}

const RIGHT = {
  key: pem(release.publicKey),
  subject: SUBJECT,
  root: JSON.stringify(sigstore.trustedRoot()),
  chain: pemOf(middle) + pemOf(root),
  certs: pemOf(root),
}

/** What is said of each image with these annotations, wherever it is asked. */
const SAID: readonly {
  image: string
  name: string
  change: Partial<typeof RIGHT>
  says: string
}[] = [
  ...Object.keys(ATTESTORS).map((image) => ({
    image,
    name: 'of its signer',
    change: {},
    says: 'admitted',
  })),
  {
    image: 'key',
    name: 'of another key',
    change: { key: pem(other.publicKey) },
    says: 'not signed',
  },
  {
    image: 'key',
    name: 'of no key',
    change: { key: 'none' },
    says: 'attestor a cannot be used: ',
  },
  {
    image: 'keyless',
    name: 'of another subject',
    change: { subject: 'https://evil.test' },
    says: 'not signed',
  },
  {
    image: 'keyless',
    name: 'of another root',
    change: { root: JSON.stringify(new LocalSigstore(SIGNED_AT).trustedRoot()) },
    says: 'not signed',
  },
  {
    image: 'own',
    name: 'of another authority',
    change: { chain: pemOf(stranger) },
    says: 'not signed',
  },
  {
    image: 'own',
    name: 'of none',
    change: { chain: '' },
    says: 'failed to convert cert chain in compiled attestor: a, error: the value is empty',
  },
  {
    image: 'notary',
    name: 'of another authority',
    change: { certs: pemOf(stranger) },
    says: 'not signed',
  },
]

function policy(name: string, attestor: object): object {
  const spec = {
    autogen: { podControllers: { controllers: [] } },
    attestors: [{ name: 'a', ...attestor }],
    validations: [MUST_BE_SIGNED],
  }
  return policyDocument(spec, name)
}

async function push(registry: LocalRegistry, name: string): Promise<[string, string]> {
  const target = { url: registry.url, repository: name }
  const descriptor = await pushImage(target, { text: name })
  const reference = `${registry.host}/${name}`
  const signer = SIGNERS[name]
  if (signer !== undefined) await signImage(target, { descriptor, reference }, [signer], 'dsse')
  else {
    const { mediaType, digest, size } = descriptor
    const { envelope, mediaType: type } = mintEnvelope({
      format: 'JWS',
      chain: [mint({ issuer: middle, validity }), middle, root],
      payload: { targetArtifact: { mediaType, digest, size } },
    })
    await pushReferrer(target, descriptor, {
      artifactType: 'application/vnd.cncf.notary.signature',
      layers: [{ mediaType: type, bytes: envelope }],
    })
  }
  return [name, `${reference}@${descriptor.digest}`]
}

interface Asked extends Served {
  images: ReadonlyMap<string, string>
}

async function createWorld(): Promise<Asked> {
  const registry = await startRegistry()
  const images = new Map<string, string>()
  for (const name of Object.keys(ATTESTORS)) images.set(...(await push(registry, name)))
  const documents = Object.entries(ATTESTORS).map(([name, attestor]) => policy(name, attestor))
  const registries = { plainHttp: [registry.host] }
  const served = await serve(await deploymentOf(documents, { registries }))
  const close = async () => {
    await Promise.all([registry.close(), served.close()])
  }
  return { ...served, images, close }
}

let world: Asked
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world?.close())

describe.each(Object.entries(TARGETS))('attestors by expressions: %s', (_, open) => {
  const target = opened(() => open(world))

  test.each(SAID)('$image, with the texts $name: $says', async ({ image, change, says }) => {
    const object = pod(world.images.get(image) ?? '')
    const annotated = {
      ...object,
      metadata: { name: 'web', namespace: 'shop', annotations: { ...RIGHT, ...change } },
    }
    expect(await validate(target(), image, annotated)).toContain(says)
  })
})
