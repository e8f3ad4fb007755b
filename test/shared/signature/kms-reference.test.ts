import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import {
  checkKmsSettings,
  formatKmsReference,
  parseKmsReference,
  resolveKmsKey,
} from '#shared/signature/kms-reference.ts'

const UUID = '1234abcd-12ab-34cd-56ef-1234567890ab'
const MRK = `mrk-${'0123456789abcdef'.repeat(2)}`
const KEY_ARN = `arn:aws:kms:eu-west-1:111122223333:key/${UUID}`
const ALIAS_ARN = 'arn:aws:kms:eu-west-1:111122223333:alias/team/sign_1-a'

describe('parseKmsReference', () => {
  test.each([
    { form: 'a key id', keyId: UUID, region: undefined },
    { form: 'a multi-region key id', keyId: MRK, region: undefined },
    { form: 'an alias', keyId: 'alias/team/sign_1-a', region: undefined },
    { form: 'a key ARN', keyId: KEY_ARN, region: 'eu-west-1' },
    { form: 'an alias ARN', keyId: ALIAS_ARN, region: 'eu-west-1' },
    {
      form: 'an ARN in China',
      keyId: `arn:aws-cn:kms:cn-north-1:111122223333:key/${UUID}`,
      region: 'cn-north-1',
    },
    {
      form: 'an ARN in GovCloud',
      keyId: `arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/${MRK}`,
      region: 'us-gov-west-1',
    },
    {
      form: 'an ARN in an isolated partition',
      keyId: `arn:aws-iso-b:kms:us-isob-east-1:111122223333:alias/a`,
      region: 'us-isob-east-1',
    },
  ])('reads $form, with and without an endpoint', ({ keyId, region }) => {
    const known = region === undefined ? {} : { region }
    expect(parseKmsReference(`awskms:///${keyId}`)).toEqual({ keyId, ...known })
    expect(parseKmsReference(`awskms://KMS.test:4566/${keyId}`)).toEqual({
      endpoint: 'kms.test:4566',
      keyId,
      ...known,
    })
  })

  test.each([
    { spelling: 'kms.test:443', endpoint: 'kms.test' },
    { spelling: '127.0.0.1:4566', endpoint: '127.0.0.1:4566' },
    { spelling: '0x7f.1:4566', endpoint: '127.0.0.1:4566' },
    { spelling: '[::1]:4566', endpoint: '[::1]:4566' },
  ])('normalises the endpoint $spelling, so that a list of hosts can be trusted', (row) => {
    expect(parseKmsReference(`awskms://${row.spelling}/alias/a`).endpoint).toBe(row.endpoint)
  })

  test.each([
    {
      name: 'two slashes before an alias',
      text: 'awskms://alias/sign',
      reason: 'write awskms:/// with three slashes',
    },
    {
      name: 'two slashes before an ARN',
      text: `awskms://${KEY_ARN}`,
      reason: 'write awskms:/// with three slashes',
    },
    {
      name: 'no slash',
      text: 'awskms://kms.test',
      reason: 'no / after the endpoint; without one write awskms:///',
    },
    { name: 'another word', text: 'alias/sign', reason: 'does not start with awskms://' },
    { name: 'an empty reference', text: '', reason: 'does not start with awskms://' },
    {
      name: 'no key',
      text: 'awskms:///',
      reason: '"" is not a key id, mrk- id, alias/name, key ARN or alias ARN',
    },
    {
      name: 'a bare name',
      text: 'awskms:///sign',
      reason: '"sign" is not a key id, mrk- id, alias/name, key ARN or alias ARN',
    },
    {
      name: 'a space after the key',
      text: `awskms:///${UUID} `,
      reason: `"${UUID} " is not a key id, mrk- id, alias/name, key ARN or alias ARN`,
    },
    {
      name: 'an ARN of another service',
      text: 'awskms:///arn:aws:s3:eu-west-1:111122223333:alias/a',
      reason:
        '"arn:aws:s3:eu-west-1:111122223333:alias/a" is not a key id, mrk- id, alias/name, key ARN or alias ARN',
    },
    {
      name: 'an ARN with a host for a region',
      text: 'awskms:///arn:aws:kms:evil.test/:111122223333:alias/a',
      reason:
        '"arn:aws:kms:evil.test/:111122223333:alias/a" is not a key id, mrk- id, alias/name, key ARN or alias ARN',
    },
    {
      name: 'an endpoint with a user',
      text: `awskms://a@kms.test/${UUID}`,
      reason: 'endpoint "a@kms.test" is not host[:port]',
    },
    {
      name: 'an endpoint with a query',
      text: `awskms://kms.test?x/${UUID}`,
      reason: 'endpoint "kms.test?x" is not host[:port]',
    },
    {
      name: 'an impossible port',
      text: `awskms://kms.test:99999/${UUID}`,
      reason: 'endpoint "kms.test:99999" is not host[:port]',
    },
  ])('refuses $name', ({ text, reason }) => {
    expect(() => parseKmsReference(text)).toThrow(
      expect.objectContaining({
        code: 'KMS_REFERENCE_INVALID',
        message: `KMS reference ${JSON.stringify(text)}: ${reason}`,
      }),
    )
  })

  test.each(['gcpkms', 'azurekms', 'hashivault', 'openbao', 'k8s', 'https', 'GCPKMS'])(
    'says that %s keys are not supported',
    (scheme) => {
      expect(() => parseKmsReference(`${scheme}://some/key`)).toThrow(
        expect.objectContaining({
          code: 'POLICY_UNSUPPORTED',
          message: `KMS reference: ${scheme}:// keys are not supported, only awskms://`,
        }),
      )
    },
  )

  const hex = (length: number) =>
    fc.string({
      unit: fc.constantFrom(...'0123456789abcdef'),
      minLength: length,
      maxLength: length,
    })
  const name = fc.string({ unit: fc.constantFrom(...'abcXYZ019/_-'), minLength: 1, maxLength: 40 })
  const uuid = fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => parts.join('-'))
  const id = fc.oneof(
    uuid,
    hex(32).map((text) => `mrk-${text}`),
  )
  const alias = name.map((text) => `alias/${text}`)
  const region = fc.constantFrom('eu-west-1', 'us-gov-east-1', 'cn-northwest-1', 'ap-southeast-12')
  const partition = fc.constantFrom('aws', 'aws-cn', 'aws-us-gov', 'aws-iso')
  const arn = fc
    .tuple(
      partition,
      region,
      fc.oneof(
        id.map((text) => `key/${text}`),
        alias,
      ),
    )
    .map(([p, r, resource]) => ({ keyId: `arn:${p}:kms:${r}:111122223333:${resource}`, region: r }))
  const key = fc.oneof(
    fc.oneof(id, alias).map((keyId) => ({ keyId })),
    arn,
  )
  const endpoint = fc.constantFrom('kms.test', 'kms.test:4566', '127.0.0.1:8080', '[::1]:4566')
  const reference = fc
    .tuple(key, fc.option(endpoint, { nil: undefined }))
    .map(([parts, host]) => (host === undefined ? parts : { ...parts, endpoint: host }))

  test('reads back whatever was formatted', () => {
    fc.assert(
      fc.property(reference, (parts) => {
        expect(parseKmsReference(formatKmsReference(parts))).toEqual(parts)
      }),
    )
  })

  test('fails with AdmissionError only, and gives only what formats to the same key', () => {
    const near = fc
      .tuple(reference, fc.nat(), fc.string({ maxLength: 3 }))
      .map(([parts, at, text]) => {
        const whole = formatKmsReference(parts)
        const cut = at % (whole.length + 1)
        return whole.slice(0, cut) + text + whole.slice(cut)
      })
    fc.assert(
      fc.property(fc.oneof(fc.string(), near), (text) => {
        try {
          const parts = parseKmsReference(text)
          expect(parseKmsReference(formatKmsReference(parts))).toEqual(parts)
        } catch (error) {
          expect(error).toBeInstanceOf(AdmissionError)
        }
      }),
    )
  })
})

