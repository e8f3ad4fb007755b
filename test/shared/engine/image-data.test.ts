import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pushMultiArchImage } from '#functions/local/image.ts'
import { type PushTarget, pushBlob, pushManifest } from '#functions/local/push.ts'
import type { Decision } from '#shared/admission/types.ts'
import { MAX_SETTLE_ROUNDS } from '#shared/limits.ts'
import {
  admit,
  callFor,
  createWorld,
  podWith,
  policyText,
  requestFor,
  type World,
} from '#test/fakes/world.ts'

let world: World
let target: PushTarget
beforeAll(async () => {
  world = await createWorld()
  target = { url: world.registry.url, repository: 'data' }
})
afterAll(() => world.close())
beforeEach(() => world.reset())

const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'

/** What a policy says of an image by its data: the denial message is the value of `expression`, where `data` is what there is. */
async function dataOf(image: string, expression: string, options = {}): Promise<Decision> {
  const spec = `  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}
  variables:
    - name: data
      expression: image.GetMetadata(images.containers[0])`
  const validations = `    - expression: variables.data == null
      messageExpression: >-
        string(${expression})`
  const engine = await world.engine([policyText(world.keys, { spec, validations })], options)
  return engine.validate(requestFor(podWith([image])), callFor())
}

async function messageOf(image: string, expression: string): Promise<string | undefined> {
  const { status } = await dataOf(image, expression)
  return status?.message.replace(/^Policy signed (failed: )?/, '')
}

const at = (reference: string) => `${world.registry.host}/data${reference}`

/** An image whose config is `config`, under `tag`. */
async function pushConfig(tag: string, config: string | Buffer, descriptor: object = {}) {
  const blob = await pushBlob(target, Buffer.from(config), CONFIG)
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: { ...blob, ...descriptor },
    layers: [],
  }
  return pushManifest(target, manifest, { tag })
}

