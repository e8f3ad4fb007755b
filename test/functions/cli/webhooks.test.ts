import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createApp } from '#functions/app.ts'
import { readDeployment } from '#functions/cli/deployment.ts'
import type { Io } from '#functions/cli/io.ts'
import { readCaBundle } from '#functions/cli/webhooks/ca.ts'
import { TOKEN_VARIABLE } from '#functions/cli/webhooks/token.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { admitted } from '#shared/admission/response.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import type { WebhookConfiguration } from '#shared/webhook/types.ts'
import { validateWebhookConfiguration } from '#shared/webhook/validate.ts'
import { parseYaml } from '#shared/yaml.ts'
import { policyDocument } from '#test/shared/webhook/policies.ts'
import { review } from '../../contract/review.ts'
import { countersign } from './harness.ts'

const TOKEN = 'abcdefghijklmnopqrstuvwxyz234567'
const NEWER = '765432zyxwvutsrqponmlkjihgfedcba'
const hashOf = (token: string) => createHash('sha256').update(token).digest('hex')

const CONFIG = `
policies: policies
endpoint: https://admission.example.com/base/
outcomes: { key: { secrets: [ { id: a, env: SEAL } ] } }
clusters:
  - name: prod-eu
    tokens: ["${hashOf(TOKEN)}"]
    policies: [signed, team-a/signed]
    timeouts: { mutateSeconds: 12, validateSeconds: 5 }
  - name: edge
    tokens: ["${hashOf(TOKEN)}", "${hashOf(NEWER)}"]
    kubernetes: '1.37'
    bearer: ["${hashOf('bearer')}"]
    mtls: { subjects: ['CN=kube-apiserver'] }
    webhooks:
      namespaceSelector: { matchExpressions: [ { key: tier, operator: In, values: [gold, 'on', 'y', '1e3', '017', '0x1f', 'null', '1.0'] } ] }
      objectSelector: { matchExpressions: [ { key: unchecked, operator: DoesNotExist } ] }
      excludeBootstrap: true
`

let folder: string
let config: string
let out: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  config = path.join(folder, 'countersign.yaml')
  out = path.join(folder, 'out')
  await mkdir(path.join(folder, 'policies'))
  await writeFile(config, CONFIG)
  await policy('signed.json', policyDocument({ name: 'signed' }))
  await policy('team.json', policyDocument({ name: 'signed', namespace: 'team-a' }))
  await policy('other.json', policyDocument({ name: 'other', spec: { failurePolicy: 'Ignore' } }))
})

afterEach(() => rm(folder, { recursive: true }))

const policy = (name: string, document: object) =>
  writeFile(path.join(folder, 'policies', name), JSON.stringify(document))
const webhooks = (args: readonly string[], changes: Partial<Io> = {}) =>
  countersign(['webhooks', '--config', config, ...args], changes)