describe('resolveKmsKey', () => {
  test('takes the region of an ARN over the configured one', () => {
    expect(resolveKmsKey(`awskms:///${KEY_ARN}`, { region: 'us-east-1' })).toEqual({
      keyId: KEY_ARN,
      region: 'eu-west-1',
    })
  })

  test('takes the configured region for everything else', () => {
    expect(resolveKmsKey('awskms:///alias/a', { region: 'us-east-1' })).toEqual({
      keyId: 'alias/a',
      region: 'us-east-1',
    })
  })

  test.each([
    { text: 'awskms://127.0.0.1:4566/alias/a', endpoint: 'http://127.0.0.1:4566' },
    { text: 'awskms://0x7f.1:4566/alias/a', endpoint: 'http://127.0.0.1:4566' },
    { text: 'awskms://KMS.test/alias/a', endpoint: 'https://kms.test' },
    { text: 'awskms://kms.test:443/alias/a', endpoint: 'https://kms.test' },
  ])('sends $text to the listed endpoint $endpoint', ({ text, endpoint }) => {
    const settings = {
      region: 'eu-west-1',
      endpoints: ['http://127.0.0.1:4566', 'https://kms.test'],
    }
    expect(resolveKmsKey(text, settings)).toEqual({
      keyId: 'alias/a',
      region: 'eu-west-1',
      endpoint,
    })
  })

  test.each([
    {
      name: 'no region anywhere',
      text: 'awskms:///alias/a',
      settings: {},
      reason: 'no region: use a key ARN, or set the KMS region in the config',
    },
    {
      name: 'an endpoint when none is listed',
      text: `awskms://evil.test/${KEY_ARN}`,
      settings: {},
      reason: "endpoint evil.test is not on the operator's list of endpoints",
    },
    {
      name: 'a subdomain of a listed endpoint',
      text: `awskms://a.kms.test/${KEY_ARN}`,
      settings: { endpoints: ['https://kms.test'] },
      reason: "endpoint a.kms.test is not on the operator's list of endpoints",
    },
    {
      name: 'another port than the listed one',
      text: `awskms://kms.test:8443/${KEY_ARN}`,
      settings: { endpoints: ['https://kms.test'] },
      reason: "endpoint kms.test:8443 is not on the operator's list of endpoints",
    },
  ])('refuses $name', ({ text, settings, reason }) => {
    expect(() => resolveKmsKey(text, settings)).toThrow(
      expect.objectContaining({
        code: 'KMS_REFERENCE_INVALID',
        message: `KMS reference ${JSON.stringify(text)}: ${reason}`,
      }),
    )
  })
})

describe('checkKmsSettings', () => {
  test.each([
    { name: 'https', settings: { endpoints: ['https://kms.test:8443'] } },
    {
      name: 'http on the loopback interface',
      settings: { endpoints: ['http://localhost:4566', 'http://[::1]:1'] },
    },
    { name: 'a region', settings: { region: 'eu-central-1' } },
    { name: 'nothing', settings: {} },
  ])('accepts $name', ({ settings }) => {
    expect(() => checkKmsSettings(settings)).not.toThrow()
  })

  test.each([
    { name: 'http to another machine', settings: { endpoints: ['http://kms.test:4566'] } },
    { name: 'a path', settings: { endpoints: ['https://kms.test/kms'] } },
    { name: 'a user', settings: { endpoints: ['https://a:b@kms.test'] } },
    { name: 'a bare host', settings: { endpoints: ['kms.test'] } },
    { name: 'a region that is a host', settings: { region: 'evil.test/' } },
    { name: 'an empty region', settings: { region: '' } },
  ])('refuses $name', ({ settings }) => {
    expect(() => checkKmsSettings(settings)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    )
  })
})
