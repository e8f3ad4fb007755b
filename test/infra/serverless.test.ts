import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { type Json, ofType, readTemplate, statements, type Template } from './template.ts'
import { osls, ROOT, run, suite, tool, withoutTools } from './tools.ts'

/** Parameters that each way to deploy is packaged with. */
const WAYS = {
  plain: {},
  everything: {
    mtlsDomain: 'mtls.example.com',
    truststoreVersion: 'v1',
    mtlsCertificateArn: 'arn:aws:acm:eu-central-1:111122223333:certificate/mtls',
    signingKeyArns:
      'arn:aws:kms:eu-central-1:111122223333:key/a,arn:aws:kms:eu-central-1:444455556666:key/b',
    verifyRemotely: 'true',
    registries: 'amazon',
    ecrRepositoryArns: 'arn:aws:ecr:eu-central-1:111122223333:repository/shop/*',
    eventBusArn: 'arn:aws:events:eu-central-1:111122223333:event-bus/audit',
    tracing: 'Active',
    provisioned: '2',
  },
  secrets: { frontDoor: 'function-url', sealingKey: 'none', signingKeys: 'none' },
} as const
type Way = keyof typeof WAYS

/** A config that names variables. One is there in every function on Lambda. */
const NAMING = {
  endpoint: 'https://admission.example.com',
  kms: { region: 'eu-west-1' },
  outcomes: { key: { secrets: [{ id: '1', env: 'SEAL' }] } },
  registries: {
    credentials: [
      { host: 'ghcr.io', usernameEnv: 'AWS_LAMBDA_FUNCTION_NAME', passwordEnv: 'GHCR_TOKEN' },
      { host: 'registry.example.com', usernameEnv: 'GHCR_TOKEN', passwordEnv: 'SEAL' },
    ],
  },
}

const LOG = ['logs:CreateLogStream', 'logs:PutLogEvents']
const SEALING_KEY = '{{resolve:ssm:/countersign/prod/sealing-key-arn}}'
const SEAL = {
  Effect: 'Allow',
  Action: 'kms:GenerateMac',
  Resource: SEALING_KEY,
  Condition: { StringEquals: { 'kms:MacAlgorithm': 'HMAC_SHA_256' } },
}
const READ_KEY = {
  Effect: 'Allow',
  Action: ['kms:GetPublicKey'],
  Resource: ['{{resolve:ssm:/countersign/prod/signing-key-arn}}'],
}

function logOf(name: string) {
  return { Effect: 'Allow', Action: LOG, Resource: { 'Fn::GetAtt': [`${name}LogGroup`, 'Arn'] } }
}

