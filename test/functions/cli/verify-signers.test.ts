import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { certified, keylessSigner, witnessed } from '#functions/local/evidence.ts'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { type SignatureLayout, signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { ISSUER, LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { type Minted, mint, mintRoot, pemOf } from '#test/fakes/pki.ts'
import { countersign } from './harness.ts'

/** The command has no clock to set, so that everything is signed now. */
const sigstore = new LocalSigstore(Math.floor(Date.now() / 1000))
const DAY = 86_400_000
const validity = [new Date(Date.now() - DAY), new Date(Date.now() + DAY)] as const
const ca = mintRoot({ keyName: 'cli ca', validity })
const leaf = mint({ keyName: 'cli leaf', issuer: ca, validity })
const stranger = mint({
  keyName: 'cli stranger',
  issuer: mintRoot({ keyName: 'cli other ca', validity }),
  validity,
})

let folder: string
let registry: LocalRegistry
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  registry = await startRegistry()
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = localSigner(privateKey)
  const write = (name: string, text: string) => writeFile(path.join(folder, name), text)
  await write('root.json', JSON.stringify(sigstore.trustedRoot()))
  await write('key.pub', publicKey.export({ type: 'spki', format: 'pem' }).toString())
  await write('ca.pem', pemOf(ca))
  await write('leaf.pem', pemOf(leaf))
  await image('keyless', keylessSigner(sigstore), 'tag')
  await image('keyless-bundle', keylessSigner(sigstore), 'dsse', { stage: 'ci' })
  await image('plain', key, 'tag', { stage: 'ci' })
  await image('logged', witnessed(key, sigstore), 'dsse')
  await image('certified', byCertificate(leaf), 'tag')
  await image('strange', byCertificate(stranger), 'tag')
})

afterAll(() => Promise.all([registry.close(), rm(folder, { recursive: true })]))

const byCertificate = ({ keys, der }: Minted) => certified(localSigner(keys.privateKey), [der])

async function image(
  repository: string,
  signer: Signer,
  layout: SignatureLayout,
  annotations?: Record<string, string>,
): Promise<void> {
  const target = { url: registry.url, repository }
  const descriptor = await pushImage(target, { text: repository, tag: '1' })
  const signed = { descriptor, reference: repository, ...(annotations && { annotations }) }
  await signImage(target, signed, [signer], layout)
}

async function verify(repository: string, args: readonly string[]) {
  const resolved = args.map((arg) => arg.replace('$', folder))
  const reference = `${registry.host}/${repository}:1`
  return countersign(['verify', reference, '--plain-http', ...resolved, '--output', 'json'], {
    env: { HOME: folder },
  })
}

const root = ['--trusted-root', '$/root.json']
const identity = ['--certificate-identity', SUBJECT, '--certificate-oidc-issuer', ISSUER]
const byKey = ['--key', '$/key.pub']
const chain = ['--certificate-chain', '$/ca.pem']

describe('verify without a policy', () => {
  test.each<{ name: string; repository: string; args: string[]; last: string; code?: 1 }>([
    {
      name: 'an identity whose signature is under the tag',
      repository: 'keyless',
      args: [...identity, ...root],
      last: 'certificate',
    },
    {
      name: 'an identity by regular expressions',
      repository: 'keyless',
      args: [
        '--certificate-identity-regexp',
        '^https://ci\\.example\\.com/shop/',
        '--certificate-oidc-issuer-regexp',
        'issuer',
        ...root,
      ],
      last: 'certificate',
    },
    {
      name: 'another identity',
      repository: 'keyless',
      args: ['--certificate-identity', 'me', '--certificate-oidc-issuer', ISSUER, ...root],
      code: 1,
      last: 'certificate',
    },
    {
      name: 'an identity against the public-good root, which has not seen it',
      repository: 'keyless',
      args: identity,
      code: 1,
      last: 'log',
    },
    {
      name: 'what a bundle says beside the image',
      repository: 'keyless-bundle',
      args: [...identity, ...root, '--annotation', 'stage=ci'],
      last: 'annotations',
    },
    {
      name: 'what a payload says beside the image',
      repository: 'plain',
      args: [...byKey, '-a', 'stage=ci'],
      last: 'annotations',
    },
    {
      name: 'something else beside the image',
      repository: 'plain',
      args: [...byKey, '--annotations', 'stage=ci', 'stage=dev'],
      code: 1,
      last: 'annotations',
    },
    { name: 'a key alone', repository: 'plain', args: byKey, last: 'signature' },
    {
      name: 'a key that a log has to have seen',
      repository: 'logged',
      args: [...byKey, ...root],
      last: 'certificate',
    },
    {
      name: 'a key that no log has seen',
      repository: 'plain',
      args: [...byKey, ...root],
      code: 1,
      last: 'log',
    },
    {
      name: 'a key that no log needs to have seen',
      repository: 'plain',
      args: [...byKey, ...root, '--insecure-ignore-tlog'],
      last: 'signature',
    },
    { name: 'a chain', repository: 'certified', args: chain, last: 'certificate' },
    {
      name: 'a certificate and its chain',
      repository: 'certified',
      args: ['--certificate', '$/leaf.pem', ...chain],
      last: 'certificate',
    },
    {
      name: 'a certificate of another authority',
      repository: 'strange',
      args: chain,
      code: 1,
      last: 'certificate',
    },
  ])('$name', async ({ repository, args, last, code = 0 }) => {
    const ran = await verify(repository, args)
    expect(ran.code).toBe(code)
    // What came with the program may have become old.
    if (args.includes('--trusted-root')) expect(ran.err).toBe('')
    const findings = JSON.parse(ran.out)
    expect(findings.verdict).toBe(code === 0 ? 'verified' : 'rejected')
    const [{ checks }] = findings.attestors[0].signatures
    expect(checks.at(-1)).toMatchObject({ check: last, passed: code === 0 })
    expect(checks.slice(0, -1).every(({ passed }: { passed: boolean }) => passed)).toBe(true)
  })
})
