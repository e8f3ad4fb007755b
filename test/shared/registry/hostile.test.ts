import { afterEach, describe, expect, test, vi } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import { pushBlob } from '#functions/local/push.ts'
import type { RegistryFault } from '#functions/local/registry-faults.ts'
import { MAX_ERROR_BYTES, MAX_MANIFEST_BYTES, MAX_SESSION_BYTES } from '#shared/limits.ts'
import type { FetchPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import { app, client, codeOf, never, paths, start, target } from './setup.ts'

afterEach(() => {
  vi.useRealTimers()
})

const CHUNK = new Uint8Array(16 * 1024)

/** A client whose every request is answered by `fetch`, at a host nobody asks the DNS for. */
function answeredBy(fetch: FetchPort, callTimeoutMs = 5000) {
  return createRegistryClient({
    fetch,
    now: Date.now,
    random: () => 0,
    credentials: async () => undefined,
    callTimeoutMs,
  })
}

const place = { host: 'registry.example', repository: 'app' }

/** A body without an end, and what became of it. */
function endlessBody() {
  const seen = { bytes: 0, cancelled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        seen.bytes += CHUNK.length
        controller.enqueue(CHUNK)
      },
      cancel: () => {
        seen.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { body, seen }
}

describe('a hostile registry', () => {
  test.each<{ name: string; fault: RegistryFault; code: string; requests: number; ms?: number }>([
    {
      name: 'that cuts the connection is tried twice',
      fault: { kind: 'down' },
      code: 'REGISTRY_UNREACHABLE',
      requests: 2,
    },
    {
      name: 'that never answers is given up, once',
      fault: { kind: 'stall' },
      code: 'REGISTRY_UNREACHABLE',
      requests: 1,
      ms: 50,
    },
    {
      name: 'that answers a byte at a time is given up',
      fault: { kind: 'slow', everyMs: 5 },
      code: 'REGISTRY_UNREACHABLE',
      requests: 1,
      ms: 100,
    },
    {
      name: 'that answers without end is too large',
      fault: { kind: 'endless' },
      code: 'REGISTRY_TOO_LARGE',
      requests: 1,
    },
    {
      name: 'that announces a gigabyte is too large',
      fault: { kind: 'content-length', bytes: 2 ** 30 },
      code: 'REGISTRY_TOO_LARGE',
      requests: 1,
    },
    {
      name: 'that redirects for ever is left after five',
      fault: { kind: 'redirect-loop' },
      code: 'REGISTRY_UNREACHABLE',
      requests: 6,
    },
    {
      name: 'that throttles is tried twice',
      fault: { kind: 'status', status: 429 },
      code: 'REGISTRY_THROTTLED',
      requests: 2,
    },
    {
      name: 'that fails is tried twice',
      fault: { kind: 'status', status: 500 },
      code: 'REGISTRY_UNREACHABLE',
      requests: 2,
    },
    {
      name: 'that refuses is tried once',
      fault: { kind: 'status', status: 403 },
      code: 'REGISTRY_UNAUTHORIZED',
      requests: 1,
    },
    {
      name: 'that is a teapot is tried once',
      fault: { kind: 'status', status: 418 },
      code: 'REGISTRY_UNREACHABLE',
      requests: 1,
    },
    {
      name: 'that answers 204 has no manifest',
      fault: { kind: 'status', status: 204 },
      code: 'REGISTRY_UNREACHABLE',
      requests: 1,
    },
    {
      name: 'that redirects to nowhere is not followed',
      fault: { kind: 'status', status: 302 },
      code: 'REGISTRY_UNREACHABLE',
      requests: 1,
    },
  ])('$name', async ({ fault, code, requests, ms = 5000 }) => {
    const registry = await start()
    await pushImage(target(registry), { text: 'one', tag: 'v1' })
    registry.requests.length = 0
    registry.faults.add(fault)
    const session = client([registry], { callTimeoutMs: ms }).session(never())
    expect(await codeOf(session.manifest(app(registry), 'v1'))).toBe(code)
    expect(registry.requests).toHaveLength(requests)
    expect(session.calls).toBe(requests)
  })

  test('that is back at the second try is believed', async () => {
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    for (const fault of [{ kind: 'down' }, { kind: 'status', status: 503 }] as const) {
      registry.faults.add(fault, { times: 1 })
      const manifest = await client([registry]).session(never()).manifest(app(registry), 'v1')
      expect(manifest?.descriptor).toEqual(image)
    }
  })

  test.each([
    'http://169.254.169.254/latest/meta-data/',
    'https://169.254.169.254/latest/meta-data/',
    'https://0xa9fea9fe/',
    'https://2852039166/',
    'https://[fd00:ec2::254]/',
    'https://[::ffff:169.254.169.254]/',
    'https://metadata.google.internal/',
    'https://localhost/',
    'https://kubernetes.default.svc/',
    'https://registry/',
    'https://user:secret@registry.example/',
    'http://registry.example/',
    'ftp://registry.example/',
    'file:///etc/passwd',
    'data:application/json,{}',
    'javascript:0',
  ])('that redirects to %s is not followed', async (to) => {
    const registry = await start()
    registry.faults.add({ kind: 'redirect', to })
    const session = client([registry]).session(never())
    expect(await codeOf(session.manifest(app(registry), 'v1'))).toBe('REGISTRY_FORBIDDEN_ADDRESS')
    expect(registry.requests).toHaveLength(1)
    expect(session.calls).toBe(1)
  })

  test('that redirects back to another port of its own is elsewhere, too', async () => {
    const registry = await start()
    const other = await start()
    registry.faults.add({ kind: 'redirect', to: `${other.url}/v2/app/manifests/v1` })
    const session = client([registry]).session(never())
    expect(await codeOf(session.manifest(app(registry), 'v1'))).toBe('REGISTRY_FORBIDDEN_ADDRESS')
    expect(other.requests).toEqual([])
  })

  test('a redirect to storage is followed and its content hashed', async () => {
    const registry = await start()
    const storage = await start()
    const blob = await pushBlob(target(registry), Buffer.from('hello'))
    await pushBlob(target(storage), Buffer.from('hello'))
    registry.faults.add({ kind: 'redirect', to: `${storage.url}/v2/app/blobs/${blob.digest}` })
    const session = client([registry, storage]).session(never())
    expect(Buffer.from(await session.blob(app(registry), blob, 100)).toString()).toBe('hello')
    storage.faults.add({ kind: 'wrong-bytes' })
    const another = client([registry, storage]).session(never())
    expect(await codeOf(another.blob(app(registry), blob, 100))).toBe('REGISTRY_DIGEST_MISMATCH')
  })

  test.each([
    'localhost:5000',
    '127.0.0.1',
    '127.0.0.1:5000',
    '0x7f.1',
    '10.0.0.8:5000',
    '8.8.8.8',
    '[::1]:5000',
    'registry',
    'registry.local:5000',
    'registry.kube-system.svc',
    'registry.kube-system.svc.cluster.local',
    'registry.example@169.254.169.254',
    'registry.example/..',
    'registry.example?x',
    'registry.example#x',
    'registry.example:99999',
    'registry.example.',
    '',
  ])('an image at %j costs no request', async (host) => {
    const session = answeredBy(async () => new Response('{}')).session(never())
    expect(await codeOf(session.manifest({ host, repository: 'app' }, 'v1'))).toBe(
      'REGISTRY_FORBIDDEN_ADDRESS',
    )
    expect(session.calls).toBe(0)
  })
})

describe('memory', () => {
  test.each([
    {
      name: 'a manifest is read to its bound',
      status: 200,
      atMost: MAX_MANIFEST_BYTES,
      code: 'REGISTRY_TOO_LARGE',
    },
    {
      name: 'an error is read to its bound',
      status: 403,
      atMost: MAX_ERROR_BYTES,
      code: 'REGISTRY_UNAUTHORIZED',
    },
  ])('$name and the rest let go', async ({ status, atMost, code }) => {
    const { body, seen } = endlessBody()
    const session = answeredBy(async () => new Response(body, { status })).session(never())
    expect(await codeOf(session.manifest(place, 'v1'))).toBe(code)
    expect(seen.bytes).toBeLessThanOrEqual(atMost + CHUNK.length)
    expect(seen.cancelled).toBe(true)
  })

  test('a blob is read to the size of its descriptor', async () => {
    const { body, seen } = endlessBody()
    const session = answeredBy(async () => new Response(body)).session(never())
    const digest = `sha256:${'0'.repeat(64)}`
    const blob = session.blob(place, { mediaType: 'x', digest, size: 10 }, 100)
    expect(await codeOf(blob)).toBe('REGISTRY_TOO_LARGE')
    expect(seen).toEqual({ bytes: CHUNK.length, cancelled: true })
  })

  test('of what is announced too large nothing is read', async () => {
    const { body, seen } = endlessBody()
    const headers = { 'content-length': String(MAX_MANIFEST_BYTES + 1) }
    const session = answeredBy(async () => new Response(body, { headers })).session(never())
    expect(await codeOf(session.manifest(place, 'v1'))).toBe('REGISTRY_TOO_LARGE')
    expect(seen).toEqual({ bytes: 0, cancelled: true })
  })

  test('a content length that is too small is not believed', async () => {
    const { body, seen } = endlessBody()
    const headers = { 'content-length': '2' }
    const session = answeredBy(async () => new Response(body, { headers })).session(never())
    expect(await codeOf(session.manifest(place, 'v1'))).toBe('REGISTRY_TOO_LARGE')
    expect(seen.cancelled).toBe(true)
  })

  test('of a redirect nothing is read', async () => {
    const { body, seen } = endlessBody()
    const headers = { location: 'https://localhost/' }
    const fetch: FetchPort = async () => new Response(body, { status: 302, headers })
    const session = answeredBy(fetch).session(never())
    expect(await codeOf(session.manifest(place, 'v1'))).toBe('REGISTRY_FORBIDDEN_ADDRESS')
    expect(seen).toEqual({ bytes: 0, cancelled: true })
  })
})

describe('time', () => {
  const forever = new Promise<never>(() => undefined)
  const silentBody = () => new Response(new ReadableStream({ pull: () => forever }))
  test.each<{ name: string; fetch: FetchPort }>([
    { name: 'before there is an answer', fetch: () => forever },
    { name: 'in the middle of a body', fetch: async () => silentBody() },
    {
      name: 'in the middle of an error',
      fetch: async () => new Response(silentBody().body, { status: 403 }),
    },
    {
      name: 'while waiting for the second try',
      fetch: async () => new Response('', { status: 503, headers: { 'retry-after': '4' } }),
    },
  ])('the signal ends a call $name, even when the platform ignores it', async ({ fetch }) => {
    const ending = new AbortController()
    const session = answeredBy(fetch).session(ending.signal)
    const code = codeOf(session.manifest(place, 'v1'))
    await new Promise(setImmediate)
    ending.abort()
    expect(await code).toBe('DEADLINE_EXCEEDED')
    expect(session.calls).toBe(1)
  })

  test('a request that ends with the signal is not made again', async () => {
    const ending = new AbortController()
    const honest: FetchPort = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new DOMException('x', 'AbortError')))
      })
    const session = answeredBy(honest).session(ending.signal)
    const code = codeOf(session.manifest(place, 'v1'))
    await new Promise(setImmediate)
    ending.abort()
    expect(await code).toBe('DEADLINE_EXCEEDED')
    await new Promise(setImmediate)
    expect(session.calls).toBe(1)
  })

  test.each([
    { name: 'the request ends', end: (ending: AbortController) => ending.abort() },
    { name: 'its time is over', end: () => vi.advanceTimersByTimeAsync(1000) },
  ])('the platform is told to stop when $name', async ({ end }) => {
    vi.useFakeTimers()
    const ending = new AbortController()
    const signals: (AbortSignal | null | undefined)[] = []
    const fetch: FetchPort = (_, { signal }) => {
      signals.push(signal)
      return forever
    }
    const code = codeOf(answeredBy(fetch, 1000).session(ending.signal).manifest(place, 'v1'))
    await vi.advanceTimersByTimeAsync(0)
    expect(signals.map((signal) => signal?.aborted)).toEqual([false])
    await end(ending)
    expect(signals.map((signal) => signal?.aborted)).toEqual([true])
    expect(await code).not.toBe('no error')
  })

  test('calls that wait for a connection end with the signal and are never made', async () => {
    const ending = new AbortController()
    const session = answeredBy(() => forever).session(ending.signal)
    const tags = Array.from({ length: 20 }, (_, n) => `v${n}`)
    const codes = Promise.all(tags.map((tag) => codeOf(session.manifest(place, tag))))
    await new Promise(setImmediate)
    expect(session.calls).toBe(6)
    ending.abort()
    expect(new Set(await codes)).toEqual(new Set(['DEADLINE_EXCEEDED']))
    expect(session.calls).toBe(6)
  })

  test('a call after the end is never made', async () => {
    const session = answeredBy(() => forever).session(AbortSignal.abort())
    expect(await codeOf(session.manifest(place, 'v1'))).toBe('DEADLINE_EXCEEDED')
    expect(session.calls).toBe(0)
  })

  test('the time of a call does not run while it waits for a connection', async () => {
    vi.useFakeTimers()
    const fetch: FetchPort = () =>
      new Promise((resolve) => {
        setTimeout(() => resolve(new Response('', { status: 404 })), 900)
      })
    const session = answeredBy(fetch, 1000).session(never())
    const tags = Array.from({ length: 18 }, (_, n) => `v${n}`)
    const codes = Promise.all(tags.map((tag) => codeOf(session.manifest(place, tag))))
    await vi.advanceTimersByTimeAsync(2700)
    expect(new Set(await codes)).toEqual(new Set(['no error']))
  })

  const date = (ms: number) => new Date(Date.now() + ms).toUTCString()
  test.each([
    { name: 'without Retry-After at once', retryAfter: undefined, afterMs: 0, calls: 2 },
    { name: 'after the seconds it says', retryAfter: () => '3', afterMs: 3000, calls: 2 },
    { name: 'after the date it says', retryAfter: () => date(3000), afterMs: 3000, calls: 2 },
    { name: 'at once after a date gone by', retryAfter: () => date(-9000), afterMs: 0, calls: 2 },
    { name: 'at once after nonsense', retryAfter: () => 'soon', afterMs: 0, calls: 2 },
    { name: 'not when that would be too late', retryAfter: () => '5', afterMs: 0, calls: 1 },
    { name: 'not after a year', retryAfter: () => '31536000', afterMs: 0, calls: 1 },
  ])('a throttled call is made again $name', async ({ retryAfter, afterMs, calls }) => {
    vi.useFakeTimers({ now: 1_700_000_000_000 })
    const headers: Record<string, string> = {}
    if (retryAfter !== undefined) headers['retry-after'] = retryAfter()
    const fetch: FetchPort = async () => new Response('', { status: 429, headers })
    const session = answeredBy(fetch).session(never())
    const code = codeOf(session.manifest(place, 'v1'))
    if (afterMs > 0) {
      await vi.advanceTimersByTimeAsync(afterMs - 1)
      expect(session.calls).toBe(1)
    }
    await vi.advanceTimersByTimeAsync(1)
    expect(session.calls).toBe(calls)
    expect(await code).toBe('REGISTRY_THROTTLED')
  })

  test('no timer is left behind by a call that is answered', async () => {
    vi.useFakeTimers()
    const session = answeredBy(async () => new Response('', { status: 404 })).session(never())
    expect(await session.manifest(place, 'v1')).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('messages', () => {
  test('hold the error code of a registry and nothing else it says', async () => {
    const registry = await start()
    const body = JSON.stringify({ errors: [{ code: 'DENIED', message: 'Bearer s3cr3t' }] })
    registry.faults.add({ kind: 'status', status: 403, body })
    const session = client([registry]).session(never())
    await expect(session.manifest(app(registry), 'v1')).rejects.toMatchObject({
      message: `${registry.host}/app: answered 403 DENIED`,
    })
  })

  test.each([
    { name: 'prose for a code', body: '{"errors":[{"code":"Bearer s3cr3t"}]}' },
    { name: 'HTML', body: '<html>s3cr3t</html>' },
    { name: 'errors that are no list', body: '{"errors":"s3cr3t"}' },
    { name: 'nothing', body: '' },
  ])('pass on no $name', async ({ body }) => {
    const registry = await start()
    registry.faults.add({ kind: 'status', status: 403, body })
    const session = client([registry]).session(never())
    await expect(session.manifest(app(registry), 'v1')).rejects.toMatchObject({
      message: `${registry.host}/app: answered 403`,
    })
  })

  test('name no query of a redirect', async () => {
    const registry = await start()
    registry.faults.add({ kind: 'redirect', to: 'https://10.0.0.1/blob?signature=s3cr3t' })
    const session = client([registry]).session(never())
    await expect(session.manifest(app(registry), 'v1')).rejects.toMatchObject({
      message: expect.not.stringContaining('s3cr3t'),
    })
    expect(paths(registry)).toHaveLength(1)
  })
})

describe('a registry that sends as much as it may', () => {
  /** A manifest of nearly the greatest length, different for each tag, and how many were asked for. */
  function heavy() {
    const seen = { requests: 0 }
    const padding = 'x'.repeat(MAX_MANIFEST_BYTES - 1024)
    const fetch: FetchPort = async (url) => {
      seen.requests++
      const mediaType = 'application/vnd.oci.image.manifest.v1+json'
      const body = JSON.stringify({ mediaType, layers: [], annotations: { url, padding } })
      return new Response(body, { headers: { 'content-type': mediaType } })
    }
    return { seen, session: answeredBy(fetch).session(never()) }
  }

  test('is heard until the review has had its share, and not asked again', async () => {
    const { seen, session } = heavy()
    const fits = Math.floor(MAX_SESSION_BYTES / MAX_MANIFEST_BYTES)
    for (let n = 0; n < fits; n++) await session.manifest(place, `v${n}`)
    expect(await codeOf(session.manifest(place, 'over'))).toBe('REGISTRY_BUDGET_SPENT')
    expect(await codeOf(session.manifest(place, 'after'))).toBe('REGISTRY_BUDGET_SPENT')
    expect(seen.requests).toBe(fits + 1)
  })

  test('leaves the share of other reviews alone', async () => {
    const { session } = heavy()
    await Promise.allSettled(Array.from({ length: 20 }, (_, n) => session.manifest(place, `v${n}`)))
    const registry = await start()
    const image = await pushImage(target(registry), { text: 'one', tag: 'v1' })
    const other = await client([registry]).session(never()).manifest(app(registry), 'v1')
    expect(other?.descriptor).toEqual(image)
  })

  test.each([
    { name: 'objects', item: '{}' },
    { name: 'arrays', item: '[]' },
    { name: 'numbers', item: '0' },
  ])('cannot make many $name of few bytes', async ({ item }) => {
    const mediaType = 'application/vnd.oci.image.manifest.v1+json'
    const answered = (count: number, padding = '') => {
      const layers = `[${`${item},`.repeat(count)}"${padding}"]`
      const body = `{"mediaType":"${mediaType}","layers":${layers}}`
      return codeOf(
        answeredBy(async () => new Response(body))
          .session(never())
          .manifest(place, 'v1'),
      )
    }
    expect(await answered(400)).toBe('no error')
    expect(await answered(1000)).toBe('REGISTRY_RESPONSE_INVALID')
    expect(await answered(1000, 'x'.repeat(40_000))).toBe('no error')
    expect(await answered(1_000_000)).toBe('REGISTRY_RESPONSE_INVALID')
  })
})
