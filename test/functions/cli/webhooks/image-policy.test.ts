import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { Io } from '#functions/cli/io.ts'
import { createApiServer } from '#functions/local/apiserver.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import { startNodeServer } from '#functions/node.ts'
import { imagePolicyFaults } from '#shared/webhook/image-policy.ts'
import { policyDocument } from '#test/shared/webhook/policies.ts'
import { hashOf } from '../../../contract/review.ts'
import { appOf, countersign } from '../harness.ts'

const TOKEN = 'abcdefghijklmnopqrstuvwxyz234567'
const AT = '/etc/kubernetes/countersign'

const CONFIG = `
policies: policies
endpoint: https://admission.example.com/base/
outcomes: { key: { secrets: [ { id: a, env: SEAL } ] } }
clusters:
  - name: plain
    tokens: ["${hashOf(TOKEN)}"]
  - name: asking
    tokens: ["${hashOf(TOKEN)}"]
    imageReview: true
  - name: shown
    tokens: ["${hashOf(TOKEN)}"]
    kubernetes: '1.37'
    bearer: ["${hashOf('bearer')}"]
    mtls: { subjects: ['CN=kube-apiserver'] }
    imageReview: { allowTTLSeconds: 60, denyTTLSeconds: 0 }
`
const EACH =
  'endpoint: { mutate: https://m.example/, validate: https://v.example, imageReview: https://i.example/x/ }'

let folder: string
let out: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  out = path.join(folder, 'out')
  await mkdir(path.join(folder, 'policies'))
  await writeFile(path.join(folder, 'countersign.yaml'), CONFIG)
  const document = policyDocument({
    name: 'signed',
    spec: { validations: [{ expression: 'images.containers.all(i, i != "")' }] },
  })
  await writeFile(path.join(folder, 'policies/signed.json'), JSON.stringify(document))
})
afterEach(() => rm(folder, { recursive: true }))

const webhooks = (cluster: string, args: readonly string[], changes: Partial<Io> = withToken) =>
  countersign(
    ['webhooks', '--config', path.join(folder, 'countersign.yaml'), '--cluster', cluster, ...args],
    changes,
  )
