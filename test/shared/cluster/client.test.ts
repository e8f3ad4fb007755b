import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { trustingFetch } from '#functions/cluster/https.ts'
import {
  type ClusterFault,
  type LocalClusterApi,
  startClusterApi,
} from '#functions/local/cluster-api.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { Budget } from '#shared/cluster/budget.ts'
import { createClusterClient } from '#shared/cluster/client.ts'
import type { ClusterClient, ClusterSession } from '#shared/cluster/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_CLUSTER_CALLS, NAMESPACE_TTL_MS } from '#shared/limits.ts'

const labelled = (name: string, labels: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
})
const configMap = (name: string, labels: Record<string, string> = {}, namespace = 'shop') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels },
  data: { certificate: 'PEM' },
})

let api: LocalClusterApi
const clock = { now: 1_000_000 }
beforeAll(async () => {
  api = await startClusterApi([
    labelled('shop', { env: 'prod' }),
    configMap('policy-cm', { app: 'a', tier: 'x' }),
    configMap('other', { app: 'b' }),
    configMap('far', { app: 'a' }, 'blog'),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:a' },
    },
  ])
})
afterAll(() => api.close())
beforeEach(() => {
  api.requests.length = 0
  api.faults.clear()
})

interface Changes {
  token?: string
  ca?: string
  server?: string
  callTimeoutMs?: number
}

async function clientWith({
  token,
  ca,
  server,
  callTimeoutMs,
}: Changes = {}): Promise<ClusterClient> {
  return createClusterClient({
    server: server ?? api.url,
    token: () => token ?? api.token,
    fetch: await trustingFetch(ca ?? api.ca),
    now: () => clock.now,
    random: () => 0,
    ...(callTimeoutMs === undefined ? {} : { callTimeoutMs }),
  })
}

function contextOf(signal = new AbortController().signal, calls = MAX_CLUSTER_CALLS, bytes = 1e7) {
  return new Budget(signal, { calls, bytes, code: 'CLUSTER_REFUSED', what: 'requests' }).context
}

async function session(changes: Changes = {}): Promise<ClusterSession> {
  return (await clientWith(changes)).session(contextOf())
}

/** Code and message of what a call throws. */
async function fault(call: Promise<unknown>): Promise<string> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof AdmissionError)) return `no AdmissionError but ${String(thrown)}`
  return `${thrown.code} ${thrown.message.replaceAll(new URL(api.url).host, 'server')}`
}

const inShop = { apiVersion: 'v1', resource: 'configmaps', namespace: 'shop' }

describe('what is there', () => {
  test('a namespace, with the label of its name', async () => {
    expect(await (await session()).namespace('shop')).toMatchObject({
      metadata: { name: 'shop', labels: { env: 'prod', 'kubernetes.io/metadata.name': 'shop' } },
    })
    expect(api.requests).toEqual(['GET /api/v1/namespaces/shop'])
  })

  test('an object in a namespace, and one outside whose name has a colon', async () => {
    const it = await session()
    expect(await it.get(inShop, 'policy-cm')).toMatchObject({ data: { certificate: 'PEM' } })
    const roles = { apiVersion: 'rbac.authorization.k8s.io/v1', resource: 'clusterroles' }
    expect(await it.get({ ...roles, namespace: '' }, 'system:a')).toMatchObject({
      metadata: { name: 'system:a' },
    })
    expect(api.requests[1]).toBe('GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa')
  })

  test.each<[string, Record<string, string>, string, string[]]>([
    ['of a namespace', {}, 'shop', ['policy-cm', 'other']],
    ['with a label', { app: 'a' }, 'shop', ['policy-cm']],
    ['with two labels', { app: 'a', tier: 'x' }, 'shop', ['policy-cm']],
    ['with a label that none has', { app: 'z' }, 'shop', []],
    ['of all namespaces', { app: 'a' }, '', ['policy-cm', 'far']],
  ])('a list %s', async (_, labels, namespace, names) => {
    const list = await (await session()).list({ ...inShop, namespace }, labels)
    const items = list.items as { metadata: { name: string } }[]
    expect(items.map(({ metadata }) => metadata.name)).toEqual(names)
  })

  test('the resource of a kind, never one of its subresources', async () => {
    const it = await session()
    expect(await it.resourceOf('apps/v1', 'Deployment')).toBe('deployments')
    expect(await it.resourceOf('networking.k8s.io/v1', 'NetworkPolicy')).toBe('networkpolicies')
  })

  test('what is not there is null', async () => {
    const it = await session()
    expect(await it.namespace('nowhere')).toBeNull()
    expect(await it.get(inShop, 'nothing')).toBeNull()
  })
})

