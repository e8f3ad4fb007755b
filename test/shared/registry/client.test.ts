import { describe, expect, test } from 'vitest'
import { pushImage, pushMultiArchImage } from '#functions/local/image.ts'
import {
  describe as describeBytes,
  OCI_INDEX,
  OCI_MANIFEST,
  pushBlob,
  pushManifest,
  pushReferrer,
} from '#functions/local/push.ts'
import { MAX_MANIFEST_BYTES } from '#shared/limits.ts'
import type { FetchPort } from '#shared/ports.ts'
import { repositoryOf } from '#shared/registry/session.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { app, client, codeOf, never, paths, reference, start, target } from './setup.ts'

const sbom = {
  artifactType: 'application/vnd.example.sbom',
  layers: [{ mediaType: 'text/plain', bytes: Buffer.from('sbom') }],
}

describe('resolving an image', () => {
  test('a tag becomes the digest of the bytes that came back', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const asked = reference(registry, { tag: 'v1' })
    const session = client([registry]).session(never())
    expect(await session.resolve(asked)).toEqual({
      reference: asked,
      repository: app(registry),
      descriptor: image,
    })
    expect(session.calls).toBe(1)
  })

  test('a digest wins over the tag beside it', async () => {
    const registry = await start()
    const one = await pushImage(target(registry), { text: 'one' })
    await pushImage(target(registry), { text: 'two', tag: 'v1' })
    const asked = reference(registry, { tag: 'v1', digest: one.digest })
    const resolved = await client([registry]).session(never()).resolve(asked)
    expect(resolved.descriptor).toEqual(one)
  })

  test('an index keeps its own digest and is not descended into', async () => {
    const registry = await start()
    const { index } = await pushMultiArchImage(target(registry), { text: 'one', tag: 'v1' })
    registry.requests.length = 0
    const asked = reference(registry, { tag: 'v1' })
    const resolved = await client([registry]).session(never()).resolve(asked)
    expect(resolved.descriptor).toEqual(index)
    expect(paths(registry)).toEqual(['GET /v2/app/manifests/v1'])
  })

  test('a tag that moves between calls is asked for once in a session', async () => {
    const registry = await start()
    const one = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const two = await pushImage(target(registry), { text: 'two' })
    registry.faults.add(
      { kind: 'moving-tag', digests: [one.digest, two.digest] },
      { on: /GET .*\/v1$/ },
    )
    registry.requests.length = 0
    const session = client([registry]).session(never())
    const asked = reference(registry, { tag: 'v1' })
    const all = await Promise.all([session.resolve(asked), session.resolve(asked)])
    all.push(await session.resolve({ ...asked, text: 'the same in other words' }))
    const digests = new Set(all.map(({ descriptor }) => descriptor.digest))
    expect([...digests]).toEqual([one.digest])
    await session.manifest(app(registry), one.digest)
    expect(paths(registry)).toEqual(['GET /v2/app/manifests/v1'])
  })

  test('a tag that does not exist is a REGISTRY_NOT_FOUND', async () => {
    const registry = await start()
    const session = client([registry]).session(never())
    expect(await codeOf(session.resolve(reference(registry, { tag: 'v1' })))).toBe(
      'REGISTRY_NOT_FOUND',
    )
  })

  test.each([
    {
      name: 'Docker Hub has its API elsewhere',
      registry: 'index.docker.io',
      host: 'registry-1.docker.io',
    },
    {
      name: 'every other host is its own',
      registry: 'Registry.Example:5000',
      host: 'registry.example:5000',
    },
    {
      name: 'no host is taken by substring',
      registry: 'index.docker.io.evil.example',
      host: 'index.docker.io.evil.example',
    },
  ])('$name', ({ registry, host }) => {
    expect(repositoryOf({ text: '', registry, repository: 'a/b', tag: 'x' })).toEqual({
      host,
      repository: 'a/b',
    })
  })
})

