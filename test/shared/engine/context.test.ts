import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { trustingFetch } from '#functions/cluster/https.ts'
import { type LocalClusterApi, startClusterApi } from '#functions/local/cluster-api.ts'
import type { Decision, JsonObject } from '#shared/admission/types.ts'
import { createClusterClient } from '#shared/cluster/client.ts'
import type { ContextPorts } from '#shared/cluster/types.ts'
import type { EngineOptions } from '#shared/engine/image-policy.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { NAMESPACE_TTL_MS } from '#shared/limits.ts'
import {
  admit,
  callFor,
  createWorld,
  podWith,
  policyText,
  requestFor,
  START,
  type World,
} from '#test/fakes/world.ts'

const IMAGE = `registry.example/app@sha256:${'a'.repeat(64)}`
const POD = podWith([IMAGE])
const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', labels: { env: 'prod' }, annotations: { owner: 'team-a' } },
}
const CONFIG_MAP = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'policy-cm', namespace: 'shop' },
  data: { env: 'prod' },
}

let world: World
let api: LocalClusterApi
let context: ContextPorts
beforeAll(async () => {
  world = await createWorld()
  api = await startClusterApi()
})
afterAll(async () => {
  await world.close()
  await api.close()
})
beforeEach(async () => {
  api.faults.clear()
  api.requests.length = 0
  api.put(NAMESPACE)
  api.put(CONFIG_MAP)
  world.clock.now = START
  const client = createClusterClient({
    server: api.url,
    token: () => api.token,
    fetch: await trustingFetch(api.ca),
    now: () => world.clock.now,
    random: () => 0,
  })
  context = { cluster: (name) => (name === 'prod' ? client : undefined) }
})

interface Parts {
  name?: string
  /** YAML lines of the spec. */
  spec?: string
  /** A validation, and what a denial says. */
  says?: string
  expression?: string
}

/** A policy that verifies nothing: what it says is what the test is about. */
function policy({ name = 'p', spec = '', expression = 'true', says = '"no"' }: Parts): string {
  const text = policyText(world.keys, {
    name,
    spec: `  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}\n${spec}`,
    validations: `    - expression: >-
        ${expression}
      messageExpression: >-
        ${says}`,
  })
  return text
}

async function engine(
  texts: readonly string[],
  options: Partial<EngineOptions> = {},
): Promise<ImagePolicyEngine> {
  return world.engine(texts, { context: async () => context, ...options })
}

async function validate(parts: Parts, object: JsonObject = POD): Promise<Decision> {
  return (await engine([policy(parts)])).validate(requestFor(object), callFor())
}

const messageOf = ({ status }: Decision) => status?.message

function selecting(terms: string): string {
  return `  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: ['*'], resources: [pods, namespaces]}
    namespaceSelector: ${terms}`
}

/** A whole policy whose namespace selector decides whether everything is denied. */
function denyWhere(terms: string, rest = ''): string {
  return policyText(world.keys, {
    name: 'p',
    validations: '    - expression: "false"\n      message: matched',
  })
    .replace(/ {2}matchConstraints:\n {4}resourceRules:\n.*\n/, `${selecting(terms)}\n`)
    .replace(
      'spec:\n',
      `spec:\n  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}\n${rest}`,
    )
}

