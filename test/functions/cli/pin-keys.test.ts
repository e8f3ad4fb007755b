import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pinKeys } from '#functions/cli/pin-keys.ts'
import { compose } from '#functions/compose.ts'
import type { Deployment } from '#functions/deployment.ts'
import { formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createAwsKms } from '#functions/kms.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import type { KmsPort } from '#shared/ports.ts'
import { ENV, TOKEN } from '../../contract/deploy.ts'
import { pod, review } from '../../contract/review.ts'
import { createWorld, type World } from '../../contract/world.ts'

const NOW = Date.parse('2027-01-01T00:00:00Z')
const now = () => NOW
const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'example' }

/** A KMS that answers nothing about public keys. */
function withoutKeys(kms: KmsPort): KmsPort {
  const away = () =>
    Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'KMS GetPublicKey: no answer'))
  return { ...kms, getPublicKey: away, generateMac: (...call) => kms.generateMac(...call) }
}

describe('build --pin-keys', () => {
  let emulator: KmsEmulator
  let world: World
  let kms: KmsPort
  beforeAll(async () => {
    emulator = await startKms()
    world = await createWorld(emulator)
    kms = createAwsKms({ credentials })
  }, 120_000)
  afterAll(async () => {
    await world?.close()
    await emulator?.close()
  })

  const validate = async (deployment: Deployment, image: string) => {
    const platform = { env: ENV, log: () => undefined, hash: nodeHash, kms: withoutKeys(kms) }
    const app = compose(deployment, { ...platform, maxBodyBytes: MAX_BODY_BYTES }, ALL_FLOWS)
    const answer = await app.request(`/v1/prod/${TOKEN}/ivpol/validate`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(review({ object: pod(image) })),
    })
    return ((await answer.json()) as { response: { allowed: boolean } }).response
  }

  test('verifies with keys that nobody is asked for', async () => {
    const pinned = await pinKeys(world.deployment, { kms, now })
    expect(pinned.config.kms.pinned).toEqual({
      fetchedAt: '2027-01-01T00:00:00.000Z',
      keys: [
        expect.objectContaining({
          keyId: 'alias/release',
          region: 'eu-central-1',
          endpoint: emulator.url,
          keySpec: 'ECC_NIST_P256',
          keyUsage: 'SIGN_VERIFY',
        }),
      ],
    })
    const embedded = parseDeployment(formatDeployment(pinned))
    expect(await validate(embedded, world.images.signed)).toMatchObject({ allowed: true })
    expect(await validate(embedded, world.images.unsigned)).toMatchObject({ allowed: false })
    expect(embedded.hash).not.toBe(world.deployment.hash)
  })

  test('without it the same deployment cannot tell', async () => {
    expect(await validate(world.deployment, world.images.signed)).toMatchObject({ allowed: false })
  })

  test('is refused where KMS is to be asked about every signature', async () => {
    const { config, ...rest } = world.deployment
    const remote = { ...rest, config: { ...config, kms: { ...config.kms, verifyRemotely: true } } }
    await expect(pinKeys(remote, { kms, now })).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  test.each([
    { name: 'KMS refuses', code: 'KMS_REFUSED' },
    { name: 'KMS does not answer', code: 'KMS_UNAVAILABLE' },
  ] as const)('builds nothing where $name', async ({ code }) => {
    const failing: KmsPort = {
      ...withoutKeys(kms),
      getPublicKey: () => Promise.reject(new AdmissionError(code, 'no key')),
    }
    await expect(pinKeys(world.deployment, { kms: failing, now })).rejects.toMatchObject({
      code,
      faults: [{ message: 'no key' }],
    })
  })

  test('builds nothing around a key that cannot verify', async () => {
    const sealing: KmsPort = {
      ...kms,
      getPublicKey: async (key, signal) => ({
        ...(await kms.getPublicKey(key, signal)),
        keyUsage: 'KEY_AGREEMENT',
      }),
    }
    await expect(pinKeys(world.deployment, { kms: sealing, now })).rejects.toMatchObject({
      code: 'KEY_INVALID',
    })
  })
})
