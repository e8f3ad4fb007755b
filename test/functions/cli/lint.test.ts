import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import type { Finding } from '#functions/cli/lint/findings.ts'
import { countersign } from './harness.ts'

let folder: string
const at = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-lint-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** A policy about Pods and their debug containers that has nothing to be said about. */
const policy = (
  changes: { spec?: string; name?: string; metadata?: string } = {},
) => `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: ${changes.name ?? 'signed'}
${changes.metadata ?? ''}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers]}
  attestors: []
${
  changes.spec ??
  `  validations:
    - expression: images.containers.size() > 0`
}
`

async function lint(files: Record<string, string>, ...more: string[]) {
  const name = `case-${Math.random().toString(36).slice(2)}`
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(at(`${name}/${file}`)), { recursive: true })
    await writeFile(at(`${name}/${file}`), text)
  }
  const ran = await countersign([
    'lint',
    ...(more.includes('--config') ? [] : [at(name)]),
    ...more.map((each) => each.replace('@', at(name))),
  ])
  const short = (text: string) => text.replaceAll(at(name), '@')
  return { code: ran.code, out: short(ran.out), err: short(ran.err) }
}

describe('countersign lint', () => {
  test('says that there is nothing to say', async () => {
    expect(await lint({ 'a.yaml': policy() })).toEqual({
      code: 0,
      out: '1 file, 1 policy: no faults, 0 warnings\n',
      err: '',
    })
  })

  test('tells every fault of every file with its place', async () => {
    const { code, out } = await lint({
      'a.yaml': policy({
        spec: '  validations:\n    - expression: images.containers.size() >\n    - expression: "1"\n  typo: 1',
      }),
      'b.yaml': 'apiVersion: v1\nkind: [unclosed\n',
    })
    expect(code).toBe(1)
    const places = out.split('\n').map((line) => line.split(': ').slice(0, 2).join(' '))
    expect(places.slice(0, 4)).toEqual([
      '@/a.yaml:12:45 error',
      '@/a.yaml:13:20 error',
      '@/a.yaml:14:3 error',
      '@/b.yaml:3:1 error',
    ])
    expect(out).toContain('@/a.yaml:14:3: error: spec.typo: unknown field "typo"\n')
    expect(out).toContain('2 files, 0 policies: 4 faults, 0 warnings\n')
  })

  test.each([
    {
      name: 'a reason that no answer carries',
      change: { spec: '  validations:\n    - {expression: "true", reason: Invalid}' },
      says: '@/a.yaml:12:28: warning: spec.validations[0].reason: no answer carries this, in Kyverno as here',
    },
    {
      name: 'the annotation of other policies',
      change: { metadata: '  annotations: {pod-policies.kyverno.io/autogen-controllers: none}' },
      says: '@/a.yaml:5:17: warning: metadata.annotations["pod-policies.kyverno.io/autogen-controllers"]: image policies ignore this annotation, in Kyverno as here: spec.autogen.podControllers.controllers is what counts',
    },
  ])('warns of $name', async ({ change, says }) => {
    const { out } = await lint({ 'a.yaml': policy(change) })
    expect(out).toContain(`${says}\n`)
  })

  test('warns of what Kyverno does not enforce and is enforced here', async () => {
    const keyless = `  attestors:
    - name: workflow
      cosign:
        keyless:
          identities: [{ issuer: https://ci.example.com, subjectExpression: object.metadata.name }]
          additionalExtensions: { 1.3.6.1.4.1.57264.1.9: a }
`
    const exception = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: { name: legacy, namespace: shop }
spec:
  policyRefs: [{ name: signed, kind: ImageValidatingPolicy }]
  images: ["registry.example.com/legacy/*"]
  allowedValues: [a]
  reportResult: pass
`
    const files = {
      'a.yaml': policy().replace('  attestors: []\n', keyless),
      'b.yaml': exception,
    }
    const { out } = await lint(files, '-o', 'json')
    const { findings } = JSON.parse(out)
    const told = findings.filter(({ message }: { message: string }) => message.includes('Kyverno '))
    expect(told.map(({ file, line, path: where }: Finding) => `${file}:${line} ${where}`)).toEqual(
      expect.arrayContaining([
        '@/a.yaml:14 spec.attestors[0].cosign.keyless.identities[0].subjectExpression',
        '@/a.yaml:15 spec.attestors[0].cosign.keyless.additionalExtensions',
        '@/b.yaml:6 spec.images',
        '@/b.yaml:7 spec.allowedValues',
        '@/b.yaml:8 spec.reportResult',
      ]),
    )
  })

  test('warns of a deprecated version', async () => {
    const { code, out } = await lint({ 'a.yaml': policy().replace('io/v1\n', 'io/v1alpha1\n') })
    expect({ code, first: out.split('\n')[0] }).toEqual({
      code: 0,
      first:
        '@/a.yaml:1:1: warning: apiVersion: policies.kyverno.io/v1alpha1 is deprecated, and policies.kyverno.io/v1 means the same',
    })
  })

  test('with --strict a warning is a fault', async () => {
    const files = { 'a.yaml': policy().replace('io/v1\n', 'io/v1alpha1\n') }
    const { code, out } = await lint(files, '--strict')
    expect(code).toBe(1)
    expect(out).toContain('@/a.yaml:1:1: error: ')
    expect(out).toContain('1 fault, 0 warnings')
  })

  test('what is no file is bad input', async () => {
    const { code, err } = await countersign(['lint', at('nowhere')])
    expect({ code, err }).toEqual({
      code: 2,
      err: `countersign lint: cannot read ${at('nowhere')}: no such file or folder\n`,
    })
  })

  const config = (clusters: string) => `policies: policies
endpoint: https://admission.example.com
outcomes: {key: {secrets: [{id: a, env: SEAL}]}}
clusters:
${clusters}
`
  const CLUSTER = `  - {name: prod, tokens: [${'a'.repeat(64)}], policies: [signed, missing]}`

  test('of a config every fault is told as well', async () => {
    const { code, out } = await lint(
      { 'countersign.yaml': `${config('  - {name: prod}')}unknown: 1\n` },
      '--config',
      '@/countersign.yaml',
    )
    expect(code).toBe(1)
    expect(out).toContain('@/countersign.yaml:5:5: error: clusters[0].tokens: ')
    expect(out).toContain('@/countersign.yaml:6:10: error: unknown: ')
    expect(out).toContain('@/policies: error: cannot read @/policies: no such file or folder\n')
  })

  test('config and policies have to fit', async () => {
    const files = { 'countersign.yaml': config(CLUSTER), 'policies/a.yaml': policy() }
    const { code, out } = await lint(files, '--config', '@/countersign.yaml')
    expect(code).toBe(1)
    expect(out).toContain(
      '@/countersign.yaml:5:113: error: clusters[0].policies[1]: no policy of the folder is named "missing"; it has signed\n',
    )
  })

  test('policies that no image review can decide are named, with what they need and what to do', async () => {
    const cluster = `  - {name: prod, tokens: [${'a'.repeat(64)}], imageReview: true}`
    const files = { 'countersign.yaml': config(cluster), 'policies/a.yaml': policy() }
    const { code, out } = await lint(files, '--config', '@/countersign.yaml')
    expect(code).toBe(1)
    expect(out).toMatch(
      /^@\/countersign\.yaml:5:\d+: error: clusters\[0\]\.imageReview: policy signed \(@\/policies\/a\.yaml:1\) needs the kind of container of each image in spec\.validations\[0\]\.expression, which no ImageReview carries: list the policies for image reviews in clusters\[0\]\.imageReview\.policies$/m,
    )
  })

  test('a config whose folder has no policy would admit everything', async () => {
    const files = { 'countersign.yaml': config(CLUSTER), 'policies/a.yaml': '' }
    const { code, out } = await lint(files, '--config', '@/countersign.yaml')
    expect(code).toBe(1)
    expect(out).toContain('@/countersign.yaml:1:11: error: policies: holds no policy')
  })

  test('JSON has the same findings', async () => {
    const { code, out } = await lint(
      { 'a.yaml': policy({ spec: '  validations: 1' }) },
      '-o',
      'json',
    )
    expect(code).toBe(1)
    expect(JSON.parse(out)).toEqual({
      files: 1,
      policies: 0,
      errors: 1,
      warnings: 0,
      findings: [
        {
          severity: 'error',
          code: 'POLICY_INVALID',
          file: '@/a.yaml',
          line: 11,
          column: 16,
          path: 'spec.validations',
          message: 'Invalid value: "integer": must be of type array',
        },
      ],
    })
  })

  test('SARIF has a rule and a place for each finding', async () => {
    const { out } = await lint({ 'a.yaml': policy({ spec: '  validations: 1' }) }, '-o', 'sarif')
    const { version, runs } = JSON.parse(out)
    expect(version).toBe('2.1.0')
    expect(runs[0].tool.driver.rules).toEqual([{ id: 'POLICY_INVALID' }])
    expect(runs[0].results).toEqual([
      {
        ruleId: 'POLICY_INVALID',
        level: 'error',
        message: { text: 'spec.validations: Invalid value: "integer": must be of type array' },
        locations: [
          {
            physicalLocation: {
              artifactLocation: { uri: '@/a.yaml' },
              region: { startLine: 11, startColumn: 16 },
            },
          },
        ],
      },
    ])
  })

  test('faults of the config and of the policies are told at once, unless the config is wrong about what policies need', async () => {
    const config = (more: string) => `policies: policies
endpoint: http://a.example
outcomes: { key: { secrets: [ { id: a, env: SEAL } ] } }
kms: { region: ${more} }
clusters: [ { name: prod, tokens: [], colour: red } ]
`
    const aws = policy().replace(
      'attestors: []',
      'attestors: [{name: a, cosign: {key: {kms: "awskms:///alias/a"}, ctlog: {insecureIgnoreTlog: true}}}]',
    )
    const files = { 'policies/a.yaml': aws, 'policies/b.yaml': policy() }
    const both = await lint(
      { 'c.yaml': config('eu-central-1'), ...files },
      ...['--config', '@/c.yaml', '-o', 'json'],
    )
    const paths = (out: string) => JSON.parse(out).findings.map(({ path }: Finding) => path)
    expect(both.code).toBe(1)
    expect(paths(both.out)).toEqual([
      'endpoint',
      'clusters[0].tokens',
      'clusters[0].colour',
      'metadata.name',
    ])
    const one = await lint(
      { 'c.yaml': config('Mars'), ...files },
      ...['--config', '@/c.yaml', '-o', 'json'],
    )
    expect(paths(one.out)).toEqual([
      'endpoint',
      'kms.region',
      'clusters[0].tokens',
      'clusters[0].colour',
    ])
  })

  test('YAML has every policy with the policies for Pod controllers that follow from it', async () => {
    const pods = policy({ name: 'pods' }).replace('pods, pods/ephemeralcontainers', 'pods')
    const none = policy({ name: 'none' })
    const { out, err } = await lint({ 'a.yaml': `${pods}---\n${none}` }, '-o', 'yaml')
    const [first, second] = parseAllDocuments(out).map((each) => parse(String(each)))
    expect(first.metadata.name).toBe('pods')
    expect(Object.keys(first.status.autogen.configs)).toEqual(['defaults', 'cronjobs'])
    expect(first.status.autogen.configs.cronjobs).toEqual({
      targets: [{ group: 'batch', version: 'v1', kind: 'CronJob', resource: 'cronjobs' }],
      spec: {
        ...first.spec,
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['batch'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['cronjobs'],
            },
          ],
        },
      },
    })
    expect(second.status).toEqual({ autogen: {} })
    expect(err).toContain('1 file, ')
  })
})