describe.skipIf(withoutTools)(suite('serverless.yml'), () => {
  let folder: string
  const templates = {} as Record<Way, Template>
  const file = (way: Way, name = 'cloudformation-template-update-stack.json') =>
    path.join(folder, way, name)

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-serverless-'))
    for (const [way, parameters] of Object.entries(WAYS) as [Way, Record<string, string>][]) {
      const ended = await osls(path.join(folder, way), parameters)
      expect(ended, ended.text).toMatchObject({ code: 0 })
      templates[way] = await readTemplate(file(way))
    }
  }, 300_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test.each<{ name: string; parameters: Record<string, string>; faults: string[] }>([
    {
      name: 'slips in parameters',
      parameters: {
        sealingKey: 'KMS',
        verifyRemotely: 'yes',
        mutateConcurrency: '0',
        provisioned: '51',
        registries: 'amazon',
        signingKeyArns: 'arn:aws:kms:eu-central-1:111122223333:alias/release',
        mtlsDomain: 'admission.example.com',
      },
      faults: [
        'sealingKey: expected kms or none',
        'verifyRemotely: expected true or false',
        'mutateConcurrency: expected a number from 1 on',
        'provisioned: expected no more than mutateConcurrency, which it counts against',
        'provisioned: expected no more than validateConcurrency, which it counts against',
        'signingKeyArns: expected ARNs of kms, with commas between',
        'ecrRepositoryArns: expected the repositories that registries: amazon reads',
        'mtlsDomain: expected another domain than that of the endpoint, which asks for none',
      ],
    },
    {
      name: 'an endpoint with a path, which no route has',
      parameters: { config: 'below.yaml' },
      faults: ['endpoint of the config: expected https://host, which the API has a domain for'],
    },
    {
      name: 'a sealing key that the config does not use, and variables that it names and no function would have',
      parameters: { config: 'variables.yaml' },
      faults: [
        'sealingKey: expected none, since outcomes.key of the config is secrets',
        'SEAL: the config names it at outcomes.key.secrets[0].env, so it has to be in infra/serverless/environment.yml',
        'GHCR_TOKEN: the config names it at registries.credentials[0].passwordEnv, so it has to be in infra/serverless/environment.yml',
      ],
    },
  ])(
    'tells all faults at once: $name',
    async ({ parameters, faults }) => {
      const given = Object.entries(parameters).map(([name, value]) =>
        name === 'config' ? `--param=config=${file('plain', value)}` : `--param=${name}=${value}`,
      )
      const below = { endpoint: 'https://admission.example.com/base', kms: { region: 'eu-west-1' } }
      await writeFile(file('plain', 'below.yaml'), stringify(below))
      await writeFile(file('plain', 'variables.yaml'), stringify(NAMING))
      const to = ['--package', path.join(folder, 'refused')]
      const { code, text } = await run(tool('osls'), ['package', ...to, ...given])
      expect(code, text).toBe(1)
      const told = text.split('parameters:\n')[1]?.split('\n') ?? []
      const listed = told.filter((line) => line.startsWith('  ')).map((line) => line.trim())
      expect(listed).toEqual(faults)
    },
    60_000,
  )

  test('gives templates that CloudFormation takes, and one that it would not take is noticed', async () => {
    const bad = path.join(folder, 'bad.json')
    const role = { Type: 'AWS::IAM::Roll', Properties: {} }
    await writeFile(bad, JSON.stringify({ Resources: { MutateRole: role } }))
    const good = (Object.keys(WAYS) as Way[]).map((way) => file(way))
    const { code, text } = await run(process.execPath, ['infra/validate.mjs', ...good, bad])
    const errors = good.map((each) => text.split(`${each}: `)[1]?.split(',')[0])
    expect(errors, text).toEqual(['0 errors', '0 errors', '0 errors'])
    expect({ code, text }).toMatchObject({ code: 1, text: expect.stringContaining('FATAL F3006') })
  }, 180_000)

  test.each<{ way: Way; mutate: object[]; validate: object[] }>([
    {
      way: 'plain',
      mutate: [logOf('Mutate'), SEAL, READ_KEY],
      validate: [logOf('Validate'), SEAL, READ_KEY],
    },
    {
      way: 'everything',
      mutate: [logOf('Mutate'), SEAL, ...others()],
      validate: [logOf('Validate'), SEAL, ...others()],
    },
    { way: 'secrets', mutate: [logOf('Mutate')], validate: [logOf('Validate')] },
  ])('$way: lets each function do what it has to and nothing else', ({ way, mutate, validate }) => {
    expect(statements(templates[way], 'MutateRole')).toEqual(mutate)
    expect(statements(templates[way], 'ValidateRole')).toEqual(validate)
    const roles = ofType(templates[way], 'AWS::IAM::Role')
    for (const { AssumeRolePolicyDocument: trust, ManagedPolicyArns } of Object.values(roles)) {
      expect(trust.Statement).toEqual([
        {
          Effect: 'Allow',
          Principal: { Service: 'lambda.amazonaws.com' },
          Action: 'sts:AssumeRole',
        },
      ])
      expect(ManagedPolicyArns).toBeUndefined()
    }
    expect(Object.keys(roles)).toEqual(['MutateRole', 'ValidateRole'])
  })

  test('runs two functions with limits, each with a role and a log of its own', async () => {
    const config = parse(await readFile(`${ROOT}infra/countersign.yaml`, 'utf8'))
    const longest = (phase: string) =>
      Math.max(...config.clusters.map(({ timeouts }: Json) => timeouts[`${phase}Seconds`]))
    for (const way of Object.keys(WAYS) as Way[]) {
      const functions = ofType(templates[way], 'AWS::Lambda::Function')
      expect(Object.keys(functions)).toEqual(['MutateLambdaFunction', 'ValidateLambdaFunction'])
      for (const [name, phase] of Object.entries({ Mutate: 'mutate', Validate: 'validate' })) {
        const { Timeout, ...properties } = functions[`${name}LambdaFunction`]!
        expect(properties).toMatchObject({
          Handler: `dist/lambda/${phase}/index.handler`,
          Runtime: 'nodejs24.x',
          Architectures: ['arm64'],
          MemorySize: 1024,
          ReservedConcurrentExecutions: 50,
          Role: { 'Fn::GetAtt': [`${name}Role`, 'Arn'] },
          TracingConfig: { Mode: way === 'everything' ? 'Active' : 'PassThrough' },
          // Two stages in one account are told apart by it, and by nothing else.
          Environment: { Variables: { COUNTERSIGN_STAGE: 'prod' } },
        })
        expect(Timeout).toBeGreaterThan(longest(phase))
        expect(Timeout).toBeLessThan(30)
        expect(ofType(templates[way], 'AWS::Logs::LogGroup')[`${name}LogGroup`]).toEqual({
          LogGroupName: `/aws/lambda/countersign-prod-${phase}`,
          RetentionInDays: 30,
        })
      }
    }
  })

  test('keeps instances warm only where it is told to', () => {
    expect(ofType(templates.plain, 'AWS::Lambda::Alias')).toEqual({})
    const aliases = Object.values(ofType(templates.everything, 'AWS::Lambda::Alias'))
    expect(aliases.map((alias) => alias.ProvisionedConcurrencyConfig)).toEqual([
      { ProvisionedConcurrentExecutions: 2 },
      { ProvisionedConcurrentExecutions: 2 },
    ])
  })

  test('has no way into the API but its domains, and no log with the tokens of paths', () => {
    for (const template of [templates.plain, templates.everything]) {
      expect(template.Resources.HttpApi?.Properties.DisableExecuteApiEndpoint).toBe(true)
      const stage = template.Resources.HttpApiStage?.Properties
      expect(stage).not.toHaveProperty('AccessLogSettings')
      expect(stage?.DefaultRouteSettings).toEqual({
        DetailedMetricsEnabled: true,
        ThrottlingBurstLimit: 400,
        ThrottlingRateLimit: 200,
      })
    }
  })

  test('asks for client certificates on a domain of its own', () => {
    const domains = (way: Way) => ofType(templates[way], 'AWS::ApiGatewayV2::DomainName')
    const token = {
      DomainName: 'admission.example.com',
      DomainNameConfigurations: [
        {
          CertificateArn: '{{resolve:ssm:/countersign/prod/certificate-arn}}',
          EndpointType: 'REGIONAL',
          SecurityPolicy: 'TLS_1_2',
        },
      ],
    }
    expect(domains('plain')).toEqual({ TokenDomain: token })
    expect(domains('everything')).toEqual({
      TokenDomain: token,
      MtlsDomain: {
        DomainName: 'mtls.example.com',
        DomainNameConfigurations: [
          {
            CertificateArn: WAYS.everything.mtlsCertificateArn,
            EndpointType: 'REGIONAL',
            SecurityPolicy: 'TLS_1_2',
          },
        ],
        MutualTlsAuthentication: {
          TruststoreUri: '{{resolve:ssm:/countersign/prod/truststore-uri}}',
          TruststoreVersion: 'v1',
        },
      },
    })
  })

  test('brings each path to the function of its phase', () => {
    const routes = Object.values(ofType(templates.plain, 'AWS::ApiGatewayV2::Route'))
    const targets = routes.map(({ RouteKey, Target }) => [
      RouteKey,
      Target['Fn::Join'][1][1].Ref.replace('HttpApiIntegration', ''),
    ])
    const under = (phase: string, name: string) =>
      ['ivpol', 'nivpol'].flatMap((scope) =>
        ['', '/{proxy+}'].map((rest) => [
          `POST /v1/{cluster}/{token}/${scope}/${phase}${rest}`,
          name,
        ]),
      )
    expect(targets).toEqual([
      ...under('mutate', 'Mutate'),
      ...under('validate', 'Validate'),
      ['GET /livez', 'Validate'],
      ['GET /readyz', 'Validate'],
    ])
    for (const { PayloadFormatVersion } of Object.values(
      ofType(templates.plain, 'AWS::ApiGatewayV2::Integration'),
    )) {
      expect(PayloadFormatVersion).toBe('2.0')
    }
  })

  test('has two URLs instead, where that is wanted', () => {
    const urls = ofType(templates.secrets, 'AWS::Lambda::Url')
    expect(Object.values(urls).map(({ AuthType }) => AuthType)).toEqual(['NONE', 'NONE'])
    expect(ofType(templates.secrets, 'AWS::ApiGatewayV2::Api')).toEqual({})
    expect(ofType(templates.plain, 'AWS::Lambda::Url')).toEqual({})
    const open = Object.values(ofType(templates.plain, 'AWS::Lambda::Permission'))
    expect(open.map(({ Principal }) => Principal)).toEqual(
      Array(2).fill('apigateway.amazonaws.com'),
    )
  })

  test.each([
    { frontDoor: 'function-url', code: 0, says: /Service packaged/ },
    {
      frontDoor: 'http-api',
      code: 1,
      says: /function-urls\.yaml: endpoint has a URL for each function, and --param=frontDoor=http-api has one domain for all of them: give endpoint one URL, or deploy with --param=frontDoor=function-url/,
    },
  ])(
    'an endpoint with a URL for each function belongs to Function URLs: $frontDoor',
    async ({ frontDoor, code, says }) => {
      const ended = await osls(path.join(folder, `each-${frontDoor}`), {
        config: 'test/infra/function-urls.yaml',
        frontDoor,
      })
      expect(ended).toMatchObject({ code, text: expect.stringMatching(says) })
      expect(ended.text).not.toContain('    at ')
    },
    60_000,
  )

  test('tells the topic of what goes wrong', () => {
    const alarms = ofType(templates.plain, 'AWS::CloudWatch::Alarm')
    const kinds = ['Errors', 'Throttles', 'Duration', 'Inconclusive']
    const names = ['Mutate', 'Validate'].flatMap((name) =>
      kinds.map((kind) => `${name}${kind}Alarm`),
    )
    const api = ['ApiFaultsAlarm', 'ApiBusyAlarm']
    expect(Object.keys(alarms).sort()).toEqual([...names, ...api, 'FaultsAlarm'].sort())
    // Four fifths of 200 calls per second, for a minute: what is above 200 reaches no function.
    expect(alarms.ApiBusyAlarm).toMatchObject({ MetricName: 'Count', Period: 60, Threshold: 9600 })
    for (const { AlarmActions } of Object.values(alarms)) {
      expect(AlarmActions).toEqual(['{{resolve:ssm:/countersign/prod/alarm-topic-arn}}'])
    }
  })

  test('packages the bundle and nothing beside it', async () => {
    for (const phase of ['mutate', 'validate']) {
      const names = zipNames(await readFile(path.join(folder, 'plain', `${phase}.zip`)))
      expect(names).toContain(`dist/lambda/${phase}/index.mjs`)
      expect(names.filter((name) => !name.startsWith(`dist/lambda/${phase}/`))).toEqual([])
    }
  })
})

/** What verifying, the registry, the bus and X-Ray need. */
function others(): object[] {
  return [
    {
      Effect: 'Allow',
      Action: ['kms:GetPublicKey', 'kms:Verify'],
      Resource: WAYS.everything.signingKeyArns.split(','),
    },
    { Effect: 'Allow', Action: 'ecr:GetAuthorizationToken', Resource: '*' },
    {
      Effect: 'Allow',
      Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
      Resource: [WAYS.everything.ecrRepositoryArns],
    },
    { Effect: 'Allow', Action: 'events:PutEvents', Resource: WAYS.everything.eventBusArn },
    {
      Effect: 'Allow',
      Action: ['xray:PutTraceSegments', 'xray:PutTelemetryRecords'],
      Resource: '*',
    },
  ]
}

/** The names in the central directory of a zip file. */
function zipNames(zip: Buffer): string[] {
  const names: string[] = []
  const header = Buffer.from([0x50, 0x4b, 1, 2])
  for (let at = zip.indexOf(header); at >= 0; at = zip.indexOf(header, at + 46)) {
    names.push(zip.toString('utf8', at + 46, at + 46 + zip.readUInt16LE(at + 28)))
  }
  return names
}