describe('content that is not what was asked for', () => {
  test('other bytes for a digest are refused, whatever Docker-Content-Digest says', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    registry.faults.add({ kind: 'wrong-bytes' })
    const session = client([registry]).session(never())
    expect(await codeOf(session.manifest(app(registry), image.digest))).toBe(
      'REGISTRY_DIGEST_MISMATCH',
    )
  })

  test('other bytes for a tag have another digest: the header that claims the old one proves nothing', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    registry.faults.add({ kind: 'wrong-bytes' })
    const session = client([registry]).session(never())
    const manifest = await session.manifest(app(registry), 'v1')
    expect(manifest?.descriptor.digest).not.toBe(image.digest)
    expect(manifest?.descriptor.digest).toBe(describeBytes(manifest!.bytes, OCI_MANIFEST).digest)
  })

  test.each([
    { name: 'the right blob is given', change: {}, code: 'no error' },
    {
      name: 'a changed byte is refused',
      wrong: true,
      change: {},
      code: 'REGISTRY_DIGEST_MISMATCH',
    },
    {
      name: 'a blob longer than its descriptor is refused',
      change: { size: 4 },
      code: 'REGISTRY_TOO_LARGE',
    },
    {
      name: 'a blob shorter than its descriptor is refused',
      change: { size: 6 },
      code: 'REGISTRY_RESPONSE_INVALID',
    },
    {
      name: 'a descriptor past the bound is refused',
      change: { size: 101 },
      code: 'REGISTRY_TOO_LARGE',
    },
    {
      name: 'a descriptor of no size is refused',
      change: { size: Number.NaN },
      code: 'REGISTRY_TOO_LARGE',
    },
    {
      name: 'a digest of another kind is refused',
      change: { digest: 'sha512:00' },
      code: 'REGISTRY_RESPONSE_INVALID',
    },
    {
      name: 'a digest that is a path is refused',
      change: { digest: 'sha256:../../x' },
      code: 'REGISTRY_RESPONSE_INVALID',
    },
    {
      name: 'a missing blob is a REGISTRY_NOT_FOUND',
      change: { digest: `sha256:${'0'.repeat(64)}` },
      code: 'REGISTRY_NOT_FOUND',
    },
  ])('of blobs: $name', async ({ change, wrong, code }) => {
    const registry = await start()
    const blob = await pushBlob(target(registry), Buffer.from('hello'))
    if (wrong) registry.faults.add({ kind: 'wrong-bytes' })
    const session = client([registry]).session(never())
    expect(await codeOf(session.blob(app(registry), { ...blob, ...change }, 100))).toBe(code)
  })

  test('a descriptor past the bound costs no request', async () => {
    const registry = await start()
    const blob = await pushBlob(target(registry), Buffer.from('hello'))
    registry.requests.length = 0
    await codeOf(client([registry]).session(never()).blob(app(registry), blob, 4))
    expect(registry.requests).toEqual([])
  })

  const manifest = { schemaVersion: 2, mediaType: OCI_MANIFEST, config: {}, layers: [] }
  test.each([
    { name: 'an OCI manifest is read', body: manifest, code: 'no error' },
    {
      name: 'one without a media type takes the content type',
      body: { layers: [] },
      sent: OCI_MANIFEST,
      code: 'no error',
    },
    {
      name: 'parameters and case of the content type do not matter',
      body: manifest,
      sent: 'Application/vnd.OCI.image.manifest.v1+json; charset=utf-8',
      code: 'no error',
    },
    {
      name: 'a generic content type does not contradict',
      body: manifest,
      sent: 'application/octet-stream',
      code: 'no error',
    },
    {
      name: 'a Docker manifest list is read',
      body: { manifests: [] },
      sent: 'application/vnd.docker.distribution.manifest.list.v2+json',
      code: 'no error',
    },
    { name: 'a contradicting content type is refused', body: manifest, sent: OCI_INDEX },
    { name: 'no media type anywhere is refused', body: { layers: [] }, sent: 'application/json' },
    {
      name: 'an unknown media type is refused',
      body: { ...manifest, mediaType: 'application/vnd.docker.distribution.manifest.v1+json' },
    },
    { name: 'a media type that is no string is refused', body: { ...manifest, mediaType: 7 } },
    { name: 'a manifest that is an index too is refused', body: { ...manifest, manifests: [] } },
    {
      name: 'an index that is a manifest too is refused',
      body: { mediaType: OCI_INDEX, manifests: [], layers: [] },
    },
    { name: 'a manifest without layers is refused', body: { mediaType: OCI_MANIFEST, config: {} } },
    { name: 'an array is refused', body: [manifest] },
    { name: 'a string is refused', body: 'manifest' },
    { name: 'null is refused', body: null },
    { name: 'HTML is refused', bytes: '<html>' },
    { name: 'nothing is refused', bytes: '' },
    { name: 'cut JSON is refused', bytes: '{"layers":[' },
    { name: 'a byte order mark is refused', bytes: `\ufeff${JSON.stringify(manifest)}` },
    {
      name: 'bytes that are not UTF-8 are refused',
      bytes: Buffer.from('{"layers":[],"x":"\xff"}', 'latin1'),
    },
    {
      name: 'deep nesting is refused',
      bytes: `{"layers":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    },
    {
      name: 'a polluting document reads as it is written',
      bytes: `{"mediaType":"${OCI_MANIFEST}","layers":[],"__proto__":{"manifests":[]}}`,
      code: 'no error',
    },
    {
      name: 'a field inherited from __proto__ is no field',
      bytes: `{"mediaType":"${OCI_MANIFEST}","__proto__":{"layers":[]}}`,
    },
  ])('of manifests: $name', async ({ body, bytes, sent, code = 'REGISTRY_RESPONSE_INVALID' }) => {
    const registry = await start()
    const content = Buffer.from(bytes ?? JSON.stringify(body))
    await pushManifest(target(registry), content, { tag: 'v1', mediaType: OCI_MANIFEST })
    if (sent !== undefined) registry.faults.add({ kind: 'media-type', mediaType: sent })
    const session = client([registry]).session(never())
    expect(await codeOf(session.manifest(app(registry), 'v1'))).toBe(code)
    expect(({} as { manifests?: unknown }).manifests).toBeUndefined()
  })

  test.each([
    { name: 'a repository that climbs', where: { repository: 'app/../other' } },
    { name: 'a repository with a query', where: { repository: 'app?x=' } },
    { name: 'an encoded climb', where: { repository: 'app/%2e%2e' } },
    { name: 'an empty segment', where: { repository: 'app//x' } },
    { name: 'a tag that is a path', tag: '../blobs/x' },
    { name: 'a tag with a query', tag: 'v1?x' },
    { name: 'another digest', tag: `sha512:${'0'.repeat(128)}` },
  ])('no request is made for $name', async ({ where, tag }) => {
    const registry = await start()
    const session = client([registry]).session(never())
    const place = { ...app(registry), ...where }
    expect(await codeOf(session.manifest(place, tag ?? 'v1'))).toBe('REGISTRY_RESPONSE_INVALID')
    expect(registry.requests).toEqual([])
  })
})

describe('referrers', () => {
  test.each([
    { name: 'come from the referrers API', referrersApi: true },
    { name: 'come from the fallback tag where there is no API', referrersApi: false },
  ])('$name', async ({ referrersApi }) => {
    const registry = await start({ referrersApi })
    const image = await pushImage(target(registry), { text: 'one' })
    const pushed = await pushReferrer(target(registry), image, sbom)
    registry.requests.length = 0
    const session = client([registry]).session(never())
    expect(await session.referrers(app(registry), image.digest)).toEqual({
      descriptors: [{ ...pushed, artifactType: sbom.artifactType }],
      omitted: 0,
    })
    const hex = image.digest.replace(':', '-')
    const fallback = referrersApi ? [] : [`GET /v2/app/manifests/${hex}`]
    expect(paths(registry)).toEqual([`GET /v2/app/referrers/${image.digest}`, ...fallback])
  })

  test.each([
    { name: 'with the API', referrersApi: true },
    { name: 'without the API', referrersApi: false },
  ])('an image nobody refers to has none, $name', async ({ referrersApi }) => {
    const registry = await start({ referrersApi })
    const image = await pushImage(target(registry), { text: 'one' })
    const session = client([registry]).session(never())
    const none = { descriptors: [], omitted: 0 }
    expect(await session.referrers(app(registry), image.digest)).toEqual(none)
  })

  test.each([
    { name: '400', status: 400, code: 'no error' },
    { name: '404', status: 404, code: 'no error' },
    { name: '405', status: 405, code: 'no error' },
    { name: '406', status: 406, code: 'no error' },
    { name: '501', status: 501, code: 'no error' },
    { name: '200 with a web page', status: 200, code: 'no error' },
    { name: '401 without a challenge', status: 401, code: 'REGISTRY_UNAUTHORIZED' },
    { name: '403', status: 403, code: 'REGISTRY_UNAUTHORIZED' },
    { name: '418', status: 418, code: 'REGISTRY_UNREACHABLE' },
    { name: '429', status: 429, code: 'REGISTRY_THROTTLED' },
    { name: '500', status: 500, code: 'REGISTRY_UNREACHABLE' },
    { name: '503', status: 503, code: 'REGISTRY_UNREACHABLE' },
  ])('$name means: no such API, or that we cannot tell', async ({ status, code }) => {
    const registry = await start({ referrersApi: false })
    const image = await pushImage(target(registry), { text: 'one' })
    await pushReferrer(target(registry), image, sbom)
    const headers = { 'content-type': 'text/html' }
    registry.faults.add({ kind: 'status', status, headers, body: '<html>' }, { on: /referrers/ })
    const referrers = client([registry]).session(never()).referrers(app(registry), image.digest)
    if (code === 'no error') expect((await referrers).descriptors).toHaveLength(1)
    else expect(await codeOf(referrers)).toBe(code)
  })

  test.each([
    { name: 'an artifact type is lost', told: null, artifactType: undefined },
    {
      name: 'an artifact type is odd',
      told: 'application/vnd.oci.empty.v1+json',
      artifactType: 'application/vnd.oci.empty.v1+json',
    },
  ])('a descriptor stays in the list when $name', async ({ told, artifactType }) => {
    const registry = await start({ referrersApi: false })
    const image = await pushImage(target(registry), { text: 'one' })
    const pushed = await pushReferrer(target(registry), image, {
      ...sbom,
      fallbackArtifactType: told,
    })
    const session = client([registry]).session(never())
    const [found] = (await session.referrers(app(registry), image.digest)).descriptors
    expect(found?.digest).toBe(pushed.digest)
    expect(found?.artifactType).toBe(artifactType)
  })

  const good = { mediaType: OCI_MANIFEST, digest: `sha256:${'1'.repeat(64)}`, size: 7 }
  test.each<{ name: string; entry: unknown; kept: Descriptor[] }>([
    { name: 'a sound one is kept', entry: good, kept: [good] },
    {
      name: 'an artifact type that is no string is dropped, the descriptor kept',
      entry: { ...good, artifactType: 7 },
      kept: [good],
    },
    {
      name: 'annotations that are no strings are dropped, the others kept',
      entry: { ...good, annotations: { a: 'b', c: 7 } },
      kept: [{ ...good, annotations: { a: 'b' } }],
    },
    {
      name: 'a huge annotation is dropped',
      entry: { ...good, annotations: { a: 'b'.repeat(65_537) } },
      kept: [{ ...good, annotations: {} }],
    },
    {
      name: 'a digest of another kind leaves it out',
      entry: { ...good, digest: 'sha512:1' },
      kept: [],
    },
    {
      name: 'an upper-case digest leaves it out',
      entry: { ...good, digest: `sha256:${'A'.repeat(64)}` },
      kept: [],
    },
    { name: 'a negative size leaves it out', entry: { ...good, size: -1 }, kept: [] },
    { name: 'a size with a fraction leaves it out', entry: { ...good, size: 1.5 }, kept: [] },
    { name: 'a size in a string leaves it out', entry: { ...good, size: '7' }, kept: [] },
    { name: 'no media type leaves it out', entry: { ...good, mediaType: '' }, kept: [] },
    { name: 'a list leaves it out', entry: [], kept: [] },
    { name: 'null leaves it out', entry: null, kept: [] },
  ])('of descriptors, $name', async ({ entry, kept }) => {
    const registry = await start({ referrersApi: false })
    const subject = `sha256:${'2'.repeat(64)}`
    const other = { ...good, digest: `sha256:${'3'.repeat(64)}` }
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [entry, other] }
    await pushManifest(target(registry), index, { tag: subject.replace(':', '-') })
    const session = client([registry]).session(never())
    const { descriptors } = await session.referrers(app(registry), subject)
    expect(descriptors).toEqual([...kept, other])
  })

  test('a fallback tag that is no index cannot tell', async () => {
    const registry = await start({ referrersApi: false })
    const image = await pushImage(target(registry), { text: 'one' })
    await pushImage(target(registry), { text: 'two', tag: image.digest.replace(':', '-') })
    const session = client([registry]).session(never())
    expect(await codeOf(session.referrers(app(registry), image.digest))).toBe(
      'REGISTRY_RESPONSE_INVALID',
    )
  })

  test('pages are followed and a digest listed twice counts once', async () => {
    const registry = await start({ referrersPageSize: 2 })
    const image = await pushImage(target(registry), { text: 'one' })
    const pushed: string[] = []
    for (const made of ['a', 'b', 'c', 'd', 'e', 'a']) {
      const artifact = { ...sbom, annotations: { made } }
      pushed.push((await pushReferrer(target(registry), image, artifact)).digest)
    }
    registry.requests.length = 0
    const session = client([registry]).session(never())
    const { descriptors, omitted } = await session.referrers(app(registry), image.digest)
    expect(descriptors.map(({ digest }) => digest)).toEqual(pushed.slice(0, 5))
    expect(omitted).toBe(0)
    expect(registry.requests).toHaveLength(3)
  })

  const subject = `sha256:${'2'.repeat(64)}`
  const numbered = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      ...good,
      digest: `sha256:${String(n).padStart(64, '0')}`,
    }))
  /** What a registry says of the referrers that answers each request with the next of these bodies, the last one from then on. */
  const listedAs = async (bodies: readonly string[], link = '<?again>; rel=next') => {
    const registry = await start()
    const headers = { 'content-type': OCI_INDEX, link }
    for (const [index, body] of bodies.entries()) {
      const scope = index === bodies.length - 1 ? {} : { times: 1 }
      registry.faults.add({ kind: 'status', status: 200, headers, body }, scope)
    }
    const listed = client([registry]).session(never()).referrers(app(registry), subject)
    return { registry, listed }
  }
  const bodyOf = (manifests: readonly Descriptor[]) => JSON.stringify({ manifests })

  test.each([
    { name: '64 under a fallback tag are all', there: 64, omitted: 0 },
    { name: 'of 100 under a fallback tag 36 are left out', there: 100, omitted: 36 },
  ])('$name', async ({ there, omitted }) => {
    const registry = await start({ referrersApi: false })
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: numbered(there) }
    await pushManifest(target(registry), index, { tag: subject.replace(':', '-') })
    const session = client([registry]).session(never())
    expect(await session.referrers(app(registry), subject)).toEqual({
      descriptors: numbered(64),
      omitted,
    })
  })

  test.each<{ name: string; bodies: string[]; link?: string; gives: number; omitted: number }>([
    { name: 'pages without an end', bodies: [bodyOf([])], gives: 0, omitted: 1 },
    { name: 'a page that comes again', bodies: [bodyOf(numbered(3))], gives: 3, omitted: 1 },
    {
      name: 'a page of one entry many times before another',
      bodies: [bodyOf(Array.from({ length: 200 }, () => good)), bodyOf(numbered(3))],
      gives: 4,
      omitted: 1,
    },
    {
      name: 'a full page that says there are more',
      bodies: [bodyOf(numbered(64))],
      gives: 64,
      omitted: 1,
    },
    {
      name: 'a full page that is the last',
      bodies: [bodyOf(numbered(64))],
      link: '',
      gives: 64,
      omitted: 0,
    },
    {
      name: 'a page that is too large after one that is not',
      bodies: [bodyOf(numbered(3)), 'x'.repeat(MAX_MANIFEST_BYTES + 1)],
      gives: 3,
      omitted: 1,
    },
    {
      name: 'a page that is too large',
      bodies: ['x'.repeat(MAX_MANIFEST_BYTES + 1)],
      gives: 0,
      omitted: 1,
    },
  ])('of $name it is known that there may be more', async ({ bodies, link, gives, omitted }) => {
    const { registry, listed } = await listedAs(bodies, link)
    const referrers = await listed
    expect(referrers.descriptors).toHaveLength(gives)
    expect(referrers.omitted).toBe(omitted)
    expect(registry.requests.length).toBeLessThanOrEqual(8)
  })

  test.each([
    { name: 'null', body: 'null' },
    { name: 'manifests that are no list', body: '{"manifests":{}}' },
    { name: 'a list that is cut off', body: '{"manifests":[' },
    { name: 'nothing', body: '' },
  ])('a list that is $name is nobody’s who pushes, so it cannot tell', async ({ body }) => {
    const { listed } = await listedAs([body])
    expect(await codeOf(listed)).toBe('REGISTRY_UNREACHABLE')
  })

  test('a next page on another origin is not fetched', async () => {
    const registry = await start({ auth: { kind: 'bearer', registryToken: 'robot' } })
    const other = await start()
    const page = {
      kind: 'status',
      status: 200,
      headers: { 'content-type': OCI_INDEX, link: `<${other.url}/v2/app/referrers/x>; rel="next"` },
      body: '{"manifests":[]}',
    } as const
    registry.faults.add(page, { on: /referrers/ })
    const session = client([registry, other]).session(never())
    expect(await codeOf(session.referrers(app(registry), subject))).toBe('REGISTRY_UNREACHABLE')
    expect(other.requests).toEqual([])
  })

  test('an empty list may be written as null', async () => {
    const registry = await start()
    const headers = { 'content-type': OCI_INDEX }
    registry.faults.add({ kind: 'status', status: 200, headers, body: '{"manifests":null}' })
    const session = client([registry]).session(never())
    const none = { descriptors: [], omitted: 0 }
    expect(await session.referrers(app(registry), subject)).toEqual(none)
  })
})

describe('sessions', () => {
  test('identical calls under way are made once', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const blob = await pushBlob(target(registry), Buffer.from('hello'))
    registry.requests.length = 0
    const session = client([registry]).session(never())
    await Promise.all(
      [1, 2, 3].flatMap(() => [
        session.resolve(reference(registry, { tag: 'v1' })),
        session.manifest(app(registry), 'v1'),
        session.blob(app(registry), blob, 100),
        session.referrers(app(registry), image.digest),
      ]),
    )
    expect(paths(registry).sort()).toEqual([
      `GET /v2/app/blobs/${blob.digest}`,
      'GET /v2/app/manifests/v1',
      `GET /v2/app/referrers/${image.digest}`,
    ])
    expect(session.calls).toBe(3)
  })

  test('a failure is shared in a session and forgotten with it', async () => {
    const registry = await start()
    registry.faults.add({ kind: 'status', status: 403 }, { times: 1 })
    const registries = client([registry])
    const session = registries.session(never())
    const twice = [session.manifest(app(registry), 'v1'), session.manifest(app(registry), 'v1')]
    expect(await Promise.all(twice.map(codeOf))).toEqual([
      'REGISTRY_UNAUTHORIZED',
      'REGISTRY_UNAUTHORIZED',
    ])
    expect(registry.requests).toHaveLength(1)
    expect(await registries.session(never()).manifest(app(registry), 'v1')).toBeUndefined()
  })

  test('two sessions share no call that is under way, and the end of one does not end the other', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const silent: FetchPort = () => new Promise(() => undefined)
    const ports = [silent, fetch]
    const registries = client([registry], {
      fetch: (url, init) => (ports.shift() ?? fetch)(url, init),
    })
    const ending = new AbortController()
    const first = codeOf(registries.session(ending.signal).manifest(app(registry), 'v1'))
    // Its request is under way once every step that can be taken has been.
    await new Promise(setImmediate)
    const second = await registries.session(never()).manifest(app(registry), 'v1')
    ending.abort()
    expect(second?.descriptor).toEqual(image)
    expect(await first).toBe('DEADLINE_EXCEEDED')
    expect(ports).toEqual([])
  })

  test('at most six requests are under way at once', async () => {
    const registry = await start()
    let open = 0
    let most = 0
    const counting: typeof fetch = async (url, init) => {
      open++
      most = Math.max(most, open)
      const response = await fetch(url, init)
      const body = await response.arrayBuffer()
      open--
      return new Response(body, { status: response.status, headers: response.headers })
    }
    const session = client([registry], {
      fetch: (url, init) => counting(url, init),
    }).session(never())
    const tags = Array.from({ length: 40 }, (_, n) => `v${n}`)
    await Promise.all(tags.map((tag) => session.manifest(app(registry), tag)))
    expect(most).toBe(6)
    expect(session.calls).toBe(40)
  })
})