describe('image.GetMetadata', () => {
  test('of an image of one platform', async () => {
    const { digest } = await pushConfig('one', '{"os":"linux","config":{"User":"1000"}}')
    const parts = [
      'image',
      'resolvedImage',
      'registry',
      'repository',
      'identifier',
      'tag',
      'digest',
    ]
    const expression = `[${parts.map((name) => `variables.data.${name}`)}].join(" ") + " " + string(variables.data.imageIndex == null) + " " + variables.data.config.config.User + " " + variables.data.manifest.mediaType`
    const { host } = world.registry
    expect(await messageOf(at(':one'), expression)).toBe(
      `${host}/data:one ${host}/data@${digest} ${host} data one one ${digest} true 1000 ${OCI_MANIFEST}`,
    )
    expect(
      await messageOf(at(`@${digest}`), 'variables.data.identifier + variables.data.tag'),
    ).toBe(digest)
  })

  test('of an index is about its image for linux/amd64, and under the digest of the index', async () => {
    const { index, platforms } = await pushMultiArchImage(target, { text: 'multi', tag: 'multi' })
    const expression = `variables.data.digest + " " + variables.data.config.architecture + " " + string(variables.data.imageIndex.manifests.size())`
    expect(await messageOf(at(':multi'), expression)).toBe(`${index.digest} amd64 2`)
    expect(
      await messageOf(at(`@${platforms.arm64.digest}`), 'variables.data.config.architecture'),
    ).toBe('arm64')
  })

  test('of an index with one image beside attestations is about that image', async () => {
    const image = await pushConfig('plain', '{"architecture":"riscv64"}')
    const attestation = await pushConfig('attested', '{}')
    const manifests = [
      { ...attestation, platform: { os: 'unknown', architecture: 'unknown' } },
      { ...image, platform: { os: 'linux', architecture: 'riscv64' } },
    ]
    await pushManifest(
      target,
      { schemaVersion: 2, mediaType: OCI_INDEX, manifests },
      { tag: 'beside' },
    )
    expect(await messageOf(at(':beside'), 'variables.data.config.architecture')).toBe('riscv64')
  })

  test.each<{ name: string; push: () => Promise<unknown>; problem: string }>([
    { name: 'that does not exist', push: async () => {}, problem: 'no manifest bad' },
    {
      name: 'whose config is no JSON',
      push: () => pushConfig('bad', '{'),
      problem: 'JSON is not valid',
    },
    {
      name: 'whose config is no text',
      push: () => pushConfig('bad', Buffer.from([0x22, 0xff, 0x22])),
      problem: 'JSON is not valid UTF-8',
    },
    {
      name: 'whose config has a million values',
      push: () => pushConfig('bad', `[${'{},'.repeat(1_000_000)}0]`),
      problem: 'it holds more than',
    },
    {
      name: 'whose config is larger than may be',
      push: () => pushConfig('bad', '{}', { size: 2 ** 40 }),
      problem: 'of 8388608 bytes',
    },
    {
      name: 'whose config has a negative size',
      push: () => pushConfig('bad', '{}', { size: -1 }),
      problem: 'more than -1 bytes',
    },
    {
      name: 'whose config descriptor is incomplete',
      push: () => pushConfig('bad', '{}', { digest: null }),
      problem: 'has no config descriptor',
    },
    {
      name: 'of no platform we know',
      push: async () => {
        const image = await pushConfig('other', '{}')
        const manifests = ['s390x', 'riscv64'].map((architecture) => ({
          ...image,
          platform: { os: 'linux', architecture },
        }))
        await pushManifest(
          target,
          { schemaVersion: 2, mediaType: OCI_INDEX, manifests },
          { tag: 'bad' },
        )
      },
      problem: 'has no manifest for linux/amd64',
    },
    {
      name: 'whose index names a tag for a digest',
      push: async () => {
        await pushConfig('moving', '{}')
        const manifests = [{ mediaType: OCI_MANIFEST, digest: 'moving', size: 1 }]
        await pushManifest(
          target,
          { schemaVersion: 2, mediaType: OCI_INDEX, manifests },
          { tag: 'bad' },
        )
      },
      problem: 'has no manifest for linux/amd64',
    },
    {
      name: 'whose index names another index',
      push: async () => {
        const { index } = await pushMultiArchImage(target, { text: 'inner' })
        await pushManifest(
          target,
          { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [index] },
          { tag: 'bad' },
        )
      },
      problem: 'has no config descriptor',
    },
  ])('of an image $name is an error that says so', async ({ push, problem }) => {
    await push()
    const { allowed, status } = await dataOf(at(':bad'), '"reached"')
    expect(allowed).toBe(false)
    expect(status?.message).toMatch(
      /^Policy signed error: failed to evaluate policy: .*failed to get image data: /,
    )
    expect(status?.message).toContain(problem)
  })

  test('is no part of a seal, so that the strict hand-over has no answer', async () => {
    await pushConfig('strict', '{}')
    const spec = '  validationConfigurations: {verifyDigest: false, required: false}'
    const validations = '    - expression: images.containers.all(i, image.GetMetadata(i) != null)'
    const text = policyText(world.keys, { spec, validations })
    const outcomes = { onMissing: 'deny', lifetimeMs: 120_000 } as const
    const engine = await world.engine([text], { outcomes })
    const { validated } = await admit(engine, podWith([at(':strict')]))
    expect(validated.status?.message).toMatch(
      /is not covered by the sealed outcomes of the mutate phase$/,
    )
  })
})

describe('image functions that depend on each other', () => {
  /** Images `step0` → `step1` → …, each naming the next in its config, and an expression that follows `calls` of them. */
  async function chain(calls: number): Promise<Decision> {
    for (let n = 0; n <= calls; n++)
      await pushConfig(`step${n}`, JSON.stringify({ next: at(`:step${n + 1}`) }))
    const followed = Array.from({ length: calls - 1 }).reduce<string>(
      (inner) => `image.GetMetadata(${inner}.config.next)`,
      'image.GetMetadata(images.containers[0])',
    )
    const spec =
      '  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}'
    const validations = `    - expression: >-\n        ${followed}.tag == "step${calls - 1}"`
    const engine = await world.engine([policyText(world.keys, { spec, validations })])
    return engine.validate(requestFor(podWith([at(':step0')])), callFor())
  }

  test('are followed as deep as there are rounds', async () => {
    expect((await chain(MAX_SETTLE_ROUNDS - 1)).allowed).toBe(true)
  })

  test('are an error one deeper, and what is not used any more is not asked for', async () => {
    const { allowed, status } = await chain(MAX_SETTLE_ROUNDS)
    expect(allowed).toBe(false)
    expect(status?.message).toBe(
      `Policy signed error: failed to evaluate policy: image functions depend on each other more than ${MAX_SETTLE_ROUNDS} deep`,
    )
    const asked = world.registry.requests.filter(
      ({ method, url }) => method === 'GET' && url.includes(`step${MAX_SETTLE_ROUNDS - 1}`),
    )
    expect(asked).toEqual([])
  })
})
