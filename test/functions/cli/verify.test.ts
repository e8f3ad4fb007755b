import { generateKeyPairSync } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { pushImage } from '#functions/local/image.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import { kmsSigner, localSigner, type Signer } from '#functions/local/signer.ts'
import { countersign } from './harness.ts'

const credentials = { accessKeyId: 'TEST', secretAccessKey: 'test' }

let folder: string
let registry: LocalRegistry
let kms: KmsEmulator
let release: Signer
let staging: Signer
let releasePem: string
let stagingPem: string
let kmsSigned: Signer
/** Digests by repository. */
const digests: Record<string, string> = {}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  registry = await startRegistry()
  kms = await startKms()
  await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', alias: 'alias/release' })
  const { url: endpoint, region } = kms
  kmsSigned = await kmsSigner({ keyId: 'alias/release', region, endpoint, credentials })
  ;[release, releasePem] = newSigner()
  ;[staging, stagingPem] = newSigner()
  await writeFile(path.join(folder, 'release.pub'), releasePem)
  await writeFile(path.join(folder, 'policy.yaml'), policy())
  await writeFile(path.join(folder, 'asking.json'), asking())
  await image('released', [release], 'tag')
  await image('bundled', [release], 'dsse')
  await image('staged', [staging], 'tag')
  await image('double', [staging, release], 'tag')
  await image('kms', [kmsSigned], 'tag')
  await image('bare', [], 'tag')
})

afterAll(async () => {
  await Promise.all([registry.close(), kms.close(), rm(folder, { recursive: true })])
})

afterEach(() => registry.faults.clear())

function newSigner(): [Signer, string] {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return [localSigner(privateKey), publicKey.export({ type: 'spki', format: 'pem' }).toString()]
}

async function image(repository: string, signers: readonly Signer[], layout: 'tag' | 'dsse') {
  const target = { url: registry.url, repository }
  const descriptor = await pushImage(target, { text: repository, tag: '1' })
  digests[repository] = descriptor.digest
  if (signers.length > 0)
    await signImage(target, { descriptor, reference: repository }, signers, layout)
}

/** A policy with an attestor that only a request makes one, beside one that is written out. */
function asking(): string {
  const ctlog = { insecureIgnoreTlog: true }
  return JSON.stringify({
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'ImageValidatingPolicy',
    metadata: { name: 'asking' },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      attestors: [
        { name: 'asked', cosign: { key: { expression: 'object.metadata.name' }, ctlog } },
        { name: 'release', cosign: { key: { data: releasePem }, ctlog } },
      ],
      validations: [{ expression: 'true' }],
    },
  })
}

function policy(): string {
  const attestor = (name: string, pem: string) =>
    `    - name: ${name}
      cosign:
        key:
          data: |
${pem.replace(/^/gm, '            ').trimEnd()}
        ctlog: { insecureIgnoreTlog: true }
`
  return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: signed }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }
  attestors:
${attestor('release', releasePem)}${attestor('staging', stagingPem)}
  validations:
    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.release, attestors.staging]) > 0)