describe('namespaceSelector', () => {
  test.each<[string, string, string | undefined, number]>([
    ['a label that matches', '{matchLabels: {env: prod}}', 'Policy p failed: matched', 1],
    ['a label that does not', '{matchLabels: {env: dev}}', undefined, 1],
    [
      'an expression',
      '{matchExpressions: [{key: env, operator: NotIn, values: [dev]}]}',
      'Policy p failed: matched',
      1,
    ],
    [
      'the name alone',
      '{matchLabels: {kubernetes.io/metadata.name: shop}}',
      'Policy p failed: matched',
      0,
    ],
    [
      'a name that decides before the labels',
      '{matchLabels: {env: prod, kubernetes.io/metadata.name: blog}}',
      undefined,
      0,
    ],
  ])('%s', async (_, terms, message, calls) => {
    const it = await engine([denyWhere(terms)])
    const decision = await it.validate(requestFor(POD), callFor())
    expect(messageOf(decision)).toBe(message)
    expect(api.requests).toHaveLength(calls)
  })

  test('asks nobody about what nothing else matches', async () => {
    const text = denyWhere('{matchLabels: {env: prod}}').replace(
      'resources: [pods, namespaces]',
      'resources: [jobs]',
    )
    expect((await (await engine([text])).validate(requestFor(POD), callFor())).allowed).toBe(true)
    expect(api.requests).toEqual([])
  })

  test('a Namespace is matched by the labels it comes with', async () => {
    const it = await engine([denyWhere('{matchLabels: {env: prod}}')])
    const other = { ...NAMESPACE, metadata: { name: 'new', labels: { env: 'dev' } } }
    const [own, not] = await Promise.all(
      [NAMESPACE, other].map((object) => it.validate(requestFor(object), callFor())),
    )
    expect(messageOf(own!)).toContain('Policy p')
    expect(not!.allowed).toBe(true)
    expect(api.requests).toEqual([])
  })

  test.each<[string, () => void, string]>([
    [
      'the token may not read it',
      () => api.faults.set('/api', { status: 403 }),
      'namespace "shop" is not known: GET /api/v1/namespaces/shop: RBAC of the cluster does not let the token read this (403)',
    ],
    [
      'the API server is away',
      () => api.faults.set('/api', 'cut'),
      `namespace "shop" is not known: GET ${'HOST'}/api/v1/namespaces/shop: connection failed (ECONNRESET)`,
    ],
    ['it does not exist', () => api.remove(NAMESPACE), 'namespace "shop" does not exist'],
  ])('nobody can tell when %s: denied, whatever the failurePolicy', async (_, break_, reason) => {
    break_()
    const it = await engine([denyWhere('{matchLabels: {env: dev}}', '  failurePolicy: Ignore\n')])
    const decision = await it.validate(requestFor(POD), callFor())
    const host = new URL(api.url).host
    expect(decision.allowed).toBe(false)
    expect(messageOf(decision)).toBe(
      `Policy p error: failed to execute matching: ${reason.replace('HOST', host)}`,
    )
  })

  test('nobody can tell without a connection: denied', async () => {
    const it = await engine([denyWhere('{matchLabels: {env: dev}}')])
    const decision = await it.validate(requestFor(POD), callFor({ cluster: 'other' }))
    expect(messageOf(decision)).toBe(
      'Policy p error: failed to execute matching: namespace "shop" is not known: nothing of the cluster can be read: the config has no clusters[].api for it',
    )
  })

  test('the namespace is kept for its time', async () => {
    const it = await engine([denyWhere('{matchLabels: {env: prod}}')])
    const ask = async () => (await it.validate(requestFor(POD), callFor())).allowed
    expect(await ask()).toBe(false)
    api.put({ ...NAMESPACE, metadata: { name: 'shop', labels: { env: 'dev' } } })
    expect(await ask()).toBe(false)
    world.clock.now += NAMESPACE_TTL_MS
    expect(await ask()).toBe(true)
    expect(api.requests).toHaveLength(2)
  })
})

describe('namespaceObject', () => {
  const OWNER = 'namespaceObject.metadata.annotations["owner"]'

  test.each<[string, Parts, string | undefined]>([
    ['in a validation', { expression: `${OWNER} == "team-a"` }, undefined],
    ['in a message', { expression: 'false', says: OWNER }, 'Policy p failed: team-a'],
    [
      'in a variable',
      {
        spec: `  variables: [{name: owner, expression: '${OWNER}'}]`,
        expression: 'false',
        says: 'variables.owner',
      },
      'Policy p failed: team-a',
    ],
    [
      'in a match condition',
      {
        spec: `  matchConditions: [{name: c, expression: '${OWNER} == "team-b"'}]`,
        expression: 'false',
      },
      undefined,
    ],
    [
      'in an extractor',
      {
        spec: `  images: [{name: own, expression: '[${OWNER}]'}]`,
        expression: 'false',
        says: 'images.own[0]',
      },
      'Policy p failed: team-a',
    ],
    [
      'with the label of its name',
      {
        expression: 'false',
        says: 'namespaceObject.metadata.labels["kubernetes.io/metadata.name"]',
      },
      'Policy p failed: shop',
    ],
  ])('%s', async (_, parts, message) => {
    const decision = await validate(parts)
    expect(messageOf(decision)).toBe(message)
    expect(api.requests).toEqual(['GET /api/v1/namespaces/shop'])
  })

  test('is asked for by nobody whose conditions do not hold', async () => {
    const spec = '  matchConditions: [{name: c, expression: \'request.name == "x"\'}]'
    expect((await validate({ spec, expression: `${OWNER} == "x"` })).allowed).toBe(true)
    expect(api.requests).toEqual([])
  })

  test('is null outside namespaces and where there is none', async () => {
    const outside = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: POD.spec! }
    const parts = { expression: 'namespaceObject == null' }
    expect((await validate(parts, outside)).allowed).toBe(true)
    expect(api.requests).toEqual([])
    api.remove(NAMESPACE)
    expect((await validate(parts)).allowed).toBe(true)
  })

  test('that it is not known is no null', async () => {
    api.faults.set('/api', { status: 403 })
    const decision = await validate({ expression: 'namespaceObject == null' })
    expect(messageOf(decision)).toBe(
      'Policy p error: failed to evaluate policy: namespace "shop" is not known: GET /api/v1/namespaces/shop: RBAC of the cluster does not let the token read this (403)',
    )
  })

  test('is the same for both phases, each asking within its time', async () => {
    const it = await engine([policy({ expression: `${OWNER} == "team-a"` })])
    const { mutated, validated } = await admit(it, POD)
    expect([mutated.allowed, validated.allowed]).toEqual([true, true])
    expect(api.requests).toHaveLength(1)
  })
})

