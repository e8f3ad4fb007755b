import { generateKeyPairSync } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { attest, signImage } from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { countersign } from './harness.ts'

let folder: string
let registry: LocalRegistry
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const signer = localSigner(keys.privateKey)
const at = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-test-'))
  registry = await startRegistry()
  for (const name of ['signed', 'unsigned']) {
    const target = { url: registry.url, repository: name }
    const descriptor = await pushImage(target, { text: name, tag: '1' })
    const image = { descriptor, reference: name }
    if (name === 'signed') {
      await signImage(target, image, [signer], 'tag')
      await signImage(target, image, [signer], 'dsse')
      const attested = {
        predicateType: 'https://slsa.dev/provenance/v1',
        predicate: {},
        layout: 'dsse' as const,
      }
      await attest(target, image, signer, attested)
    }
  }
})
afterAll(async () => {
  await Promise.all([registry.close(), rm(folder, { recursive: true })])
})

const PEM = () => JSON.stringify(keys.publicKey.export({ type: 'spki', format: 'pem' }))
const image = (name: string) => `${registry.host}/${name}:1`

const policy = ({
  name = 'signed',
  kind = 'ImageValidatingPolicy',
  spec = '',
  metadata = '',
  validations = '',
} = {}) => `apiVersion: policies.kyverno.io/v1
kind: ${kind}
metadata: { name: ${name}${metadata} }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }
  validationConfigurations: { verifyDigest: false }
${spec}
  attestors:
    - name: release
      cosign: { key: { data: ${PEM()} }, ctlog: { insecureIgnoreTlog: true } }
  attestations:
    - name: provenance
      intoto: { type: https://slsa.dev/provenance/v1 }
  validations:
    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.release]) > 0)
      message: not signed
${validations}`

const pod = (name: string, from: string, more = '') => `apiVersion: v1
kind: Pod
metadata: { name: ${name}${more} }
spec: { containers: [{ name: a, image: "${image(from)}" }] }
`

const result = (resource: string, expected: string, more = '') =>
  `  - { policy: signed, kind: Pod, isImageValidatingPolicy: true, resources: [${resource}], result: ${expected}${more} }\n`

const testFile = (results: string, more = '') => `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: { name: signatures }
policies: [policy.yaml]
resources: [resources.yaml]
${more}results:
${results}`

const USUAL = () => ({
  'policy.yaml': policy(),
  'resources.yaml': `${pod('good', 'signed')}---\n${pod('bad', 'unsigned')}`,
})

let count = 0
async function run(files: Record<string, string>, ...args: string[]) {
  const name = `case${count++}`
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(at(`${name}/${file}`)), { recursive: true })
    await writeFile(at(`${name}/${file}`), text)
  }
  const more = args.map((each) => each.replace('@', at(name)))
  const ran = await countersign(['test', at(name), '--plain-http', registry.host, ...more])
  const short = (text: string) => text.replaceAll(at(name), '@')
  return { ...ran, out: short(ran.out), err: short(ran.err), folder: at(name) }
}

