import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { readConfig } from '#functions/files.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { missingVariables } from '#functions/ports.ts'
import { AdmissionError } from '#shared/errors.ts'
import { load, policyDocument } from '#test/shared/policy/documents.ts'

const API = { server: 'https://api.prod.example:6443', tokenEnv: 'PROD_TOKEN' }

/** A config with these fields beside the necessary ones, and with these in its only cluster. */
function configOf(fields: object = {}, cluster: object = {}) {
  return {
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: ['a'.repeat(64)], ...cluster }],
    ...fields,
  }
}

function faultsOf(thrown: unknown): string[] {
  if (!(thrown instanceof AdmissionError)) throw thrown
  expect(thrown.code).toBe('CONFIG_INVALID')
  return thrown.faults.map(({ path: where, message }) => `${where}: ${message}`)
}

function parseFaults(input: unknown): string[] {
  try {
    parseConfig(input)
    return []
  } catch (thrown) {
    return faultsOf(thrown)
  }
}

describe('clusters[].api and http', () => {
  test('are in the config as they are written, with defaults', () => {
    const http = { allow: ['scans.example.com'] }
    const config = parseConfig(configOf({ http }, { api: API }))
    expect(config.clusters[0]!.api).toEqual(API)
    expect(config.http).toEqual({ ...http, plainHttp: [], namespacedPolicies: false })
    expect(missingVariables(config, { SEAL: 'x' })).toEqual(['PROD_TOKEN'])
  })

  test.each<[string, object, string]>([
    [
      'a server with a path',
      { server: 'https://a.example/api' },
      'clusters[0].api.server: expected https://host[:port] without a path',
    ],
    [
      'a server without TLS',
      { server: 'http://a.example' },
      'clusters[0].api.server: expected https://host[:port] without a path',
    ],
    [
      'a login in the server',
      { server: 'https://a:b@a.example' },
      'clusters[0].api.server: expected https://host[:port] without a path',
    ],
    [
      'a token where its name belongs',
      { tokenEnv: 'eyJhbGciOi' },
      'clusters[0].api.tokenEnv: expected the NAME of an environment variable or binding (A-Z, 0-9, _); secrets never stand in this file',
    ],
    [
      'certificates that are given by the config itself',
      { ca: 'PEM' },
      'clusters[0].api.ca: unknown key; known keys: server, tokenEnv, caFile',
    ],
  ])('%s is a fault', (_, changes, fault) => {
    expect(parseFaults(configOf({}, { api: { ...API, ...changes } }))).toEqual([fault])
  })

  test.each([
    '169.254.169.254',
    '169.254.169.253',
    '169.254.169.254:80',
    'metadata.google.internal',
    '[fd00:ec2::254]',
    '[fe80::1]',
  ])('%s gives out credentials: a policy may never ask it', (host) => {
    for (const key of ['allow', 'plainHttp']) {
      expect(parseFaults(configOf({ http: { allow: [], [key]: [host] } }))).toEqual([
        `http.${key}[0]: gives out credentials of the machine: no policy may ask it`,
      ])
    }
  })
})

describe('caFile', () => {
  let folder: string
  let ca: string
  let key: string
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
    ;({ ca, key } = await createDevCertificates({ hosts: ['localhost'] }))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function read(content: string | undefined) {
    const file = path.join(folder, 'countersign.yaml')
    await writeFile(file, JSON.stringify(configOf({}, { api: { ...API, caFile: 'ca.pem' } })))
    await rm(path.join(folder, 'ca.pem'), { force: true })
    if (content !== undefined) await writeFile(path.join(folder, 'ca.pem'), content)
    const { config } = await readConfig(file)
    return config.clusters[0]!.api
  }

  test('its certificates become part of the config, and no key that stands beside them', async () => {
    const api = await read(`# of prod\n${ca}${key}${ca}`)
    expect(api).toEqual({ ...API, caFile: 'ca.pem', ca: `${ca.trim()}\n${ca.trim()}\n` })
  })

  test.each<[string, () => string | undefined, string]>([
    ['is not there', () => undefined, 'cannot read'],
    ['holds none', () => 'hello', 'holds no PEM certificate'],
    ['holds only a key', () => key, 'holds no PEM certificate'],
    [
      'holds one that is none',
      () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      'holds a certificate that cannot be read',
    ],
    ['is too large', () => ca.repeat(200), 'has more than 65536 characters'],
  ])('%s', async (_, content, reason) => {
    const [fault] = await read(content()).then(() => [], faultsOf)
    expect(fault).toContain('clusters[0].api.caFile: ')
    expect(fault).toContain(reason)
  })
})

