import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  ARTIFACT,
  type BundleOptions,
  ISSUER,
  pairOf,
  SigstoreWorld,
  SUBJECT,
} from '#test/fakes/sigstore.ts'
import { countersign } from './harness.ts'

const world = new SigstoreWorld()
const key = pairOf('P-256')
const rsa = pairOf('RSA')
const ed25519 = pairOf('Ed25519')
const pemOf = (pair: typeof key) => pair.publicKey.export({ type: 'spki', format: 'pem' })
const DIGEST = `sha256:${createHash('sha256').update(ARTIFACT).digest('hex')}`
const OTHER = `sha256:${'0'.repeat(64)}`
const BUNDLES: Record<string, BundleOptions> = {
  message: {},
  dsse: { content: 'dsse' },
  key: { plainKey: true, signer: key },
  rsa: { signer: rsa },
  ed25519: { signer: ed25519 },
}

let folder: string
const at = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await writeFile(at('artifact'), ARTIFACT)
  await writeFile(at('other'), 'other')
  await writeFile(at('root.json'), JSON.stringify(world.trustedRoot()))
  await writeFile(at('broken.json'), '{}')
  await writeFile(at('key.pub'), pemOf(key))
  await writeFile(at('rsa.pub'), pemOf(rsa))
  for (const [name, options] of Object.entries(BUNDLES)) {
    await writeFile(at(`${name}.json`), JSON.stringify(world.bundle(options)))
  }
})

afterAll(() => rm(folder, { recursive: true }))

const IDENTITY = ['--certificate-identity', SUBJECT, '--certificate-oidc-issuer', ISSUER]

/** Files are named by their place in the folder. */
function run(bundle: string, signer: string[], artifact: string, root = ['root.json']) {
  const trusted = root.flatMap((name) => ['--trusted-root', at(name)])
  const about = artifact.startsWith('sha256:') ? artifact : at(artifact)
  return countersign(['verify-bundle', '--bundle', at(bundle), ...signer, ...trusted, about])
}

describe('verify-bundle exits with 0', () => {
  test.each([
    { name: 'for a file', bundle: 'message.json', artifact: 'artifact' },
    { name: 'for a digest', bundle: 'message.json', artifact: DIGEST },
    { name: 'for a digest signed with RSA', bundle: 'rsa.json', artifact: DIGEST },
    { name: 'for a statement about a file', bundle: 'dsse.json', artifact: 'artifact' },
    { name: 'for a statement about a digest', bundle: 'dsse.json', artifact: DIGEST },
    { name: 'for a file signed with Ed25519', bundle: 'ed25519.json', artifact: 'artifact' },
  ])('$name', async ({ bundle, artifact }) => {
    expect(await run(bundle, IDENTITY, artifact)).toEqual({
      code: 0,
      out: `verified: ${SUBJECT} (${ISSUER})\n`,
      err: '',
    })
  })

  test.each(['artifact', DIGEST])('for a key and %s', async (artifact) => {
    const { code, out } = await run('key.json', ['--key', at('key.pub')], artifact)
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/^verified: ECDSA P-256 key /),
    })
  })

  test('with the trusted root from the environment', async () => {
    const { code } = await countersign(
      ['verify-bundle', '--bundle', at('message.json'), ...IDENTITY, at('artifact')],
      { env: { COUNTERSIGN_TRUSTED_ROOT: at('root.json') } },
    )
    expect(code).toBe(0)
  })
})

describe('verify-bundle exits with 1 and says why', () => {
  test.each([
    {
      name: 'for another file',
      args: ['message.json', IDENTITY, 'other'] as const,
      says: 'rejected: bundle is about another artifact',
    },
    {
      name: 'for another digest',
      args: ['message.json', IDENTITY, OTHER] as const,
      says: 'rejected: bundle is about another artifact',
    },
    {
      name: 'for a statement about another digest',
      args: ['dsse.json', IDENTITY, OTHER] as const,
      says: 'rejected: statement is about another artifact',
    },
    {
      name: 'for another identity',
      args: [
        'message.json',
        [...IDENTITY.slice(2), '--certificate-identity', 'me'],
        'artifact',
      ] as const,
      says: `rejected: signed by ["${SUBJECT}"] of "${ISSUER}", expected another identity`,
    },
    {
      name: 'for what is no bundle',
      args: ['broken.json', IDENTITY, 'artifact'] as const,
      says: 'rejected: bundle has the media type nothing',
    },
    {
      name: 'when a digest is not enough',
      args: ['ed25519.json', IDENTITY, DIGEST] as const,
      says: 'could not be told: ed25519 signatures need the file itself, not its digest',
    },
  ])('$name', async ({ args, says }) => {
    const [bundle, signer, artifact] = args
    expect(await run(bundle, [...signer], artifact)).toEqual({
      code: 1,
      out: '',
      err: `countersign verify-bundle: ${says}\n`,
    })
  })

  test('for another key', async () => {
    const { code, err } = await run('key.json', ['--key', at('rsa.pub')], 'artifact')
    expect({ code, err }).toEqual({
      code: 1,
      err: 'countersign verify-bundle: rejected: signature does not verify under the key of the signer\n',
    })
  })
})

test('verify-bundle asks the public-good instance when no trusted root is named', async () => {
  const { code, err } = await run('message.json', IDENTITY, 'artifact', [])
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/^countersign verify-bundle: rejected: /),
  })
})

describe('verify-bundle exits with 2', () => {
  test('for what is no trusted root', async () => {
    const { code, err } = await run('message.json', IDENTITY, 'artifact', ['broken.json'])
    expect(code).toBe(2)
    expect(err).toContain('trusted root: no trusted root of version 0.1 or 0.2')
  })

  test.each([
    { name: 'neither key nor identity', signer: [], says: 'or --key' },
    { name: 'an identity without issuer', signer: IDENTITY.slice(0, 2), says: 'or --key' },
    { name: 'both', signer: [...IDENTITY, '--key', 'k'], says: 'give either --key or an identity' },
    {
      name: 'a key that is not there',
      signer: ['--key', '/nowhere'],
      says: 'cannot read /nowhere',
    },
  ])('for $name', async ({ signer, says }) => {
    const { code, err } = await run('message.json', signer, 'artifact')
    expect(code).toBe(2)
    expect(err).toContain(says)
  })

  test.each([
    { name: 'bundle', bundle: 'nowhere', artifact: 'artifact' },
    { name: 'file', bundle: 'message.json', artifact: 'nowhere' },
  ])('for a $name that is not there', async ({ bundle, artifact }) => {
    const { code, err } = await run(bundle, IDENTITY, artifact)
    expect(code).toBe(2)
    expect(err).toContain('cannot read')
  })
})