const withToken = { env: { COUNTERSIGN_TOKEN: TOKEN } }
const textOf = (name: string) => readFile(path.join(out, name), 'utf8')
const read = async (name: string) => {
  const text = await textOf(name)
  const [object, ...more] = parseAllDocuments(text).map((document) => document.toJS())
  expect(more).toEqual([])
  return { text, object }
}
const filesBelow = async () =>
  (await readdir(out, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(out, path.join(entry.parentPath, entry.name)))
    .sort()
const plugin = (allowTTL: number, denyTTL: number, at = AT) => ({
  name: 'ImagePolicyWebhook',
  configuration: {
    imagePolicy: {
      kubeConfigFile: `${at}/image-policy-kubeconfig.yaml`,
      allowTTL,
      denyTTL,
      retryBackoff: 500,
      defaultAllow: false,
    },
  },
})

describe('countersign webhooks --flavour image-policy', () => {
  test('writes what an API server is started with, and the token in the one file that holds it', async () => {
    const ran = await webhooks('asking', ['--flavour', 'image-policy', '--out', out])
    expect({ code: ran.code, err: ran.err }).toEqual({ code: 0, err: '' })
    expect(await filesBelow()).toEqual([
      'admission-configuration.yaml',
      'image-policy-kubeconfig.yaml',
    ])
    const configuration = await read('admission-configuration.yaml')
    expect(configuration.object).toEqual({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'AdmissionConfiguration',
      plugins: [plugin(300, 30)],
    })
    for (const said of [
      `# --admission-control-config-file=${AT}/admission-configuration.yaml`,
      '# ImagePolicyWebhook is off until the API server is also started with it in --enable-admission-plugins.',
      '# asked about: images of Pods that are created or updated',
      '# not asked about: Deployments',
      'image volumes',
      '# an answer is kept 300 s for yes, 30 s for no',
      '# defaultAllow: false: while nobody answers, no Pod is admitted',
    ]) {
      expect(configuration.text).toContain(said)
    }
    const kubeconfig = await read('image-policy-kubeconfig.yaml')
    const server = `https://admission.example.com/base/v1/asking/${TOKEN}/image-review`
    expect(kubeconfig.object).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'countersign', cluster: { server } }],
      users: [{ name: 'api-server', user: {} }],
      contexts: [{ name: 'countersign', context: { cluster: 'countersign', user: 'api-server' } }],
      'current-context': 'countersign',
    })
    expect(kubeconfig.text).toContain('nobody but the API server may read this')
    expect(imagePolicyFaults(plugin(300, 30).configuration.imagePolicy, server)).toEqual([])
    const mode = async (name: string) => (await stat(path.join(out, name))).mode & 0o777
    expect(await mode('image-policy-kubeconfig.yaml')).toBe(0o600)
    expect(await mode('admission-configuration.yaml')).toBe(0o644)
    expect(configuration.text + ran.out).not.toContain(TOKEN)
    expect(ran.out).toContain('keeps yes 300 s and no 30 s')
    expect(ran.out).toContain('image-policy-kubeconfig.yaml  for the API server, holds the token')
  })

  test('prints both for whoever names no folder, and says aloud what is not asked about', async () => {
    const { code, out: text, err } = await webhooks('asking', ['--flavour', 'image-policy'])
    expect(code).toBe(0)
    expect(parseAllDocuments(text).map((each) => each.toJS().kind)).toEqual([
      'AdmissionConfiguration',
      'Config',
    ])
    expect(err).toContain('ImagePolicyWebhook  not asked about: Deployments')
    expect(err).not.toContain(TOKEN)
    expect(err).not.toContain('not printed')
    expect(await webhooks('asking', ['--flavour', 'image-policy'])).toEqual({
      code,
      out: text,
      err,
    })
  })

  test('takes the host for image reviews, the authorities, and what the API server shows', async () => {
    const { ca } = await createDevCertificates({ hosts: ['localhost'] })
    await writeFile(path.join(folder, 'ca.pem'), ca)
    await writeFile(path.join(folder, 'countersign.yaml'), CONFIG.replace(/endpoint: .*/, EACH))
    const args = ['--flavour', 'image-policy', '--ca-bundle', path.join(folder, 'ca.pem')]
    const ran = await webhooks('shown', [...args, '--server-folder', '/srv/x', '--out', out])
    expect(ran.code).toBe(0)
    expect((await read('admission-configuration.yaml')).object.plugins).toEqual([
      plugin(60, -1, '/srv/x'),
    ])
    const { object, text } = await read('image-policy-kubeconfig.yaml')
    const { server, ...trusted } = object.clusters[0].cluster
    expect(server).toBe(`https://i.example/x/v1/shown/${TOKEN}/image-review`)
    const pem = Buffer.from(trusted['certificate-authority-data'], 'base64').toString()
    expect(pem.trim()).toBe(ca.trim())
    expect(object.users).toEqual([
      {
        name: 'api-server',
        user: {
          'client-certificate': '/srv/x/client.crt',
          'client-key': '/srv/x/client.key',
          tokenFile: '/srv/x/bearer-token',
        },
      },
    ])
    expect(text).toMatch(/# Trusted are the certificates in it; the first of them ends on 20\d\d-/)
    expect(ran.out).toContain('keeps yes 60 s and no nothing')
  })

  test('says what audit mode means for answers that are kept', async () => {
    const said = 'ImagePolicyWebhook  mode audit: every answer is yes, and goes on counting'
    const args = ['--flavour', 'image-policy']
    expect((await webhooks('asking', args)).err).not.toContain('mode audit')
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace('imageReview: true', 'imageReview: true\n    mode: audit'),
    )
    expect((await webhooks('asking', args)).err).toContain(said)
  })

  test.each([
    { name: 'as policies are unless they say otherwise', spec: {}, isSaid: true },
    {
      name: 'not of one that takes tags',
      spec: { validationConfigurations: { verifyDigest: false } },
      isSaid: false,
    },
    {
      name: 'not of one that denies nothing',
      spec: { validationActions: ['Audit'] },
      isSaid: false,
    },
  ])('says who refuses images without a digest, which nothing pins: $name', async (row) => {
    const document = policyDocument({ name: 'signed', spec: row.spec })
    await writeFile(path.join(folder, 'policies/signed.json'), JSON.stringify(document))
    const { err } = await webhooks('asking', ['--flavour', 'image-policy'])
    const said =
      'images without a digest are refused by signed, and ImagePolicyWebhook pins none: write digests, have mutating webhooks pin them, or set validationConfigurations.verifyDigest: false there\n'
    expect(err.includes(said)).toBe(row.isSaid)
  })

  test('writes a placeholder for whoever has no token', async () => {
    const args = ['--flavour', 'image-policy', '--token-placeholder', '--out', out]
    expect((await webhooks('asking', args, {})).code).toBe(0)
    const { object, text } = await read('image-policy-kubeconfig.yaml')
    expect(object.clusters[0].cluster.server).toMatch(/\/\$\{COUNTERSIGN_TOKEN\}\/image-review$/)
    expect(text).toMatch(/^# Replace \$\{COUNTERSIGN_TOKEN\} in the URL by the token/m)
    expect((await stat(path.join(out, 'image-policy-kubeconfig.yaml'))).mode & 0o777).toBe(0o644)
  })

  test('--check compares, and what another flavour left is told', async () => {
    const args = ['--flavour', 'image-policy', '--out', out]
    await webhooks('asking', args)
    expect((await webhooks('asking', [...args, '--check'])).code).toBe(0)
    await writeFile(
      path.join(folder, 'countersign.yaml'),
      CONFIG.replace('imageReview: true', 'imageReview: { allowTTLSeconds: 2 }'),
    )
    expect(await webhooks('asking', [...args, '--check'])).toMatchObject({
      code: 1,
      out: `${out}/admission-configuration.yaml is not what would be written\n`,
    })
    const url = ['--flavour', 'url', '--out', out]
    expect((await webhooks('asking', [...url, '--check'])).out).toContain(
      `${out}/image-policy-kubeconfig.yaml would not be written`,
    )
    const { err } = await webhooks('asking', url)
    expect(err).toBe(
      ['admission-configuration', 'image-policy-kubeconfig']
        .map((name) => `${out}/${name}.yaml is left from an earlier run: remove it\n`)
        .join(''),
    )
  })

  test.each([
    {
      name: 'a cluster whose functions answer no ImageReview',
      cluster: 'plain',
      args: ['--flavour', 'image-policy'],
      says: [
        /clusters\[0\] {2}the functions answer no ImageReview of plain: say imageReview: true/,
      ],
    },
    {
      name: 'the same beside webhooks',
      cluster: 'plain',
      args: ['--image-policy'],
      says: [/clusters\[0\] {2}the functions answer no ImageReview of plain/],
    },
    {
      name: 'what is about webhooks, all at once',
      cluster: 'plain',
      args: [
        ...['--flavour', 'image-policy', '--service', 'a/b', '--companion', '--force-ignore'],
        ...['--no-safe-selectors', '--base-name', 'kyverno.svc'],
      ],
      says: [
        /webhooks of plain: 6 faults/,
        /--service {2}is about webhooks/,
        /--companion {2}is about webhooks/,
        /--force-ignore {2}is about webhooks/,
        /--no-safe-selectors {2}is about webhooks/,
        /--base-name {2}is about webhooks/,
      ],
    },
  ])('$name is refused, and nothing is written', async ({ cluster, args, says }) => {
    const ran = await webhooks(cluster, [...args, '--out', out])
    expect({ code: ran.code, out: ran.out }).toEqual({ code: 2, out: '' })
    for (const each of says) expect(ran.err).toMatch(each)
    await expect(stat(out)).rejects.toThrow()
  })
})

