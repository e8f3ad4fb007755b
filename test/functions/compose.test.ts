import { beforeAll, describe, expect, test } from 'vitest'
import { compose } from '#functions/compose.ts'
import { type Config, parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import type { Platform } from '#functions/ports.ts'
import { AdmissionError } from '#shared/errors.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { hashOf, pod, review } from '../contract/review.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const SEAL = Buffer.alloc(32, 7).toString('base64')
const DIGEST = `sha256:${'a'.repeat(64)}`

function configWith(more: object = {}): Config {
  return parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)] }],
    ...more,
  })
}

let policies: readonly CompiledPolicy[]
beforeAll(async () => {
  const loaded = await loadPolicies([
    {
      name: 'signed.yaml',
      text: `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: signed }
spec:
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }]
  matchImageReferences: [{ glob: "*" }]
  attestors:
    - name: release
      cosign:
        key: { kms: "awskms:///arn:aws:kms:eu-central-1:111122223333:alias/release" }
        ctlog: { insecureIgnoreTlog: true }
  validations:
    - expression: images.containers.all(image, verifyImageSignatures(image, [attestors.release]) > 0)
`,
    },
  ])
  expect(loaded.faults).toEqual([])
  policies = loaded.policies
})

/** Composes both phases on a platform that records, and sends one review of one Pod. */
async function send(phase: 'mutate' | 'validate', config: Config, env: Platform['env']) {
  const lines: Record<string, unknown>[] = []
  const requests: { url: string; authorization: string | null }[] = []
  const app = compose(
    await createDeployment(config, policies),
    {
      env,
      log: (record) => lines.push(record),
      hash: nodeHash,
      maxBodyBytes: 1e6,
      now: () => Date.parse('2027-01-01T00:00:00Z'),
      fetch: async (url, init) => {
        requests.push({ url, authorization: new Headers(init.headers).get('authorization') })
        const challenge = { 'www-authenticate': 'Basic realm="r"' }
        return requests.length === 1
          ? new Response('', { status: 401, headers: challenge })
          : new Response('', { status: 404 })
      },
    },
    ALL_FLOWS,
  )
  const object = pod(`registry.example.com/web:1@${DIGEST}`)
  const response = await app.request(`/v1/prod/${TOKEN}/ivpol/${phase}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(review({ object })),
  })
  const answer = (await response.json()) as {
    response: { allowed: boolean; status?: { message: string }; patch?: string }
  }
  return { lines, requests, ...answer.response }
}

const credentials = [{ host: 'registry.example.com', usernameEnv: 'NAME', passwordEnv: 'PASSWORD' }]

describe('compose', () => {
  test('logs in to a registry with what the environment holds', async () => {
    const config = configWith({ registries: { credentials } })
    const { requests, allowed } = await send('validate', config, {
      SEAL,
      NAME: 'me',
      PASSWORD: 'secret ',
    })
    expect(allowed).toBe(false)
    expect(requests[1]?.authorization).toBe(`Basic ${btoa('me:secret')}`)
  })

  test('takes logins from a docker config in the environment', async () => {
    const config = configWith({ registries: { credentials: [{ dockerConfigEnv: 'DOCKER' }] } })
    const auths = {
      'registry.example.com': { username: 'u', password: 'p' },
      'other.example.com': { username: 'x', password: 'y' },
    }
    const { requests } = await send('validate', config, { SEAL, DOCKER: JSON.stringify({ auths }) })
    expect(requests[1]?.authorization).toBe(`Basic ${btoa('u:p')}`)
  })

  test.each<[string, Platform['env'], string[]]>([
    ['missing', { SEAL }, ['NAME', 'PASSWORD']],
    ['empty', { SEAL, NAME: ' ', PASSWORD: 'p' }, ['NAME']],
    ['an object', { SEAL, NAME: 'n', PASSWORD: { get: 'p' } }, ['PASSWORD']],
    ['inherited', Object.assign(Object.create({ NAME: 'n' }), { SEAL, PASSWORD: 'p' }), ['NAME']],
  ])(
    'denies without a request when a login is %s, and says so at the start',
    async (_, env, missing) => {
      const { requests, allowed, status, lines } = await send(
        'validate',
        configWith({ registries: { credentials } }),
        env,
      )
      expect([requests, allowed]).toEqual([[], false])
      expect(status?.message).toContain(`variable ${missing[0]} is not set`)
      expect(lines[0]).toEqual({ level: 'error', event: 'start', missingVariables: missing })
    },
  )

  test('denies when a docker config is none, and quotes none of it', async () => {
    const config = configWith({ registries: { credentials: [{ dockerConfigEnv: 'DOCKER' }] } })
    const { allowed, status, lines } = await send('validate', config, {
      SEAL,
      DOCKER: '{"auths": secret',
    })
    expect(allowed).toBe(false)
    expect(JSON.stringify([status, lines])).not.toContain('secret')
  })

  test.each<[string, Platform['env']]>([
    ['missing', {}],
    ['no base64', { SEAL: 'not base64!' }],
    ['too short', { SEAL: btoa('short') }],
  ])('still answers when the sealing secret is %s: no seal, and no pass', async (_, env) => {
    const mutated = await send('mutate', configWith(), env)
    expect(mutated.allowed).toBe(true)
    expect(atob(mutated.patch ?? '')).not.toContain('"v1.')
    expect((await send('validate', configWith(), env)).allowed).toBe(false)
  })
})

describe('a deployment', () => {
  test('survives its text', async () => {
    const deployment = await createDeployment(configWith(), policies)
    expect(parseDeployment(formatDeployment(deployment))).toEqual(deployment)
    expect(deployment.hash).toMatch(/^[0-9a-f]{64}$/)
  })

  test('has another hash when anything in it differs', async () => {
    const hashes = await Promise.all(
      [configWith(), configWith({ endpoint: 'https://other.example.com' })].map(
        async (config) => (await createDeployment(config, policies)).hash,
      ),
    )
    const without = await createDeployment(configWith(), [])
    expect(new Set([...hashes, without.hash]).size).toBe(3)
  })

  test('whose cluster names a policy that is not there is refused with its path', async () => {
    const config = configWith({
      clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)], policies: ['signed', 'missing'] }],
    })
    const refusal = await createDeployment(config, policies).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(AdmissionError)
    expect(refusal).toMatchObject({
      code: 'CONFIG_INVALID',
      faults: [
        {
          path: 'clusters[0].policies[1]',
          message: 'no policy of the folder is named "missing"; it has signed',
        },
      ],
    })
  })

  test.each(['null', '{}', '{"config":{}}'])('is not %s', (text) => {
    expect(() => parseDeployment(text)).toThrow('holds no deployment')
  })
})