describe('what is kept between reviews', () => {
  test('a namespace for its time, and no longer', async () => {
    const client = await clientWith()
    await client.session(contextOf()).namespace('shop')
    clock.now += NAMESPACE_TTL_MS - 1
    await client.session(contextOf()).namespace('shop')
    expect(api.requests).toHaveLength(1)
    clock.now += 1
    await client.session(contextOf()).namespace('shop')
    expect(api.requests).toHaveLength(2)
  })

  test('no object, no absence, no error', async () => {
    const client = await clientWith()
    for (let round = 0; round < 2; round++) {
      const object = await client.session(contextOf()).get(inShop, 'policy-cm')
      expect(object).toMatchObject({ data: { certificate: 'PEM' } })
      expect(await client.session(contextOf()).namespace('nowhere')).toBeNull()
    }
    expect(api.requests).toHaveLength(4)
    api.faults.set('/api/v1/namespaces/shop', { status: 403 })
    await fault(client.session(contextOf()).namespace('shop'))
    api.faults.clear()
    expect(await client.session(contextOf()).namespace('shop')).not.toBeNull()
  })

  test('the name of a resource', async () => {
    const client = await clientWith()
    await client.session(contextOf()).resourceOf('apps/v1', 'Deployment')
    await client.session(contextOf()).resourceOf('apps/v1', 'Deployment')
    expect(api.requests).toEqual(['GET /apis/apps/v1'])
  })
})

