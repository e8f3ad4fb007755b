import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromBase64, toBase64 } from '#shared/bytes.ts'
import { randomText } from '#shared/cluster/random.ts'
import { ContextSession } from '#shared/cluster/session.ts'
import type { ContextPorts, HttpCall } from '#shared/cluster/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { JsonDouble, type JsonValue } from '#shared/json.ts'
import { MAX_UNPACKED_BYTES } from '#shared/limits.ts'

function session(ports: ContextPorts = {}): ContextSession {
  const now = () => Date.parse('2026-03-01T12:00:00.5Z')
  return new ContextSession({ ports, cluster: 'prod', signal: new AbortController().signal, now })
}

function answer(
  name: string,
  args: readonly JsonValue[],
  ports?: ContextPorts,
  namespace?: string,
) {
  return session(ports).answer({ name, args }, namespace)
}

async function fault(call: Promise<unknown>): Promise<string> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  return thrown instanceof AdmissionError ? `${thrown.code} ${thrown.message}` : String(thrown)
}

/** A cluster that tells what it was asked for. */
const echo: ContextPorts = {
  cluster: (name) => ({
    session: () => ({
      namespace: async (namespace) => ({ cluster: name, namespace }),
      get: async (place, object) => ({ ...place, object }),
      list: async (place, labels) => ({ ...place, labels }),
      resourceOf: async (apiVersion, kind) => `${apiVersion} ${kind}`,
    }),
  }),
}

function http(inNamespaces: boolean): ContextPorts & { asked: HttpCall[] } {
  const asked: HttpCall[] = []
  const send = async (call: HttpCall) => {
    asked.push(call)
    return { statusCode: 200 }
  }
  return { asked, http: { inNamespaces, send } }
}

describe('the cluster', () => {
  test.each<[string, JsonValue[], string | undefined, JsonValue]>([
    [
      'resource.Get',
      ['v1', 'pods', 'a', 'x'],
      undefined,
      { apiVersion: 'v1', resource: 'pods', namespace: 'a', object: 'x' },
    ],
    [
      'resource.List',
      ['v1', 'pods', 'a', { b: 'c' }],
      undefined,
      { apiVersion: 'v1', resource: 'pods', namespace: 'a', labels: { b: 'c' } },
    ],
    ['resource.ToGVR', ['v1', 'Pod'], undefined, { apiVersion: 'v1', resource: 'v1 Pod' }],
    [
      'resource.Get',
      ['v1', 'pods', null, 'x'],
      'shop',
      { apiVersion: 'v1', resource: 'pods', namespace: 'shop', object: 'x' },
    ],
  ])('%s %j of a policy in %s', async (name, args, namespace, expected) => {
    expect(await answer(name, args, echo, namespace)).toEqual(expected)
  })

  test('a namespaced policy reads its own namespace, whatever a call says', async () => {
    expect(
      await answer('resource.Get', ['v1', 'secrets', 'other', 'x'], echo, 'shop'),
    ).toMatchObject({
      namespace: 'shop',
    })
    expect(await answer('resource.List', ['v1', 'secrets', '', {}], echo, 'shop')).toMatchObject({
      namespace: 'shop',
    })
  })

  test.each<[string, JsonValue[]]>([
    ['resource.Get', ['v1', 'pods', 'a', 'x']],
    ['resource.List', ['v1', 'pods', 'a', {}]],
    ['resource.ToGVR', ['v1', 'Pod']],
  ])('without a connection %s is refused', async (name, args) => {
    const refused =
      'CLUSTER_REFUSED nothing of the cluster can be read: the config has no clusters[].api for it'
    expect(await fault(answer(name, args))).toBe(refused)
    expect(await fault(answer(name, args, { cluster: () => undefined }))).toBe(refused)
    expect(await fault(session().namespace('shop'))).toBe(refused)
  })

  test.each(['resource.Post', 'globalContext.Get', 'http.Put', 'anything'])(
    'nobody answers %s',
    async (name) => {
      expect(await fault(answer(name, ['a', 'b', 'c', {}], echo))).toBe(
        'CEL_EVALUATION nobody answers here',
      )
    },
  )
})

