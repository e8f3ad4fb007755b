import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { pushImage, pushMultiArchImage } from '#functions/local/image.ts'
import {
  OCI_INDEX,
  type PushTarget,
  pushBlob,
  pushManifest,
  pushReferrer,
} from '#functions/local/push.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'

const running: LocalRegistry[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((registry) => registry.close()))
})

async function registryWith(
  options: Parameters<typeof startRegistry>[0] = {},
): Promise<{ registry: LocalRegistry; target: PushTarget }> {
  const registry = await startRegistry(options)
  running.push(registry)
  return { registry, target: { url: registry.url, repository: 'team/app' } }
}

async function get(target: PushTarget, path: string): Promise<{ status: number; bytes: Buffer }> {
  const response = await fetch(`${target.url}/v2/${target.repository}/${path}`)
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

const artifact = {
  artifactType: 'application/vnd.example.sbom',
  layers: [{ mediaType: 'text/plain', bytes: Buffer.from('sbom'), annotations: { a: 'b' } }],
  annotations: { made: 'here' },
}

describe('push', () => {
  test('a blob comes back by the digest of its bytes', async () => {
    const { target } = await registryWith()
    const descriptor = await pushBlob(target, Buffer.from('hello'), 'text/plain')
    expect(descriptor).toEqual({
      mediaType: 'text/plain',
      digest: digestOf(Buffer.from('hello')),
      size: 5,
    })
    expect(await get(target, `blobs/${descriptor.digest}`)).toEqual({
      status: 200,
      bytes: Buffer.from('hello'),
    })
  })

  test('a manifest given as bytes is stored byte for byte under tag and digest', async () => {
    const { target } = await registryWith()
    const bytes = Buffer.from('{ "schemaVersion": 2,\n "manifests": [] }')
    const descriptor = await pushManifest(target, bytes, { tag: 'v1', mediaType: OCI_INDEX })
    expect(descriptor.digest).toBe(digestOf(bytes))
    expect((await get(target, 'manifests/v1')).bytes).toEqual(bytes)
    expect((await get(target, `manifests/${descriptor.digest}`)).bytes).toEqual(bytes)
  })

  test('an image has the config and the layer its manifest names, and the same digest every time', async () => {
    const { target } = await registryWith()
    const image = await pushImage(target, { text: 'one', tag: 'v1' })
    const manifest = JSON.parse((await get(target, 'manifests/v1')).bytes.toString())
    for (const part of [manifest.config, ...manifest.layers]) {
      const blob = await get(target, `blobs/${part.digest}`)
      expect({ digest: digestOf(blob.bytes), size: blob.bytes.length }).toEqual({
        digest: part.digest,
        size: part.size,
      })
    }
    expect(await pushImage(target, { text: 'one' })).toEqual(image)
    expect((await pushImage(target, { text: 'two' })).digest).not.toBe(image.digest)
  })

  test('a multi-arch index names both platform images', async () => {
    const { target } = await registryWith()
    const { index, platforms } = await pushMultiArchImage(target, { text: 'one', tag: 'v1' })
    const pulled = (await get(target, 'manifests/v1')).bytes
    expect(digestOf(pulled)).toBe(index.digest)
    expect(JSON.parse(pulled.toString()).manifests).toMatchObject([
      { digest: platforms.amd64.digest, platform: { architecture: 'amd64' } },
      { digest: platforms.arm64.digest, platform: { architecture: 'arm64' } },
    ])
  })

  test('a referrer is listed by the referrers API where there is one', async () => {
    const { target } = await registryWith()
    const image = await pushImage(target, { text: 'one' })
    const { digest, size, mediaType } = await pushReferrer(target, image, artifact)
    const listed = JSON.parse((await get(target, `referrers/${image.digest}`)).bytes.toString())
    expect(listed.manifests).toEqual([
      {
        mediaType,
        digest,
        size,
        artifactType: artifact.artifactType,
        annotations: artifact.annotations,
      },
    ])
    expect((await get(target, `manifests/${image.digest.replace(':', '-')}`)).status).toBe(404)
  })

  test.each([
    { name: 'as it is', told: artifact.artifactType, listed: artifact.artifactType },
    {
      name: 'as some registries have it',
      told: 'application/vnd.oci.empty.v1+json',
      listed: 'application/vnd.oci.empty.v1+json',
    },
    { name: 'not at all', told: null, listed: undefined },
  ])(
    'without that API the fallback index lists it, its artifact type $name',
    async ({ told, listed }) => {
      const { target } = await registryWith({ referrersApi: false })
      const image = await pushImage(target, { text: 'one' })
      const first = await pushReferrer(target, image, artifact)
      const second = await pushReferrer(target, image, {
        ...artifact,
        annotations: { made: 'later' },
        fallbackArtifactType: told,
      })
      const tag = image.digest.replace(':', '-')
      const { manifests } = JSON.parse((await get(target, `manifests/${tag}`)).bytes.toString())
      expect(manifests.map((entry: { digest: string }) => entry.digest)).toEqual([
        first.digest,
        second.digest,
      ])
      expect(manifests[1].artifactType).toBe(listed)
      expect((await get(target, `referrers/${image.digest}`)).status).toBe(404)
    },
  )

  test.each([
    { name: 'Basic', auth: { kind: 'basic', username: 'u', password: 'p:w' } as const },
    { name: 'Bearer', auth: { kind: 'bearer', username: 'u', password: 'p:w' } as const },
  ])('logs in by $name, and is refused with another password', async ({ auth }) => {
    const { target } = await registryWith({ auth })
    const login = { username: 'u', password: 'p:w' }
    const image = await pushImage({ ...target, login }, { text: 'one', tag: 'v1' })
    expect(image.size).toBeGreaterThan(0)
    expect((await get(target, 'manifests/v1')).status).toBe(401)
    const wrong = { ...target, login: { username: 'u', password: 'x' } }
    await expect(pushImage(wrong, { text: 'one' })).rejects.toThrow('answered 401')
  })
})