describe('countersign webhooks --image-policy', () => {
  test.each([
    { flavour: 'url', more: ['webhooks.yaml'], manifests: false },
    {
      flavour: 'kustomize',
      more: ['kustomization.yaml', 'mutating-webhooks.yaml', 'validating-webhooks.yaml'],
      manifests: false,
    },
    {
      flavour: 'static',
      more: ['mutating-webhooks/countersign.yaml', 'validating-webhooks/countersign.yaml'],
      manifests: true,
    },
  ])(
    '$flavour: all plugins stand in the one file that an API server reads',
    async ({ flavour, more, manifests }) => {
      const args = ['--flavour', flavour, '--image-policy', '--out', out]
      expect((await webhooks('shown', args)).code).toBe(0)
      expect(await filesBelow()).toEqual(
        [
          'admission-configuration.yaml',
          'image-policy-kubeconfig.yaml',
          'kubeconfig.yaml',
          ...more,
        ].sort(),
      )
      const { object } = await read('admission-configuration.yaml')
      expect(object.plugins).toEqual([
        ...['Mutating', 'Validating'].map((kind) => ({
          name: `${kind}AdmissionWebhook`,
          configuration: {
            apiVersion: 'apiserver.config.k8s.io/v1',
            kind: 'WebhookAdmissionConfiguration',
            kubeConfigFile: `${AT}/kubeconfig.yaml`,
            ...(manifests && { staticManifestsDir: `${AT}/${kind.toLowerCase()}-webhooks` }),
          },
        })),
        plugin(60, -1),
      ])
      // Objects for kubectl say nothing of it, and resources of Kustomize are objects.
      const others = await Promise.all(more.map(textOf))
      expect(others.join('')).not.toMatch(/image-review|ImagePolicy/)
      expect((await webhooks('shown', [...args, '--check'])).code).toBe(0)
    },
  )

  test('an API server that shows nothing needs the file for this plugin alone', async () => {
    await webhooks('asking', ['--image-policy', '--out', out])
    expect(await filesBelow()).toEqual([
      'admission-configuration.yaml',
      'image-policy-kubeconfig.yaml',
      'webhooks.yaml',
    ])
    const { object } = await read('admission-configuration.yaml')
    expect(object.plugins).toEqual([plugin(300, 30)])
    const { out: text, err } = await webhooks('asking', ['--image-policy'])
    expect(parseAllDocuments(text).map((each) => each.toJS().kind)).toEqual([
      'MutatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
    ])
    expect(err).toContain(
      'not printed: admission-configuration.yaml, image-policy-kubeconfig.yaml; --out writes them',
    )
  })

  test('calls the endpoint where webhooks call a Service, and says so', async () => {
    const args = ['--image-policy', '--service', 'edge/door:8443', '--out', out]
    const { out: text } = await webhooks('shown', args)
    expect(text).toContain('calls endpoint itself, and not --service edge/door:8443')
    const { object } = await read('image-policy-kubeconfig.yaml')
    expect(object.clusters[0].cluster.server).toMatch(
      /^https:\/\/admission\.example\.com\/base\/v1/,
    )
    // What the API server looks the credentials of webhooks up by.
    expect((await read('kubeconfig.yaml')).object.users[0].name).toBe('door.edge.svc:8443')
  })

  test('is told of where a cluster has image reviews and nothing makes its API server ask', async () => {
    const told = 'nothing here makes the API server ask: --image-policy writes that, too'
    expect((await webhooks('asking', [])).err).toContain(told)
    expect((await webhooks('asking', ['--image-policy'])).err).not.toContain(told)
    expect((await webhooks('plain', [])).err).not.toContain('--image-policy')
  })
})

