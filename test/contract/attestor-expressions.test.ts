import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/deployment.ts'
import { certified, keylessSigner } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { pushReferrer } from '#functions/local/push.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { mintSigner } from '#test/fakes/fulcio.ts'
import { mintEnvelope } from '#test/fakes/notary.ts'
import { mint, mintIntermediate, mintRoot, NOTARY_NAME, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SIGNED_AT } from '#test/fakes/sigstore.ts'
import { hashOf, pod, review } from './review.ts'
import { type Served, TARGETS, type Target } from './targets.ts'
import { TOKEN } from './world.ts'

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

function policy(name: string, attestor: object): string {
  return JSON.stringify({
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'ImageValidatingPolicy',
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      autogen: { podControllers: { controllers: [] } },
      attestors: [{ name: 'a', ...attestor }],
      validations: [
        {
          expression:
            'images.containers.all(image, verifyImageSignatures(image, [attestors.a]) > 0)',
          message: 'not signed',
        },
      ],
    },
  })
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
  close(): Promise<void>
}

async function createWorld(): Promise<Asked> {
  const registry = await startRegistry()
  const images = new Map<string, string>()
  for (const name of Object.keys(ATTESTORS)) images.set(...(await push(registry, name)))
  const { policies, faults } = await loadPolicies(
    Object.entries(ATTESTORS).map(([name, attestor]) => ({
      name: `${name}.json`,
      text: policy(name, attestor),
    })),
  )
  if (faults.length > 0) throw new TypeError(JSON.stringify(faults))
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    registries: { plainHttp: [registry.host] },
    clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)] }],
  })
  const deployment = await createDeployment(config, policies)
  const outDir = await mkdtemp(path.join(tmpdir(), 'countersign-asked-'))
  const reports = await bundleFunctions({ deployment, outDir })
  // Every name was asked for.
  const bundles = Object.fromEntries(
    reports.map(({ name, entry }) => [name, entry]),
  ) as Served['bundles']
  const close = async () => {
    await Promise.all([registry.close(), rm(outDir, { recursive: true })])
  }
  return { deployment, bundles, images, close }
}

let world: Asked
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world?.close())

describe.each(Object.entries(TARGETS))('attestors by expressions: %s', (_, open) => {
  let target: Target
  beforeAll(async () => {
    target = await open(world)
  })
  afterAll(() => target?.close())

  test.each(SAID)('$image, with the texts $name: $says', async ({ image, change, says }) => {
    const object = pod(world.images.get(image) ?? '')
    const annotated = {
      ...object,
      metadata: { name: 'web', namespace: 'shop', annotations: { ...RIGHT, ...change } },
    }
    const body = JSON.stringify(review({ object: annotated }))
    const url = `/v1/prod/${TOKEN}/ivpol/validate/${image}`
    const { text } = await target.send('validate', url, { body })
    const { allowed, status } = JSON.parse(text).response
    expect(allowed ? 'admitted' : status.message).toContain(says)
  })
})