describe('resource', () => {
  const GET = 'resource.get("v1", "configmaps", "shop", "policy-cm")'

  test.each<[string, string, string | undefined]>([
    ['an object', `${GET}.data.env == "prod"`, undefined],
    [
      'in the older spelling',
      `resource.Get("v1", "configmaps", request.namespace, "policy-cm").data.env == "prod"`,
      undefined,
    ],
    [
      'one that is not there',
      'dyn(resource.get("v1", "configmaps", "shop", "other")) == null',
      undefined,
    ],
    [
      'a list',
      'resource.list("v1", "configmaps", "shop").items.exists(i, i.metadata.name == "policy-cm")',
      undefined,
    ],
    [
      'a list by labels',
      'resource.List("v1", "configmaps", "shop", {"app": "none"}).items.size() == 0',
      undefined,
    ],
    [
      'by kind',
      'resource.get(resource.toGVR("v1", "ConfigMap"), "shop", "policy-cm").data.env == "dev"',
      'Policy p failed: no',
    ],
  ])('%s', async (_, expression, message) => {
    expect(messageOf(await validate({ expression }))).toBe(message)
  })

  test('is asked once for all policies and expressions of a review', async () => {
    const texts = ['a', 'b'].map((name) =>
      policy({
        name,
        spec: `  variables: [{name: cm, expression: '${GET}'}]`,
        expression: `variables.cm.data.env == "prod" && ${GET}.size() > 0`,
      }),
    )
    const decision = await (await engine(texts)).validate(requestFor(POD), callFor())
    expect(decision.allowed).toBe(true)
    expect(api.requests).toHaveLength(1)
    expect(decision.record).toMatchObject({ calls: { cluster: 1, http: 0 } })
  })

  test('is asked again by validate, whatever mutate sealed', async () => {
    const it = await engine([policy({ expression: `${GET}.data.env == "prod"` })])
    const { validated } = await admit(it, POD, {
      between: (object) => {
        api.put({ ...CONFIG_MAP, data: { env: 'dev' } })
        return object
      },
    })
    expect(validated.record).toMatchObject({ seal: 'open' })
    expect(messageOf(validated)).toBe('Policy p failed: no')
  })

  test('is asked under the strict contract, too', async () => {
    const outcomes = { onMissing: 'deny', lifetimeMs: 60_000 } as const
    const it = await engine([policy({ expression: `${GET}.data.env == "prod"` })], { outcomes })
    expect((await admit(it, POD)).validated.allowed).toBe(true)
  })

  test.each([
    ['403', { status: 403 }],
    ['503', { status: 503 }],
    ['malformed JSON', 'malformed JSON'],
    ['a page of somebody in between', 'html'],
  ] as const)('after %s nothing is null, and nothing passes', async (_, fault) => {
    api.faults.set('/api', fault)
    const decision = await validate({
      expression: 'dyn(resource.get("v1", "configmaps", "shop", "x")) == null',
    })
    expect(decision.allowed).toBe(false)
    expect(messageOf(decision)).toMatch(
      /^Policy p error: failed to evaluate policy: resource\.Get: GET /,
    )
  })

  test('after an outage the next review asks again', async () => {
    const it = await engine([policy({ expression: `${GET}.data.env == "prod"` })])
    api.faults.set('/api', { status: 503 })
    expect((await it.validate(requestFor(POD), callFor())).allowed).toBe(false)
    api.faults.clear()
    expect((await it.validate(requestFor(POD), callFor())).allowed).toBe(true)
  })

  test('a namespaced policy reads its namespace', async () => {
    const text = policy({
      expression: 'resource.get("v1", "configmaps", "policy-cm").data.env == "prod"',
    })
      .replace('kind: ImageValidatingPolicy', 'kind: NamespacedImageValidatingPolicy')
      .replace('  name: p\n', '  name: p\n  namespace: shop\n')
    const it = await engine([text])
    const decision = await it.validate(requestFor(POD), callFor({ scope: 'nivpol' }))
    expect(messageOf(decision)).toBeUndefined()
    expect(api.requests).toEqual(['GET /api/v1/namespaces/shop/configmaps/policy-cm'])
  })
})

describe('time and chance', () => {
  test('are the same for all that one review evaluates', async () => {
    const expression = `time.now() == timestamp("2026-03-01T12:00:00Z")
        && random() == random() && random("[a-c]{20}") == random("[a-c]{20}")
        && resource.get("v1", "configmaps", "shop", "policy-cm").size() > 0 && random() == variables.first`
    const spec = "  variables: [{name: first, expression: 'random()'}]"
    expect(messageOf(await validate({ spec, expression }))).toBeUndefined()
  })

  test('and need no connection', async () => {
    const text = policy({
      expression: `yaml.parse("a: [1]").a[0] == 1
        && gzip.decompress(gzip.compress("x")) == "x" && random("[0-9]{4}").matches("^[0-9]{4}$")`,
    })
    const decision = await (await world.engine([text])).validate(requestFor(POD), callFor())
    expect(messageOf(decision)).toBeUndefined()
  })
})