test('an API server that is started with these files gets answers from the functions of the same files', async () => {
  const tls = await createDevCertificates({ hosts: ['127.0.0.1'] })
  await writeFile(path.join(folder, 'ca.pem'), tls.ca)
  const document = policyDocument({
    name: 'signed',
    spec: {
      validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false },
      validations: [
        { expression: 'images.containers.all(i, i != "bad.example/x:1")', message: 'not x' },
      ],
    },
  })
  await writeFile(path.join(folder, 'policies/signed.json'), JSON.stringify(document))
  const app = await appOf(path.join(folder, 'countersign.yaml'), 1_000_000)
  const backend = await startNodeServer({ app, tls, host: '127.0.0.1' })
  await writeFile(
    path.join(folder, 'countersign.yaml'),
    CONFIG.replace(/endpoint: .*/, `endpoint: https://127.0.0.1:${backend.port}/`),
  )
  const args = ['--flavour', 'image-policy', '--ca-bundle', path.join(folder, 'ca.pem')]
  expect((await webhooks('asking', [...args, '--out', out])).code).toBe(0)
  const [{ configuration }] = (await read('admission-configuration.yaml')).object.plugins
  const { server, 'certificate-authority-data': authority } = (
    await read('image-policy-kubeconfig.yaml')
  ).object.clusters[0].cluster
  const { kubeConfigFile: _, ...imagePolicy } = configuration.imagePolicy
  const ca = Buffer.from(authority, 'base64').toString()
  const now = () => Date.UTC(2030, 0, 2)
  const apiServer = createApiServer({ ca, now, imagePolicy: { ...imagePolicy, url: server } })
  const admit = (image: string) =>
    apiServer.admit({
      operation: 'CREATE',
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', namespace: 'shop' },
        spec: { containers: [{ name: 'a', image }] },
      },
    })
  try {
    expect(await admit('good.example/x:1')).toMatchObject({ allowed: true })
    expect(await admit('bad.example/x:1')).toMatchObject({
      allowed: false,
      code: 403,
      message: expect.stringMatching(/denied one or more images: .*not x/),
    })
    await backend.close()
    // Nobody answers, and nothing is kept about this one.
    expect(await admit('new.example/x:1')).toMatchObject({ allowed: false, code: 403 })
  } finally {
    apiServer.close()
    await backend.close()
  }
}, 30_000)