describe('policies that need what the config does not give', () => {
  const rules = [
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
  ]
  const NO_API =
    'which no review carries: give the cluster an api, or list its policies without this one'

  async function deploy(
    spec: object,
    fields: object = {},
    cluster: object = {},
  ): Promise<string[]> {
    const { policies, faults } = await load([policyDocument(spec)])
    expect(faults).toEqual([])
    const config = parseConfig(configOf(fields, cluster))
    return createDeployment(config, policies).then(() => [], faultsOf)
  }

  test.each<[string, object, string, string]>([
    [
      'a label of namespaces',
      {
        matchConstraints: {
          resourceRules: rules,
          namespaceSelector: { matchLabels: { env: 'prod' } },
        },
      },
      'labels of namespaces',
      'spec.matchConstraints.namespaceSelector',
    ],
    [
      'namespaceObject',
      { validations: [{ expression: 'namespaceObject != null' }] },
      'namespaceObject',
      'spec.validations[0].expression',
    ],
    [
      'namespaceObject in a message',
      { validations: [{ expression: 'true', messageExpression: 'namespaceObject.metadata.name' }] },
      'namespaceObject',
      'spec.validations[0].messageExpression',
    ],
    [
      'namespaceObject in a condition',
      { matchConditions: [{ name: 'a', expression: 'has(namespaceObject.metadata)' }] },
      'namespaceObject',
      'spec.matchConditions[0].expression',
    ],
    [
      'resource.*',
      { variables: [{ name: 'a', expression: 'resource.get("v1", "pods", "a", "b")' }] },
      'resource.*',
      'spec.variables[0].expression',
    ],
  ])('%s needs a connection to each of its clusters', async (_, spec, what, where) => {
    expect(await deploy(spec)).toEqual([
      `clusters[0]: policy must-sign (0.json:1) needs ${what} in ${where}, ${NO_API}`,
    ])
    expect(await deploy(spec, {}, { api: API })).toEqual([])
  })

  test('a cluster that does not have the policy needs none', async () => {
    const spec = { validations: [{ expression: 'namespaceObject != null' }] }
    const { policies } = await load([policyDocument(spec, 'reads'), policyDocument({}, 'plain')])
    const config = parseConfig(configOf({}, { policies: ['plain'] }))
    await expect(createDeployment(config, policies)).resolves.toBeDefined()
  })

  test.each([
    { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
    {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['a'] }],
    },
  ])('the name of a namespace is in every review: %j', async (namespaceSelector) => {
    expect(await deploy({ matchConstraints: { resourceRules: rules, namespaceSelector } })).toEqual(
      [],
    )
  })

  test('http.* needs hosts that may be asked', async () => {
    const spec = { validations: [{ expression: 'http.get("https://a.example/").ok == true' }] }
    expect(await deploy(spec)).toEqual([
      'http: policy must-sign (0.json:1) uses http.* in spec.validations[0].expression: list the hosts that policies may ask in http.allow',
    ])
    expect(await deploy(spec, { http: { allow: ['a.example'] } })).toEqual([])
  })

  test('http.* of a namespaced policy needs the word of the operator, too', async () => {
    const document = policyDocument({
      validations: [{ expression: 'http.get("https://a.example/").ok == true' }],
    })
    const namespaced = {
      ...document,
      kind: 'NamespacedImageValidatingPolicy',
      metadata: { name: 'own', namespace: 'shop' },
    }
    const { policies } = await load([namespaced], { httpInNamespacedPolicies: true })
    const deployWith = (http: object) =>
      createDeployment(parseConfig(configOf({ http })), policies).then(() => [], faultsOf)
    expect(await deployWith({ allow: ['a.example'] })).toEqual([
      'http.namespacedPolicies: policy shop/own (0.json:1) uses http.* in spec.validations[0].expression: http calls are not allowed in namespaced policies: set http.namespacedPolicies to enable',
    ])
    expect(await deployWith({ allow: ['a.example'], namespacedPolicies: true })).toEqual([])
  })
})
