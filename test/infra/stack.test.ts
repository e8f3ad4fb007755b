import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, ofType, readTemplate, type Template } from './template.ts'
import { run, suite, withoutTools } from './tools.ts'

const CERTIFICATE = 'arn:aws:acm:eu-central-1:111122223333:certificate/a'
/** Settings of the stack: none of what is optional, and all of it. */
const SETTINGS = {
  plain: {},
  everything: {
    stage: 'staging',
    signingKey: 'true',
    policyKey: 'true',
    certificateArn: CERTIFICATE,
    alarmEmail: 'ops@example.com',
    keyReaders: '444455556666',
  },
} as const
type Setting = keyof typeof SETTINGS

/** What uses a key; an administrator of it does none of these. */
const USES =
  /^kms:(\*|.*(Encrypt|Decrypt|Sign|Verify|Mac|GetPublicKey|GenerateDataKey|CreateGrant|DeriveSharedSecret))/

describe.skipIf(withoutTools)(suite('the stack'), () => {
  let folder: string
  const templates = {} as Record<Setting, Template>
  const file = (name: Setting) => {
    const stage = name === 'plain' ? 'prod' : SETTINGS[name].stage
    return path.join(folder, name, `countersign-infra-${stage}.template.json`)
  }

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-stack-'))
    for (const [name, context] of Object.entries(SETTINGS) as [Setting, object][]) {
      const env = {
        CDK_OUTDIR: path.join(folder, name),
        CDK_CONTEXT_JSON: JSON.stringify(context),
      }
      const ended = await run(process.execPath, ['infra/stack/synth.mjs'], { env })
      expect(ended, ended.text).toMatchObject({ code: 0 })
      templates[name] = await readTemplate(file(name))
    }
  }, 300_000)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('gives templates that CloudFormation takes', async () => {
    const files = (Object.keys(SETTINGS) as Setting[]).map(file)
    const ended = await run(process.execPath, ['infra/validate.mjs', ...files])
    expect(ended, ended.text).toMatchObject({ code: 0 })
  }, 180_000)

  test.each<[Setting, Record<string, string>]>([
    ['plain', { SealingKey: 'awskms:///alias/countersign-seal-prod' }],
    [
      'everything',
      {
        SealingKey: 'awskms:///alias/countersign-seal-staging',
        SigningKey: 'awskms:///alias/countersign-release-staging',
        PolicyKey: 'awskms:///alias/countersign-policies-staging',
      },
    ],
  ])('%s: says what config and policies name its keys', (name, expected) => {
    const outputs = Object.entries((templates[name] as Json).Outputs as Record<string, Json>)
    const keys = outputs.filter(([output]) => output.endsWith('Key'))
    expect(Object.fromEntries(keys.map(([output, { Value }]) => [output, Value]))).toEqual(expected)
  })

  test('has keys that stay, which their administrators cannot use', () => {
    const specs = (name: Setting) =>
      Object.values(templates[name].Resources)
        .filter(({ Type }) => Type === 'AWS::KMS::Key')
        .map(({ DeletionPolicy, Properties: { KeySpec, KeyUsage } }) => ({
          KeySpec,
          KeyUsage,
          DeletionPolicy,
        }))
    const sealing = {
      KeySpec: 'HMAC_256',
      KeyUsage: 'GENERATE_VERIFY_MAC',
      DeletionPolicy: 'Retain',
    }
    const signing = {
      KeySpec: 'ECC_NIST_P256',
      KeyUsage: 'SIGN_VERIFY',
      DeletionPolicy: 'Retain',
    }
    expect(specs('plain')).toEqual([sealing])
    expect(specs('everything')).toEqual([sealing, signing, signing])
    for (const { KeyPolicy } of Object.values(ofType(templates.everything, 'AWS::KMS::Key'))) {
      const administration = KeyPolicy.Statement.find(({ Sid }: Json) => Sid === 'Administration')
      expect(administration.Action.filter((action: string) => USES.test(action))).toEqual([])
    }
  })

  test('lets the sealing key do one thing for one account', () => {
    const [key] = Object.values(ofType(templates.plain, 'AWS::KMS::Key'))
    expect(key?.KeyPolicy.Statement.slice(1)).toEqual([
      {
        Sid: 'Use',
        Effect: 'Allow',
        Principal: { AWS: rootOf({ Ref: 'AWS::AccountId' }) },
        Action: 'kms:GenerateMac',
        Resource: '*',
        Condition: {
          StringEquals: {
            'kms:CallerAccount': { Ref: 'AWS::AccountId' },
            'kms:MacAlgorithm': 'HMAC_SHA_256',
          },
        },
      },
    ])
  })

  test('lets other accounts read the signing key, and none of them sign', () => {
    const [, key] = Object.values(ofType(templates.everything, 'AWS::KMS::Key'))
    const others = key?.KeyPolicy.Statement.filter(({ Sid }: Json) => Sid.startsWith('Read'))
    expect(others).toHaveLength(1)
    expect(others[0].Action).toEqual(['kms:GetPublicKey', 'kms:Verify'])
    expect(JSON.stringify(others[0].Principal)).toContain('444455556666')
  })

  test('keeps bundles private, encrypted, behind TLS, with their old versions', () => {
    const [[id, bucket] = ['', {}]] = Object.entries(ofType(templates.plain, 'AWS::S3::Bucket'))
    expect(bucket).toMatchObject({
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [
          { ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } },
        ],
      },
      OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
      VersioningConfiguration: { Status: 'Enabled' },
    })
    expect(templates.plain.Resources[id]?.DeletionPolicy).toBe('Retain')
    const [policy] = Object.values(ofType(templates.plain, 'AWS::S3::BucketPolicy'))
    const statements = policy?.PolicyDocument.Statement.map(
      ({ Effect, Action, Principal, Condition }: Json) => ({
        Effect,
        Action,
        Principal,
        Condition,
      }),
    )
    const denied = { Effect: 'Deny', Action: 's3:*', Principal: { AWS: '*' } }
    expect(statements).toEqual([
      { ...denied, Condition: { Bool: { 'aws:SecureTransport': 'false' } } },
      { ...denied, Condition: { NumericLessThan: { 's3:TlsVersion': '1.2' } } },
    ])
  })

  test('writes what serverless.yml reads, under the name of the stage', () => {
    const names = (name: Setting) =>
      Object.values(ofType(templates[name], 'AWS::SSM::Parameter')).map(({ Name }) => Name)
    const always = [
      'sealing-key-arn',
      'bundle-bucket',
      'policy-bundles-arn',
      'truststore-uri',
      'alarm-topic-arn',
    ]
    const given = ['signing-key-arn', 'policy-key-arn', 'certificate-arn']
    expect(names('plain').sort()).toEqual(always.map((each) => `/countersign/prod/${each}`).sort())
    expect(names('everything').sort()).toEqual(
      [...always, ...given].map((each) => `/countersign/staging/${each}`).sort(),
    )
  })

  test('sends every alarm, and every change to a key, to its topic', () => {
    const { everything } = templates
    const [topic = ''] = Object.keys(ofType(everything, 'AWS::SNS::Topic'))
    const alarms = Object.values(ofType(everything, 'AWS::CloudWatch::Alarm'))
    expect(alarms.map(({ MetricName }) => MetricName).sort()).toEqual([
      'DaysToExpiry',
      'RefusedCallers',
      'RefusedCallers',
      'RefusedCallers',
      'SealsRefused',
    ])
    for (const { AlarmActions } of alarms) expect(AlarmActions).toEqual([{ Ref: topic }])
    const [rule] = Object.values(ofType(everything, 'AWS::Events::Rule'))
    const keys = Object.keys(ofType(everything, 'AWS::KMS::Key'))
    // Whoever moves an alias away is told of by its name alone: the key beside it is the new one.
    const aliases = ['seal', 'release', 'policies'].map((use) => {
      const alias = `countersign-${use}-staging`
      const [partition, region, account] = ['Partition', 'Region', 'AccountId'].map((name) => ({
        Ref: `AWS::${name}`,
      }))
      const parts = ['arn:', partition, ':kms:', region, ':', account, `:alias/${alias}`]
      return { 'Fn::Join': ['', parts] }
    })
    expect(rule?.EventPattern.detail.resources.ARN).toEqual([
      ...keys.map((key) => ({ 'Fn::GetAtt': [key, 'Arn'] })),
      ...aliases,
    ])
    expect(rule?.Targets.map(({ Arn }: Json) => Arn)).toEqual([{ Ref: topic }])
  })

  test('shows and alarms what the functions of its own stage count', () => {
    const shown = JSON.stringify(ofType(templates.everything, 'AWS::CloudWatch::Dashboard'))
    const searched = [...shown.matchAll(/SEARCH\('\{(.*?),cluster,phase,verdict\}/g)]
    expect(searched.length).toBeGreaterThan(8)
    for (const [, namespace = ''] of searched) {
      expect(namespace.replace(/[\\"]/g, '')).toBe('Countersign/staging')
    }
    expect(shown).not.toMatch(/Countersign(?!\/staging| staging)/)
    const namespaces = Object.values(ofType(templates.everything, 'AWS::CloudWatch::Alarm')).map(
      ({ Namespace }) => Namespace,
    )
    expect(new Set(namespaces)).toEqual(new Set(['Countersign/staging', 'AWS/CertificateManager']))
  })

  test('gives nobody everything', () => {
    for (const template of Object.values(templates)) {
      const text = JSON.stringify(template.Resources)
      expect(ofType(template, 'AWS::IAM::Role')).toEqual({})
      expect(text).not.toMatch(/"Action":"\*"|"kms:\*"|"sns:\*"/)
    }
  })
})

function rootOf(account: object) {
  return { 'Fn::Join': ['', ['arn:', { Ref: 'AWS::Partition' }, ':iam::', account, ':root']] }
}