describe('requests', () => {
  test('of a cluster policy', async () => {
    const ports = http(false)
    await answer('http.Get', ['https://a/', { h: 'v' }, 'CA'], ports)
    await answer('http.Post', ['https://a/', { b: 1 }, {}, ''], ports)
    expect(ports.asked).toEqual([
      { method: 'GET', url: 'https://a/', headers: { h: 'v' }, ca: 'CA' },
      { method: 'POST', url: 'https://a/', body: { b: 1 }, headers: {}, ca: '' },
    ])
  })

  test('of a namespaced policy only where the config lets it', async () => {
    const refused = http(false)
    expect(await fault(answer('http.Get', ['https://a/', {}, ''], refused, 'shop'))).toBe(
      'HTTP_REFUSED http calls are not allowed in namespaced policies: set http.namespacedPolicies to enable',
    )
    expect(refused.asked).toEqual([])
    const let_ = http(true)
    await answer('http.Get', ['https://a/', {}, ''], let_, 'shop')
    expect(let_.asked).toHaveLength(1)
  })

  test('of nobody without the section', async () => {
    expect(await fault(answer('http.Get', ['https://a/', {}, '']))).toBe(
      'HTTP_REFUSED policies make no requests: the config has no http.allow',
    )
  })
})

describe('what needs nobody', () => {
  test('the time', async () => {
    expect(await answer('time.now', [])).toBe('2026-03-01T12:00:00.500Z')
  })

  test.each<[string, JsonValue]>([
    ['a: [1, yes, 1.5]', { a: [new JsonDouble(1), true, 1.5] }],
    ['', null],
    ['a: 1\n---\nb: 2', { a: new JsonDouble(1) }],
  ])('YAML %j', async (text, expected) => {
    expect(await answer('yaml.parse', [text])).toEqual(expected)
  })

  test('YAML that is none', async () => {
    expect(await fault(answer('yaml.parse', ['a: ['])).catch(String)).toMatch(/^CEL_EVALUATION /)
  })

  test('gzip there and back', async () => {
    const packed = await answer('gzip.compress', ['hello '.repeat(100)])
    expect(fromBase64(String(packed))!.length).toBeLessThan(100)
    expect(await answer('gzip.decompress', [packed])).toBe('hello '.repeat(100))
  })

  test.each<[string, string, RegExp]>([
    ['no gzip', toBase64(new Uint8Array([1, 2, 3])), /^CEL_EVALUATION /],
    ['no base64', '?', /^CEL_EVALUATION not base64$/],
    ['cut off', toBase64(gzipSync('hello').subarray(0, 12)), /^CEL_EVALUATION /],
    ['no text', toBase64(gzipSync(new Uint8Array([0xff]))), /^CEL_EVALUATION /],
    [
      'a bomb',
      toBase64(gzipSync(new Uint8Array(MAX_UNPACKED_BYTES + 1))),
      /^CEL_EVALUATION unpacks to more than 4194304 bytes$/,
    ],
  ])('gzip.decompress of %s', async (_, data, expected) => {
    expect(await fault(answer('gzip.decompress', [data]))).toMatch(expected)
  })

  test('chance, in its pattern', async () => {
    expect(await answer('random', ['[0-9a-z]{8}'])).toMatch(/^[0-9a-z]{8}$/)
    expect(await answer('random', ['[0-9a-z]{16}'])).not.toBe(
      await answer('random', ['[0-9a-z]{16}']),
    )
    expect(await fault(answer('random', ['['])).catch(String)).toMatch(/^CEL_EVALUATION /)
    expect(await fault(answer('random', ['a{1000}b{1000}']))).toBe(
      'CEL_EVALUATION the text has more than 1024 characters',
    )
    expect(await fault(answer('random', ['a\\bb']))).toBe(
      'CEL_EVALUATION no text could be made for the pattern',
    )
  })
})

describe('randomText', () => {
  test.each([
    'abc',
    '[a-c]{3,5}',
    '(?:x|y)+z*',
    '\\d{3}-\\w?',
    '^v[0-9]+$',
    '(?i)abc',
    '.',
    '[^a]',
  ])('what is made for %s it matches', (pattern) => {
    fc.assert(
      fc.property(fc.array(fc.nat()), (draws) => {
        let at = 0
        const made = randomText(pattern, (bound) => (draws[at++] ?? 0) % bound)
        expect(made).toMatch(new RegExp(`^(?:${pattern.replace('(?i)', '')})$`))
        expect(made).toMatch(/^[ -~]*$/)
      }),
    )
  })
})

test('every text comes back out of gzip', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), async (text) => {
      const packed = await answer('gzip.compress', [text])
      expect(await answer('gzip.decompress', [packed])).toBe(text)
    }),
    { numRuns: 30 },
  )
})
