import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import { pushReferrer } from '#functions/local/push.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { type EnvelopeOptions, mintEnvelope } from '#test/fakes/notary.ts'
import {
  askAt,
  CRL_SIGN,
  KEY_CERT_SIGN,
  type KeySpec,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  pemOf,
} from '#test/fakes/pki.ts'
import { mintCrl, mintOcsp, mintResponder } from '#test/fakes/revocation.ts'
import { mintToken, mintTsa } from '#test/fakes/tsa.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'
import { deploymentOf, MUST_BE_SIGNED, type Served, serve } from './deploy.ts'
import { pod } from './review.ts'
import { opened, TARGETS, validate } from './targets.ts'

// The functions go by the clock of their runtime.
const NOW = Date.now()
const DAY = 86_400_000
const validity = [new Date(NOW - DAY), new Date(NOW + DAY)] as const
const usages = [KEY_CERT_SIGN, CRL_SIGN]

const root = mintRoot({ validity, usages })
const middle = mintIntermediate(root, { validity, usages })
const tsa = mintTsa({ validity, spec: 'RSA 2048' }, { validity, spec: 'RSA 2048' })

/** Responders and lists, in the order in which certificates ask: what it answers is decided by the path. */
async function startAuthority() {
  const answers = new Map<string, () => Uint8Array>()
  const server = http.createServer(({ url = '' }, response) => {
    const answer = answers.get(url.split('/')[1] ?? '')
    response.writeHead(answer === undefined ? 404 : 200)
    response.end(answer?.())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // An address of the server that listens is one with a port.
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => new Promise((resolve) => server.close(resolve))
  return { answers, host, close }
}

type Authority = Awaited<ReturnType<typeof startAuthority>>

/** Signers whose status can be asked about, by what the answer is. */
function revocable({ answers, host }: Authority) {
  const responder = mintResponder(middle, { validity })
  const at = (name: string, where: Parameters<typeof askAt>[0]) =>
    mint({ issuer: middle, validity, keyName: name, extra: askAt(where) })
  const good = at('good', { ocsp: [`http://${host}/good`] })
  const bad = at('bad', { ocsp: [`http://${host}/bad`] })
  const listed = at('listed', { ocsp: [`http://${host}/gone`], crl: [`http://${host}/list`] })
  const clean = at('clean', { crl: [`http://${host}/list`] })
  const lost = at('lost', { ocsp: [`http://${host}/gone`] })
  const common = { issuer: middle, signer: responder, update: validity }
  answers.set('good', () => mintOcsp({ certificate: good, ...common }))
  answers.set('bad', () => mintOcsp({ certificate: bad, status: { reason: 1 }, ...common }))
  answers.set('list', () =>
    mintCrl({ issuer: middle, revoked: [{ certificate: listed }], update: validity }),
  )
  return { good, bad, listed, clean, lost }
}

const stamp = (message: Uint8Array) => {
  const genTime = `${new Date(NOW).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
  return mintToken({ message, chain: tsa.chain, genTime })
}

/** What every image is signed with, by its repository; `unsigned` is not. */
function signatures(authority: Authority): Record<string, Partial<EnvelopeOptions> | undefined> {
  const specs: KeySpec[] = ['P-256', 'P-384', 'P-521', 'RSA 2048', 'RSA 3072', 'RSA 4096']
  const of = (leaf: Minted) => [leaf, middle, root]
  const plain = of(mint({ issuer: middle, validity }))
  const bySpec = specs.map((spec, index) => [
    spec.toLowerCase().replace(' ', '-'),
    {
      format: index % 2 === 0 ? 'JWS' : 'COSE',
      chain: of(mint({ issuer: middle, validity, spec })),
    } as const,
  ])
  const byStatus = Object.entries(revocable(authority)).map(([name, leaf]) => [
    name,
    { chain: of(leaf) },
  ])
  return {
    ...Object.fromEntries([...bySpec, ...byStatus]),
    stamped: { chain: plain, token: stamp },
    'stamped-cose': { format: 'COSE', chain: plain, token: stamp },
    touched: { chain: plain, touchSignature: true },
    plugin: { chain: plain, signed: { 'io.cncf.notary.verificationPlugin': 'com.example' } },
    stranger: { chain: [mintRoot({ validity, keyName: 'stranger', ca: null, usages: [0] })] },
    unsigned: undefined,
  }
}

async function pushSigned(
  registry: LocalRegistry,
  name: string,
  options?: Partial<EnvelopeOptions>,
) {
  const target = { url: registry.url, repository: name }
  const descriptor = await pushImage(target, { text: name })
  if (options !== undefined) {
    const { envelope, mediaType } = mintEnvelope({
      format: 'JWS',
      chain: [],
      payload: { targetArtifact: descriptor },
      ...options,
    })
    await pushReferrer(target, descriptor, {
      artifactType: 'application/vnd.cncf.notary.signature',
      layers: [{ mediaType, bytes: envelope }],
    })
  }
  return [name, `${registry.host}/${name}@${descriptor.digest}`] as const
}

function policy(name: string, mode: string, tsaCerts?: string): object {
  const notary = {
    certs: { value: pemOf(root) },
    ...(tsaCerts && { tsaCerts: { value: tsaCerts } }),
  }
  const spec = { attestors: [{ name: 'a', notary }], validations: [MUST_BE_SIGNED] }
  const annotations = { 'countersign.dev/notary-revocation': mode }
  return { ...policyDocument(spec), metadata: { name, annotations } }
}

interface NotaryWorld extends Served {
  images: ReadonlyMap<string, string>
}

async function createWorld(): Promise<NotaryWorld> {
  const [registry, authority] = await Promise.all([startRegistry(), startAuthority()])
  const images = new Map<string, string>()
  for (const [name, options] of Object.entries(signatures(authority))) {
    images.set(...(await pushSigned(registry, name, options)))
  }
  const documents = [
    policy('skip', 'skip'),
    policy('softfail', 'softfail'),
    policy('strict', 'strict'),
    policy('stamp', 'skip', pemOf(tsa.root)),
  ]
  const deployment = await deploymentOf(documents, {
    registries: { plainHttp: [registry.host] },
    revocation: { mode: 'skip', allow: [authority.host] },
  })
  const served = await serve(deployment)
  const close = async () => {
    await Promise.all([registry.close(), authority.close(), served.close()])
  }
  return { ...served, images, close }
}

let world: NotaryWorld
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world?.close())

/** What each policy says of each image, wherever it is asked. */
const YES = 'admitted'
const NO = 'not signed'
const UNKNOWN = 'whether a certificate is revoked is not known'
const SAID: readonly (readonly [image: string, policy: string, said: string])[] = [
  ...['p-256', 'p-384', 'p-521', 'rsa-2048', 'rsa-3072', 'rsa-4096'].map(
    (image) => [image, 'skip', YES] as const,
  ),
  ['p-256', 'strict', YES],
  ['stamped', 'stamp', YES],
  ['stamped-cose', 'stamp', YES],
  ['p-256', 'stamp', NO],
  ['touched', 'skip', NO],
  ['plugin', 'skip', NO],
  ['stranger', 'skip', NO],
  ['unsigned', 'skip', NO],
  ['good', 'strict', YES],
  ['good', 'softfail', YES],
  ['bad', 'skip', YES],
  ['bad', 'softfail', NO],
  ['bad', 'strict', NO],
  ['listed', 'softfail', NO],
  ['listed', 'strict', NO],
  ['clean', 'strict', YES],
  ['lost', 'softfail', YES],
  ['lost', 'strict', UNKNOWN],
]

describe.each(Object.entries(TARGETS))('Notary Project signatures: %s', (_, open) => {
  const target = opened(() => open(world))

  test.each(SAID)('the image %s for the policy %s is: %s', async (image, name, said) => {
    const answer = await validate(target(), name, pod(world.images.get(image) ?? ''))
    expect(answer).toContain(said)
    expect(answer === YES).toBe(said === YES)
  })
})
