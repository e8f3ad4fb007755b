import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AdmissionError } from '#shared/errors.ts'
import {
  checkKmsSettings,
  formatKmsReference,
  parseKmsReference,
  resolveKeyReference,
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
    expect(parseKmsReference(`awskms://${row.spelling}/alias/a`)).toEqual({
      endpoint: row.endpoint,
      keyId: 'alias/a',
    })
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
    {
      name: 'another word',
      text: 'alias/sign',
      reason: 'does not start with awskms:// or hashivault://',
    },
    {
      name: 'an empty reference',
      text: '',
      reason: 'does not start with awskms:// or hashivault://',
    },
    {
      name: 'an unknown scheme',
      text: 'awskm:///alias/sign',
      reason: 'does not start with awskms:// or hashivault://',
    },
    {
      name: 'a scheme in capitals',
      text: 'AWSKMS:///alias/sign',
      reason: 'does not start with awskms:// or hashivault://',
    },
    ...['cosign.pub', './keys/release', '../release', '/etc/keys/release.pem', '~/release'].map(
      (text) => ({
        name: `the path ${text}`,
        text,
        reason:
          'it is the path of a file, and functions read no files; put the public key into cosign.key.data as PEM',
      }),
    ),
    ...[
      'hashivault:///release',
      'hashivault://team/release',
      'hashivault://vault.test:8200/release',
    ]
      .concat(['hashivault://', 'hashivault://a b', 'hashivault://..', 'hashivault://a?version=1'])
      .concat(['hashivault://release.', 'hashivault://-release', 'hashivault://ключ'])
      .map((text) => ({
        name: `the Vault reference ${text}`,
        text,
        reason:
          'expected hashivault://<name of a transit key>; address and mount of Vault are in the config (kms.vault)',
      })),
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

  test.each(['hashivault', 'openbao'])('reads the name of a transit key from %s://', (scheme) => {
    for (const name of ['release', 'a', 'team.release_key-2']) {
      expect(parseKmsReference(`${scheme}://${name}`)).toEqual({ vaultKey: name })
    }
  })

  test.each([
    {
      text: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k',
      reason: 'keys in Google Cloud KMS are not supported yet',
    },
    {
      text: 'GCPKMS://projects/p',
      reason: 'keys in Google Cloud KMS are not supported yet',
    },
    {
      text: 'azurekms://vault.vault.azure.net/key',
      reason: 'keys in Azure Key Vault are not supported yet',
    },
    {
      text: 'k8s://cosign-system/cosign-key',
      reason: 'keys in Kubernetes Secrets are not read, functions have no access to the cluster',
    },
    {
      text: 'gitlab://group/project',
      reason: 'keys in variables of a GitLab project are not read',
    },
    {
      text: 'pkcs11://token?pin-value=1234',
      reason: 'no function can reach a hardware token',
    },
    {
      text: 'https://keys.test/cosign.pub?token=abc',
      reason: 'keys are not downloaded, whoever serves them could change them',
    },
    {
      text: 'http://keys.test/cosign.pub',
      reason: 'keys are not downloaded, whoever serves them could change them',
    },
    { text: 'file:///cosign.pub', reason: 'functions read no files' },
    { text: 'env://COSIGN_PUB', reason: 'functions take no keys from their environment' },
  ])('refuses $text and says what to do, without repeating what is in it', ({ text, reason }) => {
    const [scheme] = text.split('://')
    expect(() => parseKmsReference(text)).toThrow(
      expect.objectContaining({
        code: 'POLICY_UNSUPPORTED',
        message: `KMS reference ${scheme}://…: ${reason}; put the public key into cosign.key.data as PEM`,
      }),
    )
  })

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
  const aws = fc
    .tuple(key, fc.option(endpoint, { nil: undefined }))
    .map(([parts, host]) => (host === undefined ? parts : { ...parts, endpoint: host }))
  const vault = fc.stringMatching(/^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,30}[A-Za-z0-9_])?$/)
  const reference = fc.oneof(
    aws,
    vault.map((vaultKey) => ({ vaultKey })),
  )

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
      reason: 'no region: use a key ARN, set kms.region in the config, or give `verify` --region',
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