describe('countersign test', () => {
  test('passes when every result is as expected', async () => {
    const results = result('good', 'pass') + result('default/bad', 'fail')
    expect(await run({ ...USUAL(), 'kyverno-test.yaml': testFile(results) })).toMatchObject({
      code: 0,
      err: '',
      out: `signatures @/kyverno-test.yaml
  ✓ signed  Pod/good  pass
  ✓ signed  Pod/bad   fail

1 test: 2 passed, 0 failed
`,
    })
  })

  test.each([
    [
      'an unsigned image that was expected to pass',
      result('bad', 'pass'),
      '✗ signed  Pod/bad  fail, expected pass\n      not signed\n',
    ],
    [
      'a signed image that was expected to fail',
      result('good', 'fail'),
      '✗ signed  Pod/good  pass, expected fail\n      success\n',
    ],
    [
      'a resource that the test does not have',
      result('other', 'fail'),
      '✗ signed  Pod/other  missing, expected fail\n      no resource of the test is Pod/other\n',
    ],
    [
      'a resource of another kind',
      result('bad', 'fail').replace('kind: Pod', 'kind: Job'),
      'no resource of the test is Job/bad\n',
    ],
    [
      'a policy that the test does not have',
      result('bad', 'fail').replace('signed', 'typo'),
      'no image policy of the test is named typo; it has signed\n',
    ],
    [
      'no result at all',
      '',
      'error the test expects nothing of any image policy, so that it would pass whatever they do\n',
    ],
  ])('fails for %s', async (_, results, says) => {
    const { code, out } = await run({ ...USUAL(), 'kyverno-test.yaml': testFile(results) })
    expect(code).toBe(1)
    expect(out).toContain(says)
  })

  test('fails where there is no test', async () => {
    const { code, err } = await run({ 'policy.yaml': policy() })
    expect({ code, err }).toEqual({ code: 2, err: 'countersign test: no kyverno-test.yaml in @\n' })
  })

  test.each([
    [
      'in the test file',
      { 'kyverno-test.yaml': 'policies: [policy.yaml]\nresult: []\n' },
      '@/kyverno-test.yaml:2:1  result: unknown field "result"',
    ],
    [
      'in a policy',
      { 'policy.yaml': policy({ spec: '  typo: 1' }) },
      '@/policy.yaml:9:3  spec.typo: unknown field "typo"',
    ],
    ['in a resource', { 'resources.yaml': 'a: [\n' }, '@/resources.yaml:2:1'],
    [
      'checks that nobody makes',
      { 'kyverno-test.yaml': testFile(result('good', 'pass'), 'checks: [{}]\n') },
      'checks: checks are not supported: write results',
    ],
  ])('tells what is wrong %s', async (_, files, says) => {
    const { code, out } = await run({
      ...USUAL(),
      'kyverno-test.yaml': testFile(result('good', 'pass')),
      ...files,
    })
    expect(code).toBe(1)
    expect(out).toContain(says)
  })

  test('a policy that is not about a resource passes it, and is not with --strict', async () => {
    const files = {
      ...USUAL(),
      'policy.yaml': policy().replace(
        'resourceRules',
        'objectSelector: { matchLabels: { a: b } }\n    resourceRules',
      ),
      'kyverno-test.yaml': testFile(result('good', 'pass') + result('bad', 'skip')),
    }
    const { code, out } = await run(files)
    expect(code).toBe(0)
    expect(out).toContain(
      '2 passed (2 only because the policy is not about the resource), 0 failed',
    )
    expect((await run(files, '--strict')).code).toBe(1)
  })

  test('results of other kinds of policies are left out', async () => {
    const other =
      '  - { policy: labels, isValidatingPolicy: true, kind: Pod, resources: [good], result: fail }\n'
    const more = {
      'policy.yaml': `${policy()}---\napiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: { name: labels }\nspec: {}\n`,
    }
    const { code, out } = await run({
      ...USUAL(),
      ...more,
      'kyverno-test.yaml': testFile(result('good', 'pass') + other),
    })
    expect(code).toBe(0)
    expect(out).toContain('1 result of other policies left out')
  })

  test('exceptions skip', async () => {
    const exception = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: { name: legacy, namespace: shop }
spec:
  policyRefs: [{ name: signed, kind: ImageValidatingPolicy }]
  matchConditions: [{ name: a, expression: object.metadata.name == "bad" }]
`
    const files = { ...USUAL(), 'exception.yaml': exception }
    const tested = testFile(
      result('bad', 'skip') + result('good', 'pass'),
      'exceptions: [exception.yaml]\n',
    )
    const { code, out } = await run({ ...files, 'kyverno-test.yaml': tested })
    expect(out).toContain('2 passed, 0 failed')
    expect(code).toBe(0)
  })

  test('policies for Pod controllers are tested with the policy they follow from', async () => {
    const deployment = (name: string, from: string) => `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name} }
spec: { template: { spec: { containers: [{ name: a, image: "${image(from)}" }] } } }
`
    const results =
      result('good', 'pass').replace('Pod', 'Deployment') +
      result('bad', 'fail').replace('Pod', 'Deployment')
    const { code } = await run({
      'policy.yaml': policy(),
      'resources.yaml': `${deployment('good', 'signed')}---\n${deployment('bad', 'unsigned')}`,
      'kyverno-test.yaml': testFile(results),
    })
    expect(code).toBe(0)
  })

  test('namespaced policies are about their namespace', async () => {
    const files = {
      'policy.yaml': policy({
        kind: 'NamespacedImageValidatingPolicy',
        metadata: ', namespace: shop',
      }),
      'resources.yaml': `${pod('bad', 'unsigned', ', namespace: shop')}---\n${pod('elsewhere', 'unsigned', ', namespace: blog')}`,
      'kyverno-test.yaml': testFile(result('shop/bad', 'fail') + result('blog/elsewhere', 'skip')),
    }
    const { code, out } = await run(files)
    expect(out).toContain('✓ shop/signed  Pod/shop/bad        fail')
    expect(code).toBe(0)
  })

  test('tags fail where digests are wanted, and are pinned with --pin', async () => {
    const files = {
      ...USUAL(),
      'policy.yaml': policy().replace('verifyDigest: false', 'verifyDigest: true'),
    }
    const wanted = { ...files, 'kyverno-test.yaml': testFile(result('good', 'fail')) }
    expect((await run(wanted)).code).toBe(0)
    const { code, out } = await run(
      { ...files, 'kyverno-test.yaml': testFile(result('good', 'pass')) },
      '--pin',
    )
    expect(out).toContain('1 passed')
    expect(code).toBe(0)
  })

  test('what is recorded is enough without the registry', async () => {
    const files = {
      ...USUAL(),
      'kyverno-test.yaml': testFile(result('good', 'pass') + result('bad', 'fail')),
    }
    const recorded = await run(files, '--record', '@/images')
    expect(recorded.code).toBe(0)
    const kept = `${recorded.folder}/images/${registry.host.replace(':', '_')}/signed`
    const index = JSON.parse(await readFile(`${kept}/index.json`, 'utf8'))
    expect(
      index.manifests.map((each: { annotations?: object }) => each.annotations),
    ).toContainEqual({
      'org.opencontainers.image.ref.name': '1',
    })
    const before = registry.requests.length
    const offline = await run(
      files,
      '--registry',
      path.join(recorded.folder, 'images'),
      '--offline',
    )
    expect(offline.out.replace('@', '')).toBe(recorded.out.replace('@', ''))
    expect(registry.requests.length).toBe(before)
  })

  test('what was not recorded cannot be told offline', async () => {
    const files = { ...USUAL(), 'kyverno-test.yaml': testFile(result('good', 'error')) }
    const { code } = await run(files, '--offline')
    expect(code).toBe(0)
  })

  test('a layout that was touched is no evidence', async () => {
    const files = { ...USUAL(), 'kyverno-test.yaml': testFile(result('good', 'pass')) }
    const { folder: kept } = await run(files, '--record', '@/images')
    const layout = `${kept}/images/${registry.host.replace(':', '_')}/signed`
    const { manifests } = JSON.parse(await readFile(`${layout}/index.json`, 'utf8'))
    await writeFile(`${layout}/blobs/sha256/${manifests[0].digest.slice(7)}`, '{}')
    const { out } = await run(files, '--registry', `${kept}/images`, '--offline')
    expect(out).toContain('✗ signed  Pod/good  error, expected pass')
  })

  test('the settings beside a test name layouts and its time', async () => {
    const exception = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: { name: legacy, namespace: shop }
spec:
  policyRefs: [{ name: signed, kind: ImageValidatingPolicy }]
  expiresAt: "2020-01-01T00:00:00Z"
`
    const settings =
      'apiVersion: countersign.dev/v1\nkind: TestSettings\nnow: "2019-01-01T00:00:00Z"\n'
    const files = {
      ...USUAL(),
      'exception.yaml': exception,
      'kyverno-test.yaml': testFile(result('bad', 'skip'), 'exceptions: [exception.yaml]\n'),
    }
    expect((await run(files)).code).toBe(1)
    const { code, out } = await run({ ...files, 'countersign-test.yaml': settings })
    expect(out).toContain('1 passed')
    expect(code).toBe(0)
  })

  test('policies about JSON are tested with a payload', async () => {
    const json = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: signed }
spec:
  evaluation: { mode: JSON }
  validationConfigurations: { verifyDigest: false }
  images: [{ name: bar, expression: "[object.foo.bar]" }]
  attestors:
    - name: release
      cosign: { key: { data: ${PEM()} }, ctlog: { insecureIgnoreTlog: true } }
  validations:
    - expression: images.bar.all(i, verifyImageSignatures(i, [attestors.release]) > 0)
`
    const tested = (expected: string) => `apiVersion: cli.kyverno.io/v1alpha1
kind: Test
policies: [policy.yaml]
jsonPayload: payload.json
results: [{ policy: signed, isImageValidatingPolicy: true, kind: "", result: ${expected} }]
`
    const files = (from: string, expected: string) => ({
      'policy.yaml': json,
      'payload.json': JSON.stringify({ foo: { bar: image(from) } }),
      'kyverno-test.yaml': tested(expected),
    })
    const good = await run(files('signed', 'pass'))
    expect(good.out).toContain('✓ signed  payload.json  pass')
    expect((await run(files('unsigned', 'fail'))).code).toBe(0)
    expect((await run(files('unsigned', 'pass'))).code).toBe(1)
  })

  test('policies read what the test says is in the cluster', async () => {
    const spec = `  variables:
    - name: cm
      expression: resource.get("v1", "configmaps", object.metadata.namespace, "settings")`
    const validations = '    - expression: variables.cm.data.env == object.metadata.labels.env\n'
    const files = {
      'policy.yaml': policy({ spec, validations }),
      'resources.yaml': `${pod('good', 'signed', ', labels: { env: prod }')}---\n${pod('bad', 'signed', ', labels: { env: dev }')}`,
      'cluster.yaml': `apiVersion: cli.kyverno.io/v1alpha1
kind: ClusterResource
spec:
  resources: [{ apiVersion: v1, kind: ConfigMap, metadata: { name: settings, namespace: default }, data: { env: prod } }]
`,
      'kyverno-test.yaml': testFile(
        result('good', 'pass') + result('bad', 'fail'),
        'clusterResources: [cluster.yaml]\n',
      ),
    }
    const { code, out } = await run(files)
    expect(out).toContain('2 passed, 0 failed')
    expect(code).toBe(0)
  })

  test('namespaces have the labels that the test gives them, and their name without', async () => {
    const selecting = policy().replace(
      'resourceRules',
      'namespaceSelector: { matchLabels: { team: a } }\n    resourceRules',
    )
    const values = 'values: { namespaceSelector: [{ name: shop, labels: { team: a } }] }\n'
    const files = {
      'policy.yaml': selecting,
      'resources.yaml': `${pod('bad', 'unsigned', ', namespace: shop')}---\n${pod('else', 'unsigned', ', namespace: blog')}`,
      'kyverno-test.yaml': testFile(
        result('shop/bad', 'fail') + result('blog/else', 'skip'),
        values,
      ),
    }
    const { code, out } = await run(files)
    expect(out).toContain('2 passed (1 only because')
    expect(code).toBe(0)
  })

  test('prints JSON and JUnit', async () => {
    const files = {
      ...USUAL(),
      'kyverno-test.yaml': testFile(result('good', 'pass') + result('bad', 'pass')),
    }
    const json = JSON.parse((await run(files, '-o', 'json')).out)
    expect(json).toMatchObject({ passed: 1, failed: 1, errors: 0 })
    expect(json.tests[0].rows[1]).toEqual({
      policy: 'signed',
      resource: 'Pod/bad',
      expected: 'pass',
      got: 'fail',
      ok: false,
      message: 'not signed',
    })
    const { out } = await run(files, '-o', 'junit')
    expect(out).toContain(
      '<testsuite name="signatures" file="@/kyverno-test.yaml" tests="2" failures="1" errors="0">',
    )
    expect(out).toContain(
      '<testcase classname="signed" name="Pod/bad pass"><failure message="expected pass, got fail: not signed"/></testcase>',
    )
  })
})
