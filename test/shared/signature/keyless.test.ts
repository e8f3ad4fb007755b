import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keylessSigner } from '#functions/local/evidence.ts'
import { pushReferrer } from '#functions/local/push.ts'
import {
  bundleReferrer,
  pushSignatureTag,
  type SignedImage,
  tagLayer,
} from '#functions/local/sign.ts'
import { localSigner } from '#functions/local/signer.ts'
import { createKeylessAttestor } from '#shared/signature/sigstore/attestor.ts'
import { SIGN_PREDICATE } from '#shared/signature/statement.ts'
import type { Attestor } from '#shared/signature/types.ts'
import { type BundleOptions, ISSUER, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'
import { attestorOf, keyPair, openStage, type Stage } from './setup.ts'

const world = new SigstoreWorld()
const ROOT = JSON.stringify(world.trustedRoot())

let stage: Stage
let attestor: Attestor
beforeAll(async () => {
  stage = await openStage()
  attestor = await attestorFor(SUBJECT)
})
afterAll(() => stage.close())

const attestorFor = (subject: string, trustedRoot = ROOT) =>
  createKeylessAttestor({
    name: 'ci',
    identities: [{ issuer: ISSUER, subject }],
    trust: { root: trustedRoot },
  })

const hexOf = ({ descriptor }: SignedImage) => descriptor.digest.replace('sha256:', '')
const statement = (image: SignedImage): BundleOptions => ({
  content: 'dsse',
  subjectDigest: { sha256: hexOf(image) },
  predicateType: SIGN_PREDICATE,
})

async function attach(image: SignedImage, options: BundleOptions): Promise<void> {
  const layout = options.content ?? 'message'
  await pushReferrer(stage.target, image.descriptor, bundleReferrer(world.bundle(options), layout))
}

describe('an attestor of identities', () => {
  test.each(['v1', 'v2'] as const)('verifies a statement in Rekor %s', async (rekor) => {
    const image = await stage.image()
    await attach(image, { ...statement(image), rekor })
    expect(await stage.verify(image, attestor)).toMatchObject({
      status: 'verified',
      signer: `${SUBJECT} (${ISSUER})`,
    })
  })

  test('verifies a signature over the manifest', async () => {
    const image = await stage.image()
    await attach(image, { artifact: image.manifest })
    expect(await stage.verify(image, attestor)).toMatchObject({ status: 'verified' })
  })

  test('finds the good bundle among those of others', async () => {
    const image = await stage.image()
    await attach(image, { ...statement(image), leaf: { names: { uri: ['https://evil.test'] } } })
    await attach(image, statement(image))
    expect(await stage.verify(image, attestor)).toMatchObject({ status: 'verified' })
  })

  test.each<{ name: string; options: (image: SignedImage) => BundleOptions; says: string }>([
    {
      name: 'another identity',
      options: (image) => ({
        ...statement(image),
        leaf: { names: { uri: ['https://evil.test'] } },
      }),
      says: 'signed by ["https://evil.test"]',
    },
    {
      name: 'a statement about another image',
      options: (image) => ({ ...statement(image), subjectDigest: { sha256: '0'.repeat(64) } }),
      says: 'statement is about sha256',
    },
    {
      name: 'an attestation that is no signature',
      options: (image) => ({
        ...statement(image),
        predicateType: 'https://slsa.dev/provenance/v1',
      }),
      says: 'not an image signature',
    },
    {
      name: 'a signature no log has seen',
      options: (image) => ({ ...statement(image), rekor: 'none' }),
      says: 'entries of 0 known transparency logs',
    },
    {
      name: 'a signature by a key',
      options: (image) => ({ ...statement(image), plainKey: true }),
      says: 'signature comes without a certificate, expected one of the signer',
    },
  ])('says no to $name', async ({ options, says }) => {
    const image = await stage.image()
    await attach(image, options(image))
    const verdict = await stage.verify(image, attestor)
    expect(verdict.status).toBe('rejected')
    expect(verdict.candidates.map(({ detail }) => detail).join()).toContain(says)
  })

  test('verifies a signature under the .sig tag, and says no to one by a key there', async () => {
    const image = await stage.image()
    const byKey = await tagLayer(image, localSigner(keyPair('P-256').privateKey))
    await pushSignatureTag(stage.target, image.descriptor.digest, [byKey])
    expect(await stage.verify(image, attestor)).toMatchObject({ status: 'rejected' })
    const layers = [byKey, await tagLayer(image, keylessSigner(world))]
    await pushSignatureTag(stage.target, image.descriptor.digest, layers)
    expect(await stage.verify(image, attestor)).toMatchObject({
      status: 'verified',
      signer: `${SUBJECT} (${ISSUER})`,
    })
  })

  test('does not count for a key, nor a key for it', async () => {
    const image = await stage.image()
    await attach(image, statement(image))
    const byKey = await attestorOf(keyPair('P-256').publicKey)
    expect((await stage.verify(image, byKey)).status).toBe('rejected')
  })

  test('cannot tell when its trusted root cannot be read any more', async () => {
    const image = await stage.image()
    await attach(image, statement(image))
    const broken = { ...(await attestorFor(SUBJECT)), trust: { root: '{}' } }
    expect(await stage.verify(image, broken)).toMatchObject({
      status: 'inconclusive',
      error: { code: 'INTERNAL' },
    })
  })

  test.each([
    { name: 'a root that is none', trustedRoot: '{}', subject: SUBJECT, code: 'CONFIG_INVALID' },
    { name: 'no subject', trustedRoot: ROOT, subject: '', code: 'POLICY_INVALID' },
  ])('is not made of $name', async ({ trustedRoot, subject, code }) => {
    await expect(attestorFor(subject, trustedRoot)).rejects.toMatchObject({ code })
  })
})