describe('a multi-region key with a preferred region', () => {
  const mrk = (region: string, partition = 'aws') =>
    `arn:${partition}:kms:${region}:111122223333:key/${MRK}`

  test.each([
    {
      name: 'is asked for in that region',
      text: `awskms:///${mrk('us-east-1')}`,
      key: { keyId: mrk('eu-central-1'), region: 'eu-central-1' },
    },
    {
      name: 'stays where it is when that is the region',
      text: `awskms:///${mrk('eu-central-1')}`,
      key: { keyId: mrk('eu-central-1'), region: 'eu-central-1' },
    },
    {
      name: 'stays in its partition',
      text: `awskms:///${mrk('cn-north-1', 'aws-cn')}`,
      key: { keyId: mrk('cn-north-1', 'aws-cn'), region: 'cn-north-1' },
    },
    {
      name: 'is asked for at the endpoint that the reference names',
      text: `awskms://kms.test/${mrk('us-east-1')}`,
      key: { keyId: mrk('us-east-1'), region: 'us-east-1', endpoint: 'https://kms.test' },
    },
    {
      name: 'named by its id alone is asked for in the region of ids',
      text: `awskms:///${MRK}`,
      key: { keyId: MRK, region: 'ap-south-1' },
    },
    {
      name: 'is not what a single-region ARN means',
      text: `awskms:///${KEY_ARN}`,
      key: { keyId: KEY_ARN, region: 'eu-west-1' },
    },
    {
      name: 'is not what the ARN of an alias means, even with such a name',
      text: `awskms:///arn:aws:kms:us-east-1:111122223333:alias/key/${MRK}`,
      key: {
        keyId: `arn:aws:kms:us-east-1:111122223333:alias/key/${MRK}`,
        region: 'us-east-1',
      },
    },
  ])('$name', ({ text, key }) => {
    const settings = {
      region: 'ap-south-1',
      preferRegion: 'eu-central-1',
      endpoints: ['https://kms.test'],
    }
    expect(resolveKmsKey(text, settings)).toEqual(key)
  })

  test('stays where its ARN says when the operator prefers none', () => {
    const arn = mrk('us-east-1')
    const settings = { region: 'eu-central-1' }
    expect(resolveKmsKey(`awskms:///${arn}`, settings)).toEqual({ keyId: arn, region: 'us-east-1' })
  })
})

describe('resolveKeyReference', () => {
  const address = 'https://vault.test:8200'

  test.each([
    {
      name: 'the default mount',
      vault: { address },
      key: { name: 'release', address, mount: 'transit' },
    },
    {
      name: 'a mount and a namespace',
      vault: { address: `${address}/`, mount: 'team-a/transit', namespace: 'admin/eu' },
      key: { name: 'release', address, mount: 'team-a/transit', namespace: 'admin/eu' },
    },
  ])('takes where Vault is from the operator: $name', ({ vault, key }) => {
    expect(resolveKeyReference('hashivault://release', { vault })).toEqual(key)
    expect(resolveKeyReference('openbao://release', { vault })).toEqual(key)
  })

  test('refuses a key in Vault where none is configured', () => {
    expect(() => resolveKeyReference('hashivault://release', { region: 'eu-west-1' })).toThrow(
      expect.objectContaining({
        code: 'KMS_REFERENCE_INVALID',
        message:
          'KMS reference "hashivault://release": no Vault is configured: set kms.vault.address and kms.vault.tokenEnv (for verify, --vault-address)',
      }),
    )
  })

  test('gives no key in Vault for what needs AWS KMS', () => {
    expect(() => resolveKmsKey('hashivault://release', { vault: { address } })).toThrow(
      expect.objectContaining({
        code: 'KMS_REFERENCE_INVALID',
        message: 'KMS reference "hashivault://release": expected a key in AWS KMS',
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
    { name: 'a region', settings: { region: 'eu-central-1', preferRegion: 'us-east-1' } },
    {
      name: 'a Vault on the loopback interface',
      settings: { vault: { address: 'http://127.0.0.1:8200', mount: 'a/b.c', namespace: 'a' } },
    },
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
    { name: 'a preferred region that is a path', settings: { preferRegion: 'eu/west-1' } },
    { name: 'a Vault without TLS', settings: { vault: { address: 'http://vault.test:8200' } } },
    { name: 'a Vault below a path', settings: { vault: { address: 'https://vault.test/v1' } } },
    ...['/transit', 'transit/', 'a//b', '..', 'a/../b', 'a/./b', 'a b', '%2e', ''].map((mount) => ({
      name: `the mount "${mount}"`,
      settings: { vault: { address: 'https://vault.test', mount } },
    })),
    {
      name: 'a namespace with a line break',
      settings: { vault: { address: 'https://vault.test', namespace: 'a\r\nx-b: c' } },
    },
  ])('refuses $name', ({ settings }) => {
    expect(() => checkKmsSettings(settings)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID' }),
    )
  })
})