describe('an endpoint with a host for each function', () => {
  beforeEach(() =>
    writeFile(path.join(folder, 'countersign.yaml'), CONFIG.replace(/endpoint: .*/, EACH)),
  )

  test('gives each phase its own, and the API server credentials for both', async () => {
    expect((await webhooks('shown', ['--out', out])).code).toBe(0)
    const text = await textOf('webhooks.yaml')
    const urls = parseAllDocuments(text).map(
      (document) => document.toJS().webhooks[0].clientConfig.url,
    )
    expect(urls).toEqual([
      `https://m.example/v1/shown/${TOKEN}/ivpol/mutate/signed`,
      `https://v.example/v1/shown/${TOKEN}/ivpol/validate/signed`,
    ])
    const { object } = await read('kubeconfig.yaml')
    const user = {
      'client-certificate': `${AT}/client.crt`,
      'client-key': `${AT}/client.key`,
      tokenFile: `${AT}/bearer-token`,
    }
    expect(object.users).toEqual([
      { name: 'm.example', user },
      { name: 'v.example', user },
    ])
  })

  test('is not what a Service leads to, unless it is one host with a path for each', async () => {
    const refused = await webhooks('shown', ['--service', 'edge/door'])
    expect({ code: refused.code, out: refused.out }).toEqual({ code: 2, out: '' })
    expect(refused.err).toMatch(/a Service leads to one host, and endpoint has one for each/)
    const paths =
      'endpoint: { mutate: https://a.example/m, validate: https://a.example/v, imageReview: https://a.example/i }'
    await writeFile(path.join(folder, 'countersign.yaml'), CONFIG.replace(/endpoint: .*/, paths))
    const { out: text } = await webhooks('shown', ['--service', 'edge/door'])
    const called = parseAllDocuments(text).map(
      (document) => document.toJS().webhooks[0].clientConfig.service.path,
    )
    expect(called).toEqual([
      `/m/v1/shown/${TOKEN}/ivpol/mutate/signed`,
      `/v/v1/shown/${TOKEN}/ivpol/validate/signed`,
    ])
  })
})

test('a cluster that reaches the functions elsewhere has URLs and credentials for that place alone', async () => {
  const own = CONFIG.replace(
    '    imageReview: { allow',
    '    webhooks: { endpoint: https://mtls.example }\n    imageReview: { allow',
  )
  await writeFile(path.join(folder, 'countersign.yaml'), own)
  expect((await webhooks('shown', ['--image-policy', '--out', out])).code).toBe(0)
  const all = await Promise.all((await filesBelow()).map(textOf))
  expect(all.join('')).not.toContain('admission.example.com')
  expect((await read('kubeconfig.yaml')).object.users[0].name).toBe('mtls.example')
  const { out: text } = await webhooks('asking', [])
  expect(text).toContain('url: https://admission.example.com/base/v1/asking/')
})
