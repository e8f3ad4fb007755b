import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { ofType, readTemplate, statements, type Template } from './template.ts'
import { osls, reviewingProject, run, suite, withoutTools } from './tools.ts'

/** The third function of `serverless.yml`, which is there only where a cluster asks for image reviews. */

const KEYS = 'arn:aws:kms:eu-central-1:111122223333:key/a'
const REPOSITORIES = 'arn:aws:ecr:eu-central-1:111122223333:repository/shop/*'
const BUS = 'arn:aws:events:eu-central-1:111122223333:event-bus/audit'

const WAYS = {
  everything: {
    imageReview: 'function',
    signingKeyArns: KEYS,
    verifyRemotely: 'true',
    registries: 'amazon',
    ecrRepositoryArns: REPOSITORIES,
    eventBusArn: BUS,
    tracing: 'Active',
    imageReviewTimeout: '20',
    imageReviewConcurrency: '7',
    imageReviewP99: '1234',
  },
  secrets: {
    imageReview: 'function',
    frontDoor: 'function-url',
    sealingKey: 'none',
    signingKeys: 'none',
  },
} as const
type Way = keyof typeof WAYS

describe.skipIf(withoutTools)(suite('serverless.yml with imageReview: function'), () => {
  /** The same, from the root. */
  let folder: string
  let below: string
  const templates = {} as Record<Way, Template>
  const file = (way: Way) => path.join(folder, way, 'cloudformation-template-update-stack.json')

  const packaged = (to: string, parameters: Record<string, string>) =>
    osls(path.join(folder, to), { config: `${below}/config.yaml`, bundles: below, ...parameters })

  beforeAll(async () => {
    const project = await reviewingProject()
    folder = project.folder
    below = project.below
    await writeFile(path.join(folder, 'config.yaml'), stringify(project.config))
    for (const [way, parameters] of Object.entries(WAYS) as [Way, Record<string, string>][]) {
      const ended = await packaged(way, parameters)
      expect(ended, ended.text).toMatchObject({ code: 0 })
      templates[way] = await readTemplate(file(way))
    }
  }, 200_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('gives templates that CloudFormation takes', async () => {
    const files = (Object.keys(WAYS) as Way[]).map(file)
    const { text } = await run(process.execPath, ['infra/validate.mjs', ...files])
    const errors = files.map((each) => text.split(`${each}: `)[1]?.split(',')[0])
    expect(errors, text).toEqual(['0 errors', '0 errors'])
  }, 180_000)

  test('adds a function with limits, a role and a log of its own', () => {
    for (const way of Object.keys(WAYS) as Way[]) {
      const functions = ofType(templates[way], 'AWS::Lambda::Function')
      expect(Object.keys(functions)).toEqual([
        'MutateLambdaFunction',
        'ValidateLambdaFunction',
        'ImageReviewLambdaFunction',
      ])
      expect(functions.ImageReviewLambdaFunction).toMatchObject({
        Handler: `${below}/lambda/image-review/index.handler`,
        Runtime: 'nodejs24.x',
        Architectures: ['arm64'],
        Timeout: way === 'everything' ? 20 : 15,
        ReservedConcurrentExecutions: way === 'everything' ? 7 : 50,
        Role: { 'Fn::GetAtt': ['ImageReviewRole', 'Arn'] },
        Environment: { Variables: { COUNTERSIGN_STAGE: 'prod' } },
      })
      expect(ofType(templates[way], 'AWS::Logs::LogGroup').ImageReviewLogGroup).toEqual({
        LogGroupName: '/aws/lambda/countersign-prod-imageReview',
        RetentionInDays: 30,
      })
    }
  })

  const log = {
    Effect: 'Allow',
    Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    Resource: { 'Fn::GetAtt': ['ImageReviewLogGroup', 'Arn'] },
  }

  test.each<[Way, object[]]>([
    [
      'everything',
      [
        log,
        { Effect: 'Allow', Action: ['kms:GetPublicKey', 'kms:Verify'], Resource: [KEYS] },
        { Effect: 'Allow', Action: 'ecr:GetAuthorizationToken', Resource: '*' },
        {
          Effect: 'Allow',
          Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
          Resource: [REPOSITORIES],
        },
        { Effect: 'Allow', Action: 'events:PutEvents', Resource: BUS },
        {
          Effect: 'Allow',
          Action: ['xray:PutTraceSegments', 'xray:PutTelemetryRecords'],
          Resource: '*',
        },
      ],
    ],
    ['secrets', [log]],
  ])('%s: it may do what it has to and nothing else, and makes no seal', (way, allowed) => {
    expect(statements(templates[way], 'ImageReviewRole')).toEqual(allowed)
    const role = templates[way].Resources.ImageReviewRole?.Properties
    expect(role?.AssumeRolePolicyDocument.Statement).toEqual([
      { Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' },
    ])
    expect(role?.ManagedPolicyArns).toBeUndefined()
  })

  test('brings the path of reviews to it', () => {
    const routes = Object.values(ofType(templates.everything, 'AWS::ApiGatewayV2::Route'))
    const own = routes.filter(({ Target }) =>
      JSON.stringify(Target).includes('HttpApiIntegrationImageReview'),
    )
    expect(own.map(({ RouteKey }) => RouteKey)).toEqual(['POST /v1/{cluster}/{token}/image-review'])
  })

  test('gives it a URL of its own instead, where that is wanted', () => {
    const urls = ofType(templates.secrets, 'AWS::Lambda::Url')
    expect(Object.keys(urls)).toContain('ImageReviewLambdaFunctionUrl')
    expect(Object.keys(templates.secrets.Outputs ?? {})).toContain('ImageReviewUrl')
    expect(Object.keys(templates.everything.Outputs ?? {})).not.toContain('ImageReviewUrl')
  })

  test('tells the topic of what goes wrong, and counts its log', () => {
    const alarms = ofType(templates.everything, 'AWS::CloudWatch::Alarm')
    const own = Object.keys(alarms).filter((name) => name.startsWith('ImageReview'))
    expect(own.sort()).toEqual(
      ['Duration', 'Errors', 'Inconclusive', 'Throttles'].map((kind) => `ImageReview${kind}Alarm`),
    )
    for (const name of own) {
      expect(alarms[name]?.AlarmActions).toEqual([
        '{{resolve:ssm:/countersign/prod/alarm-topic-arn}}',
      ])
    }
    expect(alarms.ImageReviewDurationAlarm?.Threshold).toBe('1234')
    expect(alarms.ImageReviewInconclusiveAlarm?.Dimensions).toEqual([
      { Name: 'Phase', Value: 'image-review' },
    ])
    const filters = Object.values(ofType(templates.everything, 'AWS::Logs::MetricFilter'))
    const counted = filters
      .filter(({ LogGroupName }) => LogGroupName.Ref === 'ImageReviewLogGroup')
      .map(({ MetricTransformations: [{ MetricName }] }) => MetricName)
    expect(counted).toEqual(['Inconclusive', 'RefusedCallers', 'Faults'])
  })

  test.each([
    [
      'none',
      'function',
      'imageReview: expected function, since a cluster of the config has imageReview',
    ],
    [
      'function',
      'none',
      'imageReview: expected none, since no cluster of the config has imageReview',
    ],
    ['yes', '', 'imageReview: expected none or function'],
  ])(
    'imageReview: %s is told where it does not fit the config',
    async (imageReview, wanted, says) => {
      const config = wanted === 'none' ? 'infra/countersign.yaml' : `${below}/config.yaml`
      const { code, text } = await packaged('refused', { imageReview, config })
      expect(code, text).toBe(1)
      expect(text).toContain(says)
    },
    60_000,
  )

  describe('of bundles of some clusters alone', () => {
    const some = () => ({ bundles: `${below}/some` })
    beforeAll(async () => {
      for (const name of ['mutate', 'validate']) {
        await mkdir(path.join(folder, 'some/lambda', name), { recursive: true })
        await writeFile(path.join(folder, 'some/lambda', name, 'index.mjs'), 'export {}')
      }
    })

    test('nobody asks for what another cluster of the config has', async () => {
      expect(await packaged('some-none', { imageReview: 'none', ...some() })).toMatchObject({
        code: 0,
      })
    }, 60_000)

    test.each([
      ['a function that is in none of them', 'some', ['lambda/image-review']],
      [
        'a folder without any',
        'nowhere',
        ['lambda/mutate', 'lambda/validate', 'lambda/image-review'],
      ],
    ])(
      '%s is told, with what makes it',
      async (_, bundles, missing) => {
        const parameters = { imageReview: 'function', bundles: `${below}/${bundles}` }
        const { code, text } = await packaged('refused', parameters)
        expect(code, text).toBe(1)
        for (const name of missing) {
          const there = `bundles: ${below}/${bundles}/${name} is not there: run \`countersign build --out ${below}/${bundles}\``
          expect(text).toContain(there)
        }
        expect(text.match(/is not there/g)).toHaveLength(missing.length)
      },
      60_000,
    )
  })
})
