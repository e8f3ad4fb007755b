import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type Json, ofType, readTemplate, statements, type Template } from './template.ts'
import { osls, ROOT, reviewingProject, run, suite, withoutTools } from './tools.ts'

/** What functions need that read signed policies, in `serverless.yml`. */

const OBJECTS = '{{resolve:ssm:/countersign/prod/policy-bundles-arn}}'
const KEY = '{{resolve:ssm:/countersign/prod/policy-key-arn}}'
const READ_KEY = { Effect: 'Allow', Action: ['kms:GetPublicKey'], Resource: KEY }
const READ_OBJECTS = { Effect: 'Allow', Action: 's3:GetObject', Resource: OBJECTS }
const BUNDLES = {
  s3: {
    s3: 's3://policies/bundles/prod.json',
    key: { kms: 'awskms:///alias/policies' },
    maxAgeSeconds: 7200,
  },
  url: { url: 'https://policies.example.com/prod.json', key: { file: 'policies.pub' } },
  r2: { r2: { binding: 'POLICIES', key: 'prod.json' }, key: { file: 'policies.pub' } },
}
const ROLES = ['MutateRole', 'ValidateRole', 'ImageReviewRole']

describe.skipIf(withoutTools)(suite('serverless.yml with a policyBundle'), () => {
  let folder: string
  let below: string
  const templates: Record<string, Template> = {}
  const file = (way: string) => path.join(folder, way, 'cloudformation-template-update-stack.json')

  const packaged = (config: string, to: string, parameters: Record<string, string>) =>
    osls(path.join(folder, to), {
      config: `${below}/${config}.yaml`,
      bundles: below,
      imageReview: 'function',
      signingKeys: 'none',
      sealingKey: 'none',
      ...parameters,
    })

  beforeAll(async () => {
    const project = await reviewingProject()
    folder = project.folder
    below = project.below
    for (const [name, policyBundle] of Object.entries(BUNDLES)) {
      await writeFile(
        path.join(folder, `${name}.yaml`),
        stringify({ ...project.config, policyBundle }),
      )
    }
    for (const [way, parameters] of [
      ['s3', { policyBundle: 's3', policyKey: 'kms' }],
      ['url', { policyBundle: 'url' }],
    ] as const) {
      const ended = await packaged(way, way, parameters)
      expect(ended, ended.text).toMatchObject({ code: 0 })
      templates[way] = await readTemplate(file(way))
    }
  }, 200_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('gives templates that CloudFormation takes', async () => {
    const files = ['s3', 'url'].map(file)
    const { text } = await run(process.execPath, ['infra/validate.mjs', ...files])
    const errors = files.map((each) => text.split(`${each}: `)[1]?.split(',')[0])
    expect(errors, text).toEqual(['0 errors', '0 errors'])
  }, 180_000)

  test.each([
    ['s3', [READ_OBJECTS, READ_KEY]],
    ['url', []],
  ])('%s: every function may read what it is named and nothing else', (way, allowed) => {
    for (const role of ROLES) {
      const [, ...rest] = statements(templates[way]!, role)
      expect(rest).toEqual(allowed)
    }
  })

  test.each([
    ['s3', 7200],
    ['url', 3600],
  ])(
    '%s: tells the topic of policies that nobody confirms, and of bundles that do not count',
    (way, seconds) => {
      const alarms = ofType(templates[way]!, 'AWS::CloudWatch::Alarm')
      for (const [name, phase] of [
        ['Mutate', 'mutate'],
        ['Validate', 'validate'],
        ['ImageReview', 'image-review'],
      ]) {
        const every = {
          Namespace: 'Countersign/prod',
          Dimensions: [{ Name: 'phase', Value: phase }],
          AlarmActions: ['{{resolve:ssm:/countersign/prod/alarm-topic-arn}}'],
          TreatMissingData: 'notBreaching',
        }
        expect(alarms[`${name}PolicyBundleAgeAlarm`]).toMatchObject({
          ...every,
          MetricName: 'policyBundleAge',
          Statistic: 'Maximum',
          Threshold: seconds,
        })
        expect(alarms[`${name}PolicyBundleFaultsAlarm`]).toMatchObject({
          ...every,
          MetricName: 'policyBundleFaults',
          Statistic: 'Sum',
        })
      }
    },
  )

  test.each<[string, Record<string, string>, string[]]>([
    [
      's3',
      {},
      [
        'policyBundle: expected s3, by policyBundle of the config',
        'policyKey: expected kms, by policyBundle of the config',
      ],
    ],
    [
      'url',
      { policyBundle: 'https', policyKey: 'kms' },
      [
        'policyBundle: expected s3 or url or none',
        'policyKey: expected none, by policyBundle of the config',
      ],
    ],
    ['r2', {}, ['policyBundle of the config: r2 is for Workers, and no function here can read it']],
    [
      's3',
      {
        policyBundle: 's3',
        policyKey: 'kms',
        policyKeyArn: 'arn:aws:kms:eu-west-1:111122223333:alias/p',
      },
      ['policyKeyArn: expected ARNs of kms, with commas between'],
    ],
  ])(
    'parameters that do not fit %s are told: %j',
    async (config, parameters, faults) => {
      const { code, text } = await packaged(config, 'refused', parameters)
      expect(code, text).toBe(1)
      const told = text.split('parameters:\n')[1]?.split('\n') ?? []
      const listed = told.filter((line) => line.startsWith('  ')).map((line) => line.trim())
      expect(listed).toEqual(faults)
    },
    60_000,
  )
})

test('the metrics that alarms are about are those that functions write', async () => {
  const texts = await Promise.all(
    [
      'infra/serverless/alarms.cjs',
      'infra/stack/metrics.ts',
      'functions/policy-bundle/report.ts',
    ].map((each) => readFile(ROOT + each, 'utf8')),
  )
  for (const text of texts) {
    expect(
      ['policyBundleAge', 'policyBundleFaults'].every((name: Json) => text.includes(name)),
    ).toBe(true)
  }
})