describe('what goes wrong is never an answer', () => {
  test.each<[string, ClusterFault, string]>([
    [
      '401',
      { status: 401 },
      'CLUSTER_REFUSED GET /api/v1/namespaces/shop: the API server does not accept the token (401)',
    ],
    [
      '403',
      { status: 403 },
      'CLUSTER_REFUSED GET /api/v1/namespaces/shop: RBAC of the cluster does not let the token read this (403)',
    ],
    ['418', { status: 418 }, 'CLUSTER_REFUSED GET /api/v1/namespaces/shop: no usable answer (418)'],
    ['429', { status: 429 }, 'CLUSTER_UNAVAILABLE GET server/api/v1/namespaces/shop: answered 429'],
    ['503', { status: 503 }, 'CLUSTER_UNAVAILABLE GET server/api/v1/namespaces/shop: answered 503'],
    [
      'a 404 that says nothing of the object',
      { status: 404 },
      'CLUSTER_RESPONSE_INVALID GET /api/v1/namespaces/shop: no usable answer: it is 404, and not from an API server',
    ],
    [
      'a 404 of somebody in between',
      'html',
      'CLUSTER_RESPONSE_INVALID GET /api/v1/namespaces/shop: no usable answer: it is 404, and not from an API server',
    ],
    [
      'malformed JSON',
      'malformed JSON',
      'CLUSTER_RESPONSE_INVALID GET /api/v1/namespaces/shop: no usable answer: it is malformed JSON',
    ],
    [
      'another object',
      'another object',
      'CLUSTER_RESPONSE_INVALID GET /api/v1/namespaces/shop: no usable answer: it is another object',
    ],
    [
      'a redirect',
      'redirect',
      'CLUSTER_RESPONSE_INVALID GET server/api/v1/namespaces/shop: answers with a redirect (302), which is not followed',
    ],
    [
      'an endless body',
      'endless body',
      'CLUSTER_RESPONSE_INVALID GET server/api/v1/namespaces/shop: more than 4194304 bytes',
    ],
    [
      'a connection that is cut',
      'cut',
      'CLUSTER_UNAVAILABLE GET server/api/v1/namespaces/shop: connection failed (ECONNRESET)',
    ],
  ])('%s', async (_, what, expected) => {
    api.faults.set('/api/v1/namespaces/shop', what)
    expect(await fault((await session()).namespace('shop'))).toBe(expected)
    const isTransient = expected.startsWith('CLUSTER_UNAVAILABLE')
    expect(api.requests).toHaveLength(isTransient ? 2 : 1)
  })

  test('no answer in time', async () => {
    api.faults.set('/api', 'silence')
    const it = await session({ callTimeoutMs: 50 })
    expect(await fault(it.namespace('shop'))).toBe(
      'CLUSTER_UNAVAILABLE GET server/api/v1/namespaces/shop: no answer in 50 ms',
    )
  })

  test('the review ends first', async () => {
    api.faults.set('/api', 'silence')
    const end = new AbortController()
    const waiting = fault((await clientWith()).session(contextOf(end.signal)).namespace('shop'))
    end.abort()
    expect(await waiting).toMatch(/^DEADLINE_EXCEEDED /)
  })

  test('a certificate of another authority', async () => {
    const { ca } = await createDevCertificates({ hosts: ['127.0.0.1'] })
    expect(await fault((await session({ ca })).namespace('shop'))).toMatch(
      /^CLUSTER_UNAVAILABLE GET server\/api\/v1\/namespaces\/shop: connection failed \([A-Z_]+\)$/,
    )
    expect(api.requests).toEqual([])
  })

  test('a certificate of another host', async () => {
    const server = api.url.replace('127.0.0.1', '127.0.0.2')
    expect(await fault((await session({ server })).namespace('shop'))).toMatch(
      /^CLUSTER_UNAVAILABLE /,
    )
    expect(api.requests).toEqual([])
  })

  test('another token, and one that no header takes, which is in no message', async () => {
    expect(await fault((await session({ token: 'other' })).namespace('shop'))).toMatch(/\(401\)$/)
    const said = await fault((await session({ token: 'secret\nvalue' })).namespace('shop'))
    expect(said).toBe('CONFIG_INVALID the token of the cluster has characters that no token has')
  })

  test('a resource, or a group, that the cluster does not have', async () => {
    const it = await session()
    const place = (apiVersion: string, resource: string) => ({ ...inShop, apiVersion, resource })
    expect(await fault(it.get(place('v1', 'widgets'), 'a'))).toBe(
      'CLUSTER_REFUSED GET /api/v1/namespaces/shop/widgets/a: the cluster has no such resource',
    )
    expect(await fault(it.list(place('v1', 'widgets'), {}))).toMatch(/no such resource$/)
    expect(await fault(it.list(place('example.com/v1', 'widgets'), {}))).toMatch(
      /not from an API server$/,
    )
    expect(await fault(it.resourceOf('v1', 'Widget'))).toBe(
      'CLUSTER_REFUSED the cluster has no kind "Widget" in v1',
    )
  })

  test.each<[string, (it: ClusterSession) => Promise<unknown>]>([
    ['a name with a slash', (it) => it.get(inShop, 'a/../../secrets/b')],
    ['no name', (it) => it.get(inShop, '')],
    ['a name that leads up', (it) => it.get(inShop, '..')],
    ['an encoded slash', (it) => it.get(inShop, 'a%2fb')],
    ['a resource with a query', (it) => it.list({ ...inShop, resource: 'pods?watch=1' }, {})],
    ['a resource with a slash', (it) => it.list({ ...inShop, resource: 'pods/log' }, {})],
    ['a namespace with a slash', (it) => it.get({ ...inShop, namespace: 'a/b' }, 'c')],
    ['a version that leads up', (it) => it.get({ ...inShop, apiVersion: '..' }, 'c')],
    ['a version of three parts', (it) => it.get({ ...inShop, apiVersion: 'a/b/v1' }, 'c')],
    ['a label value that is a selector', (it) => it.list(inShop, { app: 'a,tier!=x' })],
    ['a label key that is a selector', (it) => it.list(inShop, { 'app in (a)': '' })],
    ['a label that is no text', (it) => it.list(inShop, { app: 1 })],
  ])('%s is asked of nobody', async (_, call) => {
    expect(await fault(call(await session()))).toMatch(/^CLUSTER_REFUSED .* is not (?:an?|the) /)
    expect(api.requests).toEqual([])
  })
})

describe('the share of one review', () => {
  test('so many requests and no more', async () => {
    const it = (await clientWith()).session(contextOf(undefined, 2))
    await it.get(inShop, 'policy-cm')
    await it.get(inShop, 'other')
    expect(await fault(it.get(inShop, 'policy-cm'))).toBe(
      'CLUSTER_REFUSED more than 2 requests for one review',
    )
    expect(api.requests).toHaveLength(2)
  })

  test('so many bytes and no more', async () => {
    const it = (await clientWith()).session(contextOf(undefined, 10, 100))
    expect(await fault(it.list(inShop, {}))).toBe(
      'CLUSTER_REFUSED requests gave more than 100 bytes for one review',
    )
  })
})