`
}

/** Runs verify on an image of the test registry. `$` in an argument is the folder with key and policy. */
function verify(repository: string, ...args: string[]) {
  const resolved = args.map((arg) => arg.replace('$', folder))
  const env = { HOME: folder, AWS_ACCESS_KEY_ID: 'TEST', AWS_SECRET_ACCESS_KEY: 'test' }
  return countersign(['verify', `${registry.host}/${repository}:1`, '--plain-http', ...resolved], {
    env,
  })
}

const EITHER = 'give either --policy or a signer: --key, --certificate-identity or --certificate'
const byKey = ['--key', '$/release.pub']
const byPolicy = ['--policy', '$/policy.yaml']

describe('verify', () => {
  test.each([
    {
      name: 'a .sig signature by the key',
      repository: 'released',
      args: byKey,
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'a bundle by the key',
      repository: 'bundled',
      args: byKey,
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'a signature by another key',
      repository: 'staged',
      args: byKey,
      code: 1,
      verdict: 'rejected',
    },
    { name: 'no signature', repository: 'bare', args: byKey, code: 1, verdict: 'rejected' },
    {
      name: 'signatures of both attestors',
      repository: 'double',
      args: byPolicy,
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'a signature of one of two attestors',
      repository: 'released',
      args: byPolicy,
      code: 1,
      verdict: 'rejected',
    },
    {
      name: 'a signature of one of two with --any',
      repository: 'released',
      args: [...byPolicy, '--any'],
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'a signature of neither with --any',
      repository: 'kms',
      args: [...byPolicy, '--any'],
      code: 1,
      verdict: 'rejected',
    },
    {
      name: 'the attestor that was chosen, beside one that only a request makes one',
      repository: 'released',
      args: ['--policy', '$/asking.json', '--attestor', 'release'],
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'the attestor that was chosen',
      repository: 'staged',
      args: [...byPolicy, '--attestor', 'staging'],
      code: 0,
      verdict: 'verified',
    },
    {
      name: 'an attestor that was not chosen',
      repository: 'staged',
      args: [...byPolicy, '--attestor', 'release'],
      code: 1,
      verdict: 'rejected',
    },
  ])('$name', async ({ repository, args, code, verdict }) => {
    const ran = await verify(repository, ...args, '--output', 'json')
    expect({ code: ran.code, err: ran.err }).toEqual({ code, err: '' })
    expect(JSON.parse(ran.out)).toMatchObject({
      image: `${registry.host}/${repository}:1`,
      digest: digests[repository],
      verdict,
    })
  })

  test('says of every signature what it said', async () => {
    const { out } = await verify('double', ...byKey, '--output', 'yaml')
    const { attestors } = parse(out)
    expect(attestors).toEqual([
      {
        attestor: 'key',
        key: 'PEM',
        status: 'verified',
        detail: expect.stringMatching(/^signed by /),
        signatures: [
          {
            source: 'tag',
            location: expect.stringMatching(/^sha256:[0-9a-f]{64} layer 0$/),
            verified: false,
            detail: 'signature is not by this ECDSA P-256 key',
            checks: [
              { check: 'content', passed: true, detail: 'about this image' },
              {
                check: 'signature',
                passed: false,
                detail: 'signature is not by this ECDSA P-256 key',
              },
            ],
          },
          {
            source: 'tag',
            location: expect.stringMatching(/^sha256:[0-9a-f]{64} layer 1$/),
            verified: true,
            detail: 'signature verifies (ECDSA, sha256)',
            checks: [
              { check: 'content', passed: true, detail: 'about this image' },
              { check: 'signature', passed: true, detail: 'signature verifies (ECDSA, sha256)' },
            ],
          },
        ],
      },
    ])
  })

  test('prints the same for people', async () => {
    const { out } = await verify('double', ...byPolicy, '--attestor', 'release')
    const lines = out.split('\n')
    expect(lines.slice(0, 2)).toEqual([`${registry.host}/double:1`, digests.double])
    expect(out).toMatch(/^verified {2}signed\/release {2}PEM$/m)
    expect(out).toMatch(/^ {2}✗ tag .*\n {6}✓ content .*\n {6}✗ signature /m)
    expect(out).toMatch(/^ {2}✓ tag .*\n {6}✓ content .*\n {6}✓ signature /m)
    expect(out).toMatch(/\nverified\n$/)
  })

  test('a key in KMS', async () => {
    const { host } = new URL(kms.url)
    const key = [
      '--key',
      `awskms://${host}/alias/release`,
      '--kms-endpoint',
      kms.url,
      '--region',
      kms.region,
    ]
    expect(await verify('kms', ...key)).toMatchObject({ code: 0, err: '' })
    expect(await verify('released', ...key)).toMatchObject({ code: 1, err: '' })
  })

  test('while KMS is down nobody can tell, which is not a yes', async () => {
    const { host } = new URL(kms.url)
    kms.fail({ kind: 'down' })
    const key = [
      '--key',
      `awskms://${host}/alias/release`,
      '--kms-endpoint',
      kms.url,
      '--region',
      kms.region,
    ]
    const { code, out } = await verify('kms', ...key, '--output', 'json')
    kms.fail(undefined)
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'inconclusive',
      attestors: [{ status: 'inconclusive', detail: expect.stringMatching(/^KMS_UNAVAILABLE: /) }],
    })
  })

  test.each([
    { name: 'is down', fault: { kind: 'down' } as const, says: /connection failed \([A-Z_]+\)/ },
    {
      name: 'serves other bytes',
      fault: { kind: 'wrong-bytes' } as const,
      says: /hashes to|digest/,
    },
  ])('while the registry $name nobody can tell', async ({ fault, says }) => {
    registry.faults.add(fault)
    const ran = await countersign(
      [
        'verify',
        `${registry.host}/released@${digests.released}`,
        '--plain-http',
        '--key',
        path.join(folder, 'release.pub'),
        '--output',
        'json',
      ],
      { env: { HOME: folder } },
    )
    expect(ran.code).toBe(1)
    const findings = JSON.parse(ran.out)
    expect(findings.verdict).toBe('inconclusive')
    expect(findings.reason).toMatch(says)
  })

  test('an image that is not there', async () => {
    const { code, out } = await verify('nothing', ...byKey)
    expect(code).toBe(1)
    expect(out).toMatch(/\ninconclusive: .*nothing/)
  })

  test('a registry without TLS that is taken for one with it', async () => {
    const image = `${registry.host}/released@${digests.released}`
    const key = path.join(folder, 'release.pub')
    const { code, out } = await countersign(['verify', image, '--key', key], { env: {} })
    expect(code).toBe(1)
    expect(out).toMatch(/; a registry without TLS needs --plain-http\n$/)
  })

  test('a no says of each signature once what is wrong with it', async () => {
    const { code, out } = await verify(
      'released',
      '--policy',
      '$/policy.yaml',
      '--attestor',
      'staging',
    )
    expect(code).toBe(1)
    expect(out).toContain('  none of 1 signatures counts\n')
    expect(out.match(/signature is not by this/g)).toHaveLength(1)
  })

  test('logs in with docker’s config, and only where it says so', async () => {
    const guarded = await startRegistry({
      auth: { kind: 'basic', username: 'ada', password: 'secret-word' },
    })
    const target = {
      url: guarded.url,
      repository: 'private',
      login: { username: 'ada', password: 'secret-word' },
    }
    const descriptor = await pushImage(target, { text: 'private', tag: '1' })
    await signImage(target, { descriptor, reference: 'private' }, [release], 'tag')
    const config = path.join(folder, 'docker')
    const auth = btoa('ada:secret-word')
    await mkdir(config, { recursive: true })
    const args = [
      'verify',
      `${guarded.host}/private:1`,
      '--plain-http',
      '--key',
      path.join(folder, 'release.pub'),
    ]
    const anonymous = await countersign(args, { env: { DOCKER_CONFIG: config } })
    await writeFile(
      path.join(config, 'config.json'),
      JSON.stringify({ auths: { [guarded.host]: { auth }, 'ghcr.io': {} }, credsStore: 'desktop' }),
    )
    const known = await countersign(args, { env: { DOCKER_CONFIG: config } })
    await guarded.close()
    expect(anonymous.code).toBe(1)
    expect(known).toMatchObject({
      code: 0,
      err: `countersign verify: ${path.join(config, 'config.json')}: credential helpers are not run; only its auths are used\n`,
    })
    expect(known.out + known.err + anonymous.out + anonymous.err).not.toContain('secret-word')
  })

  test('talks HTTPS unless told otherwise', async () => {
    const { code, out } = await countersign(
      ['verify', `${registry.host}/released:1`, '--key', path.join(folder, 'release.pub')],
      { env: { HOME: folder } },
    )
    expect(code).toBe(1)
    expect(out).toMatch(/\ninconclusive: /)
  })

  test.each([
    { name: 'neither policy nor signer', args: [], says: EITHER },
    {
      name: 'both policy and key',
      args: [...byKey, ...byPolicy],
      says: EITHER,
    },
    {
      name: 'both a key and an identity',
      args: [...byKey, '--certificate-identity', 'a'],
      says: 'give only one of --key, --certificate-identity and --certificate',
    },
    {
      name: 'an identity without an issuer',
      args: ['--certificate-identity', 'a'],
      says: 'identity: an identity needs either issuer or issuerRegExp',
    },
    {
      name: 'an annotation without a signer',
      args: [...byPolicy, '--annotation', 'a=b'],
      says: '--annotation and --insecure-… say nothing without a signer',
    },
    {
      name: 'an annotation without a value',
      args: [...byKey, '--annotation', 'a'],
      says: '--annotation "a": expected key=value',
    },
    {
      name: 'a certificate that is none',
      args: ['--certificate', '$/release.pub'],
      says: /certificate\.cert: /,
    },
    {
      name: 'a trusted root that is none',
      args: [...byKey, '--trusted-root', '$/policy.yaml'],
      says: /trusted root: /,
    },
    {
      name: 'a key file that is not there',
      args: ['--key', '$/none.pub'],
      says: 'cannot read $/none.pub: no such file or folder',
    },
    {
      name: 'an attestor that is not there',
      args: [...byPolicy, '--attestor', 'qa'],
      says: '$/policy.yaml has no attestor qa, only release, staging',
    },
    {
      name: 'an attestor whose key only a request gives',
      args: ['--policy', '$/asking.json'],
      says: 'policy asking: attestor asked has its key from an expression, which only a request to a cluster can evaluate; choose another one with --attestor, or give the signer with --key, --certificate or --certificate-identity',
    },
    {
      name: 'a KMS key without a region',
      args: ['--key', 'awskms:///alias/release'],
      says: /no region/,
    },
    {
      name: 'a key service that is not supported',
      args: ['--key', 'gcpkms://a/b'],
      says: /gcpkms/,
    },
    {
      name: 'a key file that holds something else',
      args: ['--key', '$/policy.yaml'],
      says: /PEM|key/,
    },
  ])('$name is bad input', async ({ args, says }) => {
    const { code, out, err } = await verify('released', ...args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    const expected =
      typeof says === 'string' ? `countersign verify: ${says.replace('$', folder)}\n` : says
    if (typeof expected === 'string') expect(err).toBe(expected)
    else expect(err).toMatch(expected)
    expect(err.trim().split('\n')).toHaveLength(1)
  })

  test('a reference that is none is bad input', async () => {
    const { code, err } = await countersign([
      'verify',
      'UPPER CASE',
      ...byKey.map((arg) => arg.replace('$', folder)),
    ])
    expect(code).toBe(2)
    expect(err).toMatch(/^countersign verify: .*UPPER CASE/)
  })

  test('a policy with faults lists each with file, line and column', async () => {
    const broken = path.join(folder, 'broken.yaml')
    await writeFile(
      broken,
      policy().replace('validations:', 'validationz:').replace('[CREATE]', '[MAKE]'),
    )
    const { code, err } = await verify('released', '--policy', '$/broken.yaml')
    expect(code).toBe(2)
    const [head, ...faults] = err.trim().split('\n')
    expect(head).toMatch(/^countersign verify: .*broken\.yaml: \d faults$/)
    expect(faults.length).toBeGreaterThan(1)
    for (const fault of faults) expect(fault).toMatch(/broken\.yaml:\d+:\d+ {2}\S/)
  })
})