const withToken = { env: { COUNTERSIGN_TOKEN: `${TOKEN}\n` } }
/** Integers of the parser are of any size. */
const integers = (_: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)
const documents = (text: string) => parseAllDocuments(text).map((document) => document.toJS())
const filesBelow = async () =>
  (await readdir(out, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(out, path.join(entry.parentPath, entry.name)))
    .sort()

describe('countersign webhooks', () => {
  test('prints both configurations for kubectl, with the policies, the token and the timeouts of the cluster', async () => {
    const { code, out: text, err } = await webhooks(['--cluster', 'prod-eu'], withToken)
    expect(code).toBe(0)
    const [mutating, validating, ...more] = documents(text)
    expect(more).toEqual([])
    const base = `https://admission.example.com/base/v1/prod-eu/${TOKEN}`
    const about = ({ webhooks: each }: WebhookConfiguration) =>
      each.map(({ clientConfig, timeoutSeconds }) => [clientConfig.url, timeoutSeconds])
    expect(about(mutating)).toEqual([
      [`${base}/ivpol/mutate/signed`, 12],
      [`${base}/nivpol/mutate/signed`, 12],
    ])
    expect(about(validating)).toEqual([
      [`${base}/ivpol/validate/signed`, 5],
      [`${base}/nivpol/validate/signed`, 5],
    ])
    expect(validating.webhooks[0]).toMatchObject({
      name: expect.stringMatching(/^ivpol-fail-[0-9a-f]{8}\.validate\.countersign\.dev$/),
      namespaceSelector: {
        matchExpressions: [
          {
            key: 'kubernetes.io/metadata.name',
            operator: 'NotIn',
            values: ['kube-node-lease', 'kube-system'],
          },
          { key: 'countersign.dev/break-glass', operator: 'DoesNotExist' },
        ],
      },
    })
    expect(validating.metadata).toEqual({
      name: 'validate.countersign.dev',
      labels: {
        'app.kubernetes.io/managed-by': 'countersign',
        'countersign.dev/cluster': 'prod-eu',
      },
      annotations: { 'admissions.enforcer/disabled': 'true' },
    })
    // Said aloud, above the objects and beside them.
    for (const said of [text, err])
      expect(said).toContain('nothing in kube-node-lease and kube-system')
    expect(text).toContain('# The URLs hold the token of the cluster: keep this as a secret')
    expect(err).not.toContain(TOKEN)
  })

  test('what is printed passes the rules of the API server and is the same on a second run', async () => {
    const regex = await loadRegex()
    for (const more of [
      [],
      ['--base-name', 'kyverno.svc'],
      ['--service', 'kyverno/kyverno-svc:8443'],
    ]) {
      const first = await webhooks(['--cluster', 'prod-eu', ...more], withToken)
      expect(await webhooks(['--cluster', 'prod-eu', ...more], withToken)).toEqual(first)
      for (const document of documents(first.out)) {
        expect(validateWebhookConfiguration(document, { regex })).toEqual([])
      }
    }
  })

  test('kubectl reads the objects of the JSON List from the YAML, whatever YAML 1.1 takes for numbers and booleans', async () => {
    for (const cluster of ['prod-eu', 'edge']) {
      const yaml = await webhooks(['--cluster', cluster, '--companion'], withToken)
      const json = await webhooks(['--cluster', cluster, '--companion', '-o', 'json'], withToken)
      const { items, ...list } = JSON.parse(json.out)
      expect(list).toEqual({ apiVersion: 'v1', kind: 'List' })
      expect(JSON.parse(JSON.stringify(parseYaml(yaml.out), integers))).toEqual(items)
    }
  })

  test('text says what is asked about and what is not, without the token', async () => {
    const { out: text } = await webhooks(['--cluster', 'edge', '-o', 'text'], withToken)
    expect(text).not.toContain(TOKEN)
    for (const said of [
      'ValidatingWebhookConfiguration validate.countersign.dev',
      'calls /ivpol/validate/other',
      'about core: pods (CREATE,UPDATE); apps: daemonsets,deployments,replicasets,statefulsets (CREATE,UPDATE)',
      'nothing in kube-node-lease and kube-system, and nothing in namespaces with the label countersign.dev/break-glass, is verified',
      'webhooks.objectSelector leaves objects out by labels',
      'the token is the older one of edge',
    ]) {
      expect(text).toContain(said)
    }
  })

  test('where validate takes nothing but seals, mutate is called for policies that pin nothing, too', async () => {
    await policy(
      'signed.json',
      policyDocument({
        name: 'signed',
        spec: { validationConfigurations: { mutateDigest: false } },
      }),
    )
    const called = async () => {
      const { out: text } = await webhooks(['--cluster', 'prod-eu'], withToken)
      return documents(text)[0].webhooks.map(
        ({ clientConfig }: { clientConfig: { url: string } }) =>
          clientConfig.url.slice(-'/ivpol/mutate/signed'.length),
      )
    }
    expect(await called()).not.toContain('/ivpol/mutate/signed')
    await writeFile(config, CONFIG.replace('outcomes: {', 'outcomes: { onMissing: deny,'))
    expect(await called()).toContain('/ivpol/mutate/signed')
  })

  test('webhooks of a cluster in audit mode still fail closed, and say so unless they do not', async () => {
    await writeFile(config, CONFIG.replace('name: prod-eu', 'name: prod-eu\n    mode: audit'))
    const args = ['--cluster', 'prod-eu', '-o', 'text']
    const said = 'mode audit: the functions deny nothing, but while they are down'
    expect((await webhooks(args, withToken)).out).toContain(said)
    expect((await webhooks([...args, '--force-ignore'], withToken)).out).not.toContain(said)
  })

  test('upstream’s names are there for who asks for them', async () => {
    const { out: text } = await webhooks(
      ['--cluster', 'prod-eu', '--base-name', 'kyverno.svc'],
      withToken,
    )
    const [mutating, validating] = documents(text)
    expect(mutating.metadata).toMatchObject({
      name: 'kyverno-resource-mutating-webhook-cfg',
      labels: { 'webhook.kyverno.io/managed-by': 'kyverno' },
    })
    expect(validating.webhooks.map(({ name }: { name: string }) => name)).toEqual([
      'ivpol.validate.kyverno.svc-fail',
      'nivpol.validate.kyverno.svc-fail',
    ])
  })

  test('every URL that is printed is one that the functions answer, about those policies', async () => {
    const { deployment } = await readDeployment(config)
    const called: string[] = []
    const flow: ImagePolicyEngine['mutate'] = async (_, { cluster, scope, policies }) => {
      called.push([cluster, scope, ...policies].join(' '))
      return admitted()
    }
    const app = createApp({
      deployment,
      engine: { mutate: flow, validate: flow },
      hash: nodeHash,
      maxBodyBytes: 100_000,
      now: () => 0,
      log: () => undefined,
    })
    for (const cluster of ['prod-eu', 'edge']) {
      const { out: text } = await webhooks(['--cluster', cluster, '--token-placeholder', TOKEN])
      for (const configuration of documents(text) as WebhookConfiguration[]) {
        for (const { clientConfig } of configuration.webhooks) {
          const path = new URL(clientConfig.url ?? '').pathname.replace('/base', '')
          const response = await app.request(path, {
            method: 'POST',
            headers: { 'content-type': 'application/json', authorization: 'Bearer bearer' },
            body: JSON.stringify(review()),
          })
          const read = await response.text()
          expect(response.status).toBe(cluster === 'edge' ? 404 : 200)
          if (cluster === 'edge') continue
          expect(JSON.parse(read).response.warnings ?? []).toEqual([])
        }
      }
    }
    // The other cluster asks for a client certificate, which a test of a door has none of.
    expect(called).toEqual([
      'prod-eu ivpol signed',
      'prod-eu nivpol signed',
      'prod-eu ivpol signed',
      'prod-eu nivpol signed',
    ])
  })

  describe('the token', () => {
    const input = (text: string): Partial<Io> => ({
      input: (async function* () {
        yield new TextEncoder().encode(text)
      })(),
    })

    test('comes from standard input or a file as well', async () => {
      const fromInput = await webhooks(
        ['--cluster', 'edge', '--token-file', '-'],
        input(`${NEWER}\n`),
      )
      expect(fromInput.out).toContain(`/v1/edge/${NEWER}/ivpol/`)
      expect(fromInput.err).not.toContain('older')
      const file = path.join(folder, 'token')
      await writeFile(file, TOKEN)
      const fromFile = await webhooks(['--cluster', 'edge', '--token-file', file])
      expect(fromFile.out).toContain(`/v1/edge/${TOKEN}/ivpol/`)
    })

    test.each([
      { name: 'none', args: [], changes: {}, says: /give the token with --token-file FILE/ },
      {
        name: 'one of another cluster',
        args: [],
        changes: { env: { COUNTERSIGN_TOKEN: NEWER } },
        says: /the token is none of the 1 of cluster prod-eu/,
      },
      {
        name: 'a long text',
        args: ['--token-file', '-'],
        changes: input('x'.repeat(5000)),
        says: /too long/,
      },
      ...['a/b', '..', 'a b', 'a\u0085b', 'ü'].map((text) => ({
        name: `a placeholder that is no segment of a path, ${JSON.stringify(text)},`,
        args: ['--token-placeholder', text],
        changes: {},
        says: /one segment/,
      })),
    ])('$name is refused', async ({ args, changes, says }) => {
      const { code, out: text, err } = await webhooks(['--cluster', 'prod-eu', ...args], changes)
      expect({ code, text }).toEqual({ code: 2, text: '' })
      expect(err).toMatch(says)
      expect(err).not.toContain(NEWER)
    })

    test.each(['a/b', 'a%41', 'ä', '..', 'a?b'])(
      'that no URL can have as it is, %s, is refused although its hash is in the config',
      async (token) => {
        await writeFile(config, CONFIG.replace(hashOf(TOKEN), hashOf(token)))
        const env = { COUNTERSIGN_TOKEN: token }
        const { code, out: text, err } = await webhooks(['--cluster', 'prod-eu'], { env })
        expect({ code, text }).toEqual({ code: 2, text: '' })
        expect(err).toMatch(/is not one segment of a URL.*`countersign tokens rotate` makes one/)
        expect(err).not.toContain(token)
      },
    )

    test('a placeholder is not what the API server is asked to take', async () => {
      for (const more of [
        ['--service', 'edge/door'],
        ['--flavour', 'kustomize'],
      ]) {
        for (const placeholder of [[], ['%TOKEN%'], ['{{token}}'], ['$(TOKEN)']]) {
          const args = ['--cluster', 'prod-eu', '--token-placeholder', ...placeholder, ...more]
          const { code, out: text } = await webhooks(args)
          expect([args, code]).toEqual([args, 0])
          const [shown = `\${${TOKEN_VARIABLE}}`] = placeholder
          expect(text).toContain(`/v1/prod-eu/${shown}/ivpol/mutate/signed`)
        }
      }
      // What stands around it is.
      const args = ['--cluster', 'prod-eu', '--token-placeholder', '--service', 'edge/door:70000']
      expect((await webhooks(args)).err).toMatch(/service\.port {2}Invalid value: 70000/)
    })

    test('a placeholder stands in its place', async () => {
      const { out: text } = await webhooks(['--cluster', 'prod-eu', '--token-placeholder'])
      expect(text).toMatch(/\/v1\/prod-eu\/\$\{COUNTERSIGN_TOKEN\}\/ivpol\/mutate\/signed/)
      expect(text).toMatch(/^# Replace \$\{COUNTERSIGN_TOKEN\} in every URL by the token/m)
      const other = await webhooks(['--cluster', 'prod-eu', '--token-placeholder', '{{token}}'])
      expect(other.out).toContain('/v1/prod-eu/{{token}}/ivpol/mutate/signed')
    })
  })

  describe('files', () => {
    test('a Kustomize base holds resources by name, and the second run writes the same', async () => {
      const args = ['--cluster', 'prod-eu', '--flavour', 'kustomize', '--out', out]
      const { code, out: text } = await webhooks(args, withToken)
      expect(code).toBe(0)
      expect(text).toContain('holds the token of the cluster')
      expect(await filesBelow()).toEqual([
        'kustomization.yaml',
        'mutating-webhooks.yaml',
        'validating-webhooks.yaml',
      ])
      expect(parse(await readFile(path.join(out, 'kustomization.yaml'), 'utf8'))).toEqual({
        apiVersion: 'kustomize.config.k8s.io/v1beta1',
        kind: 'Kustomization',
        resources: ['mutating-webhooks.yaml', 'validating-webhooks.yaml'],
      })
      expect((await stat(path.join(out, 'mutating-webhooks.yaml'))).mode & 0o777).toBe(0o600)
      expect((await webhooks([...args, '--check'], withToken)).code).toBe(0)
      await policy(
        'new.json',
        policyDocument({ name: 'signed', spec: { failurePolicy: 'Ignore' } }),
      )
      await rm(path.join(folder, 'policies/signed.json'))
      const checked = await webhooks([...args, '--check'], withToken)
      expect(checked).toMatchObject({
        code: 1,
        out: expect.stringContaining('mutating-webhooks.yaml is not what would be written'),
      })
      expect(await readFile(path.join(out, 'mutating-webhooks.yaml'), 'utf8')).toContain(
        'ivpol-fail-',
      )
    })

    test('what an earlier run left is told, since whoever applies the folder applies it, too', async () => {
      await webhooks(['--cluster', 'edge', '--companion', '--out', out], withToken)
      expect(await filesBelow()).toContain('companion.yaml')
      const args = ['--cluster', 'edge', '--out', out]
      expect((await webhooks([...args, '--check'], withToken)).out).toBe(
        `${out}/companion.yaml would not be written\n`,
      )
      const { code, err } = await webhooks(args, withToken)
      expect({ code, err }).toEqual({
        code: 0,
        err: `${out}/companion.yaml is left from an earlier run: remove it\n`,
      })
      expect((await webhooks([...args, '--check'], withToken)).code).toBe(1)
    })

    test('manifest-based admission has a folder for each plugin, names of its own, and leads to them', async () => {
      const args = ['--cluster', 'edge', '--flavour', 'static', '--companion', '--out', out]
      expect((await webhooks(args, withToken)).code).toBe(0)
      expect(await filesBelow()).toEqual([
        'admission-configuration.yaml',
        'kubeconfig.yaml',
        'mutating-webhooks/countersign.yaml',
        'validating-policies/countersign.yaml',
        'validating-webhooks/countersign.yaml',
      ])
      const read = async (name: string) => documents(await readFile(path.join(out, name), 'utf8'))
      const regex = await loadRegex()
      for (const kind of ['mutating', 'validating']) {
        const [configuration] = await read(`${kind}-webhooks/countersign.yaml`)
        expect(configuration.metadata.name).toMatch(/\.static\.k8s\.io$/)
        expect(
          validateWebhookConfiguration(configuration, { regex, isStatic: true, minor: 37 }),
        ).toEqual([])
      }
      for (const { kind, metadata, spec } of await read('validating-policies/countersign.yaml')) {
        expect(metadata.name).toMatch(/\.static\.k8s\.io$/)
        if (kind === 'ValidatingAdmissionPolicyBinding') expect(spec.policyName).toBe(metadata.name)
      }
      const at = '/etc/kubernetes/countersign'
      expect((await read('admission-configuration.yaml'))[0]).toEqual({
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'AdmissionConfiguration',
        plugins: [
          ...['Mutating', 'Validating'].map((kind) => ({
            name: `${kind}AdmissionWebhook`,
            configuration: {
              apiVersion: 'apiserver.config.k8s.io/v1',
              kind: 'WebhookAdmissionConfiguration',
              kubeConfigFile: `${at}/kubeconfig.yaml`,
              staticManifestsDir: `${at}/${kind.toLowerCase()}-webhooks`,
            },
          })),
          {
            name: 'ValidatingAdmissionPolicy',
            configuration: {
              apiVersion: 'apiserver.config.k8s.io/v1',
              kind: 'ValidatingAdmissionPolicyConfiguration',
              staticManifestsDir: `${at}/validating-policies`,
            },
          },
        ],
      })
      expect((await read('kubeconfig.yaml'))[0]).toEqual({
        apiVersion: 'v1',
        kind: 'Config',
        users: [
          {
            name: 'admission.example.com',
            user: {
              'client-certificate': `${at}/client.crt`,
              'client-key': `${at}/client.key`,
              tokenFile: `${at}/bearer-token`,
            },
          },
        ],
      })
    })

    test('files for the API server are never printed for kubectl', async () => {
      const { out: text, err } = await webhooks(['--cluster', 'edge'], withToken)
      expect(documents(text).map(({ kind }) => kind)).toEqual([
        'MutatingWebhookConfiguration',
        'ValidatingWebhookConfiguration',
      ])
      expect(err).toContain(
        'not printed: admission-configuration.yaml, kubeconfig.yaml; --out writes them',
      )
    })

    test('texts that are booleans for YAML 1.1 are quoted', async () => {
      await policy(
        'signed.json',
        policyDocument({
          name: 'signed',
          spec: {
            matchConditions: [{ name: 'yes', expression: 'true' }],
            autogen: { podControllers: { controllers: [] } },
            matchConstraints: {
              resourceRules: [
                {
                  apiGroups: [''],
                  apiVersions: ['v1'],
                  operations: ['CREATE'],
                  resources: ['pods', 'pods/exec'],
                },
              ],
            },
          },
        }),
      )
      const { out: text } = await webhooks(['--cluster', 'prod-eu'], withToken)
      expect(text).toMatch(/name: ["']yes["']/)
      expect(text).toMatch(/expression: ["']true["']/)
    })
  })

  describe('the caBundle', () => {
    let ca: string
    beforeAll(async () => {
      ca = (await createDevCertificates({ hosts: ['localhost'] })).ca
    })

    test('is the base64 of the certificates, from the option or from the config', async () => {
      const file = path.join(folder, 'ca.pem')
      await writeFile(file, `comment\n${ca}`)
      const given = await webhooks(['--cluster', 'prod-eu', '--ca-bundle', file], withToken)
      const bundle = documents(given.out)[0].webhooks[0].clientConfig.caBundle
      expect(Buffer.from(bundle, 'base64').toString().trim()).toBe(ca.trim())
      await writeFile(
        config,
        CONFIG.replace('    webhooks:\n', '    webhooks:\n      caFile: ca.pem\n'),
      )
      const configured = await webhooks(['--cluster', 'edge'], withToken)
      expect(documents(configured.out)[0].webhooks[0].clientConfig.caBundle).toBe(bundle)
    })

    test.each([
      { name: 'no certificate', text: () => 'nothing', says: /holds no PEM certificate/ },
      {
        name: 'a damaged certificate',
        text: () => ca.replace(/\n[A-Za-z0-9+/]{20}/, '\nAAAA'),
        says: /certificate 1 {2}cannot be read/,
      },
    ])('$name is refused', async ({ text, says }) => {
      const file = path.join(folder, 'ca.pem')
      await writeFile(file, text())
      const { code, err } = await webhooks(['--cluster', 'prod-eu', '--ca-bundle', file], withToken)
      expect(code).toBe(2)
      expect(err).toMatch(says)
    })

    test('certificates that are over or have not begun are refused, each by its place', async () => {
      const file = path.join(folder, 'ca.pem')
      await writeFile(file, `${ca}\n${ca}`)
      const now = Date.now()
      const { until } = await readCaBundle(file, now)
      expect(Date.parse(until)).toBeGreaterThan(now)
      const faultsAt = async (time: number): Promise<unknown> =>
        readCaBundle(file, time).catch((thrown) => thrown.faults)
      expect(await faultsAt(Date.parse(until) + 1000)).toEqual(
        [1, 2].map((index) => ({
          path: `${file}: certificate ${index}`,
          message: `ended on ${until}: API servers would refuse every call`,
        })),
      )
      expect(await faultsAt(0)).toEqual(
        [1, 2].map((index) => ({
          path: `${file}: certificate ${index}`,
          message: expect.stringMatching(/^begins on /),
        })),
      )
    })
  })

  describe('what is refused, and nothing is written', () => {
    test.each([
      {
        name: 'an unknown cluster',
        args: ['--cluster', 'x'],
        says: /has no cluster x; it has prod-eu, edge/,
      },
      {
        name: 'manifests for an API server that would not start with them',
        args: ['--cluster', 'prod-eu', '--flavour', 'static', '--kubernetes', '1.35'],
        says: /takes Kubernetes 1.36 or newer, and the cluster has 1.35/,
      },
      {
        name: 'manifests that call a Service',
        args: ['--cluster', 'edge', '--flavour', 'static', '--service', 'a/b'],
        says: /URLs only/,
      },
      {
        name: 'a Service without a name',
        args: ['--cluster', 'edge', '--service', 'b'],
        says: /expected namespace\/name/,
      },
      {
        name: 'a version that is none',
        args: ['--cluster', 'edge', '--kubernetes', 'new'],
        says: /expected a version such as 1.31/,
      },
      {
        name: 'a version too old to be known',
        args: ['--cluster', 'edge', '--kubernetes', '1.20'],
        says: /from 1.30 on/,
      },
      {
        name: 'a relative folder on the server',
        args: ['--cluster', 'edge', '--server-folder', 'x'],
        says: /expected an absolute path/,
      },
      {
        name: 'names that are no domains',
        args: ['--cluster', 'prod-eu', '--base-name', 'X_Y'],
        says: /webhooks of prod-eu: \d+ faults/,
      },
    ])('$name', async ({ args, says }) => {
      const { code, out: text, err } = await webhooks([...args, '--out', out], withToken)
      expect({ code, text }).toEqual({ code: 2, text: '' })
      expect(err).toMatch(says)
      await expect(stat(out)).rejects.toThrow()
    })

    test('a cluster that has ended: whatever asks the functions for it would be refused', async () => {
      const ended = CONFIG.replace('  - name: prod-eu\n', '$&    notAfter: 2026-01-01T00:00:00Z\n')
      await writeFile(config, ended)
      expect(await webhooks(['--cluster', 'prod-eu'], withToken)).toEqual({
        code: 2,
        out: '',
        err: `countersign webhooks: webhooks of prod-eu: 1 fault
  clusters[0].notAfter  the functions know no cluster prod-eu since 2026-01-01T00:00:00Z, so that webhooks with failurePolicy Fail would let nothing in: give it a later end, build and deploy
`,
      })
      expect((await webhooks(['--cluster', 'edge'], withToken)).code).toBe(0)
    })

    test('every fault of the policies for this cluster at once', async () => {
      await policy('team.json', policyDocument({ name: 'signed', namespace: 'kube-system' }))
      await policy('other.json', policyDocument({ name: 'other', namespace: 'kube-node-lease' }))
      const text = CONFIG.replace(
        '[signed, team-a/signed]',
        '[kube-system/signed, kube-node-lease/other]',
      )
      await writeFile(config, text)
      const { code, err } = await webhooks(['--cluster', 'prod-eu'], withToken)
      expect(code).toBe(2)
      expect(err).toMatch(/2 faults/)
      expect(
        err.match(/no value of label "kubernetes.io\/metadata.name" is allowed/g),
      ).toHaveLength(2)
      // Whoever wants that says so.
      expect(
        (await webhooks(['--cluster', 'prod-eu', '--no-safe-selectors'], withToken)).code,
      ).toBe(0)
    })

    test('what is wrong with the options, the token, the certificates and the policies is told at once', async () => {
      await policy('team.json', policyDocument({ name: 'signed', namespace: 'kube-system' }))
      await writeFile(config, CONFIG.replace('[signed, team-a/signed]', '[kube-system/signed]'))
      const ca = path.join(folder, 'ca.pem')
      await writeFile(ca, 'nothing')
      const args = ['--cluster', 'prod-eu', '--ca-bundle', ca]
      const { code, out: text, err } = await webhooks(args)
      expect({ code, text }).toEqual({ code: 2, text: '' })
      expect(err).toMatch(/^countersign webhooks: webhooks of prod-eu: 3 faults$/m)
      expect(err).toMatch(/cluster prod-eu {2}the config has only the hash of the token/)
      expect(err).toMatch(/ca\.pem {2}holds no PEM certificate/)
      expect(err).toMatch(/policy kube-system\/signed .* is allowed/)
      const more = await webhooks([...args, '--kubernetes', 'new', '--image-policy'])
      expect(more.err).toMatch(/webhooks of prod-eu: 4 faults/)
      expect(more.err).toMatch(/expected a version such as 1\.31/)
      expect(more.err).toMatch(/clusters\[0\] {2}the functions answer no ImageReview/)
    })

    test('--check without a folder', async () => {
      expect(await webhooks(['--cluster', 'edge', '--check'], withToken)).toMatchObject({
        code: 2,
        out: '',
      })
    })

    test('a folder without a name, as of a variable that is not set', async () => {
      expect(await webhooks(['--cluster', 'edge', '--out', ' '], withToken)).toMatchObject({
        code: 2,
        out: '',
        err: 'countersign webhooks: --out: expected the name of a folder\n',
      })
    })

    test('a folder that cannot be written', async () => {
      await writeFile(out, 'a file')
      const { code, err } = await webhooks(['--cluster', 'edge', '--out', out], withToken)
      expect(code).toBe(2)
      expect(err).toMatch(/^countersign webhooks: cannot write \S+: there is a file of this name$/m)
      expect(await readFile(out, 'utf8')).toBe('a file')
    })

    test('a folder in the place of one file, which leaves all the others as they are', async () => {
      await mkdir(path.join(out, 'validating-webhooks.yaml'), { recursive: true })
      await writeFile(path.join(out, 'mutating-webhooks.yaml'), 'mine')
      const flavour = ['--flavour', 'kustomize', '--out', out]
      const { code, err } = await webhooks(['--cluster', 'prod-eu', ...flavour], withToken)
      expect({ code, err }).toEqual({
        code: 2,
        err: `countersign webhooks: cannot write ${path.join(out, 'validating-webhooks.yaml')}: is a folder\n`,
      })
      expect((await readdir(out)).sort()).toEqual([
        'mutating-webhooks.yaml',
        'validating-webhooks.yaml',
      ])
      expect(await readFile(path.join(out, 'mutating-webhooks.yaml'), 'utf8')).toBe('mine')
    })

    test('a folder in the place of one file with --check, in words', async () => {
      await mkdir(path.join(out, 'mutating-webhooks.yaml'), { recursive: true })
      const flavour = ['--flavour', 'kustomize', '--out', out, '--check']
      expect(await webhooks(['--cluster', 'prod-eu', ...flavour], withToken)).toMatchObject({
        code: 2,
        err: `countersign webhooks: cannot read ${path.join(out, 'mutating-webhooks.yaml')}: is a folder\n`,
      })
    })
  })
})
