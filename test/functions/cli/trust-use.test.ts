import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keylessSigner } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import { ISSUER, LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { startTufMirror, type TufMirror, TufRepository } from '#functions/local/tuf.ts'
import { toBase64, utf8 } from '#shared/bytes.ts'
import { countersign } from './harness.ts'

/** From the mirror to a verdict: everything that `countersign trust` writes is used by what loads policies. */
let folder: string
let registry: LocalRegistry
let mirror: TufMirror
const repository = new TufRepository()
// Signed now: `verify` has the clock of the machine, and certificates live for minutes.
const sigstore = new LocalSigstore(Math.floor(Date.now() / 1000))
const at = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  repository.publish({ 'trusted_root.json': utf8(JSON.stringify(sigstore.trustedRoot())) })
  mirror = await startTufMirror(repository)
  registry = await startRegistry()
  await signed('released', SUBJECT)
  await signed('tested', 'https://ci.example.com/shop/api/test.yml@refs/heads/main')
  await mkdir(at('policies'))
  await writeFile(at('root.json'), repository.root)
  await writeFile(at('countersign.yaml'), config())
  await writeFile(at('policies/keyless.yaml'), policy(`{ mirror: "${mirror.url}/" }`))
  const { code } = await countersign(['trust', '--config', at('countersign.yaml')])
  expect(code).toBe(0)
})

afterAll(async () => {
  await Promise.all([registry.close(), mirror.close(), rm(folder, { recursive: true })])
})

async function signed(name: string, subject: string): Promise<void> {
  const target = { url: registry.url, repository: name }
  const descriptor = await pushImage(target, { text: name, tag: '1' })
  const signer = keylessSigner(sigstore, { leaf: { names: { uri: [subject] } } })
  await signImage(target, { descriptor, reference: name }, [signer], 'dsse')
}

const config = () => `policies: policies
endpoint: https://admission.example.com
outcomes: { key: { secrets: [{ id: a, env: SEAL }] } }
clusters: [{ name: prod, tokens: [${'a'.repeat(64)}] }]
trust:
  - mirror: ${mirror.url}
    trustedRoot: trust/own.json
    root: root.json
`

const policy = (tuf: string) => `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: keyless }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods] }
  attestors:
    - name: workflow
      cosign:
        keyless: { identities: [{ issuer: "${ISSUER}", subject: "${SUBJECT}" }] }
        tuf: ${tuf}
  validations:
    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.workflow]) > 0)
`

async function verify(name: string, tuf: string, ...more: string[]) {
  await writeFile(at('policy.yaml'), policy(tuf))
  const image = `${registry.host}/${name}:1`
  const args = ['verify', image, '--plain-http', '--policy', at('policy.yaml'), ...more]
  const { code, out, err } = await countersign(args)
  return { code, out, err }
}

const configured = () => ['--config', at('countersign.yaml')]

describe('verify with the trusted root of a mirror', () => {
  test('verifies what its authorities vouch for', async () => {
    const { code, out } = await verify('released', `{ mirror: "${mirror.url}" }`, ...configured())
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringContaining(`${SUBJECT} (${ISSUER})`),
    })
  })

  test('refuses another identity', async () => {
    const { code, out } = await verify('tested', `{ mirror: "${mirror.url}" }`, ...configured())
    expect({ code, out }).toEqual({ code: 1, out: expect.stringContaining('rejected') })
  })

  test('refuses what its authorities vouch for where the policy means the public-good instance', async () => {
    const { code, out, err } = await verify('released', '{}', ...configured())
    expect({ code, out }).toEqual({ code: 1, out: expect.stringContaining('rejected') })
    expect(err).toContain('the public-good instance that came with this package')
  })

  test('accepts a policy that names the TUF root of the config', async () => {
    const root = toBase64(repository.root)
    const tuf = `{ mirror: "${mirror.url}", root: { data: "${root}" } }`
    expect(await verify('released', tuf, ...configured())).toMatchObject({ code: 0 })
  })

  test('does not load a policy that names another TUF root', async () => {
    const root = toBase64(new TufRepository().root)
    const tuf = `{ mirror: "${mirror.url}", root: { data: "${root}" } }`
    const { code, err } = await verify('released', tuf, ...configured())
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining('descends from another TUF root'),
    })
  })

  test.each([
    {
      name: 'without a config',
      args: () => [] as string[],
      tuf: () => `{ mirror: "${mirror.url}" }`,
    },
    {
      name: 'for a mirror the config does not list',
      args: configured,
      tuf: () => '{ mirror: "https://tuf.example.com" }',
    },
  ])('does not load a policy $name', async ({ args, tuf }) => {
    const { code, err } = await verify('released', tuf(), ...args())
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining('run countersign trust'),
    })
  })
})

describe('build with the trusted root of a mirror', () => {
  const build = () =>
    countersign([
      'build',
      '--config',
      at('countersign.yaml'),
      '--out',
      at('dist'),
      '--output',
      'json',
    ])

  test('puts it into the functions, and says that it ends soon', async () => {
    const { code, err } = await build()
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(
        /countersign\.yaml:7:18 {2}trust\[0\]\.trustedRoot: \S+own\.json: its last timestamp authority ends on \d{4}-\d\d-\d\d; `countersign trust --mirror /,
      ),
    })
    const bundle = await readFile(at('dist/lambda/validate/index.mjs'), 'utf8')
    expect(bundle).toContain('https://rekor.example.com')
  })

  test('refuses a config whose trusted root is gone, with what brings it back', async () => {
    await rm(at('trust/own.json'))
    const { code, err } = await build()
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(
        /^countersign build: \S+countersign\.yaml: 1 fault\n {2}\S+countersign\.yaml:7:18 {2}trust\[0\]\.trustedRoot: no file \S+own\.json; `countersign trust --mirror \S+ --root \S+root\.json --out \S+own\.json` writes it\n$/,
      ),
    })
  })
})
