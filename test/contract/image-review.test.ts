import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { MAX_REVIEWED_IMAGES } from '#shared/limits.ts'
import { policyDocument } from '#test/shared/policy/documents.ts'
import { deploymentOf, serve, TOKEN } from './deploy.ts'
import { type Answer, opened, type Sent, TARGETS, type Target } from './targets.ts'
import { createWorld, type World } from './world.ts'

let kms: KmsEmulator
/** By where the keys are. */
const worlds = {} as Record<'PEM' | 'KMS', World>
beforeAll(async () => {
  kms = await startKms()
  worlds.PEM = await createWorld()
  worlds.KMS = await createWorld(kms)
})
afterAll(async () => {
  for (const world of Object.values(worlds)) await world.close()
  await kms?.close()
})

const JSON_TYPE = { 'content-type': 'application/json' }
const at = (cluster = 'prod', token = TOKEN) => `/v1/${cluster}/${token}/image-review`

function reviewOf(images: readonly string[], members: object = {}): string {
  return JSON.stringify({
    kind: 'ImageReview',
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    metadata: {},
    spec: { containers: images.map((image) => ({ image })), namespace: 'shop' },
    status: { allowed: false },
    ...members,
  })
}

/** The status of an answer, which has to be one that the API server does not take for a failure. */
function statusIn({ status, text, headers }: Answer) {
  expect([status, Object.fromEntries(headers)['content-type']]).toEqual([200, 'application/json'])
  const { apiVersion, kind, status: verdict } = JSON.parse(text)
  expect([apiVersion, kind]).toEqual(['imagepolicy.k8s.io/v1alpha1', 'ImageReview'])
  return verdict
}

const NOT_SIGNED = expect.stringContaining('not signed by the release key')

describe.each(Object.entries(TARGETS))('%s', (_, open) => {
  const targets = { PEM: opened(() => open(worlds.PEM)), KMS: opened(() => open(worlds.KMS)) }
  const send = (target: Target, body: Sent['body'], rest: Partial<Sent> = {}, query = '') =>
    target.send('image-review', `${at()}${query}`, { headers: JSON_TYPE, body, ...rest })
  const ask = async (body: Sent['body'], rest?: Partial<Sent>, query?: string) =>
    statusIn(await send(targets.PEM(), body, rest, query))

  test.each(['PEM', 'KMS'] as const)('decides about images, keys in %s', async (keys) => {
    const { images } = worlds[keys]
    const review = async (...names: string[]) =>
      statusIn(await send(targets[keys](), reviewOf(names)))
    expect(await review(images.signed)).toMatchObject({ allowed: true })
    expect(await review(images.unsigned)).toMatchObject({ allowed: false, reason: NOT_SIGNED })
    expect(await review(images.signed, images.unsigned, images.signed)).toMatchObject({
      allowed: false,
      reason: NOT_SIGNED,
    })
    expect(await review(images.signed, images.signed)).toMatchObject({ allowed: true })
    expect(await review()).toMatchObject({ allowed: true })
  })

  test.each<[string, Sent['body'], Partial<Sent>?]>([
    ['no JSON', '{'],
    ['bytes that are no text', new Uint8Array([0xff])],
    ['another kind', reviewOf([], { kind: 'AdmissionReview' })],
    ['another version', reviewOf([], { apiVersion: 'imagepolicy.k8s.io/v1beta1' })],
    ['no spec', reviewOf([], { spec: null })],
    ['too many images', reviewOf(Array(MAX_REVIEWED_IMAGES + 1).fill('a'))],
    ['another type', reviewOf([]), { headers: { 'content-type': 'text/plain' } }],
    ['nothing', ''],
  ])('denies %s with HTTP 200', async (_name, body, rest) => {
    expect(await ask(body, rest)).toMatchObject({ allowed: false, reason: expect.any(String) })
  })

  test('denies a body past the limit with HTTP 200', async () => {
    const padding = 'x'.repeat(targets.PEM().maxBodyBytes)
    expect(await ask(reviewOf([], { padding }))).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('larger'),
    })
  })

  test('denies in time when a registry never answers', async () => {
    const started = performance.now()
    const { stalled } = worlds.PEM.images
    expect(await ask(reviewOf([stalled]), {}, '?timeout=1s')).toMatchObject({ allowed: false })
    expect(performance.now() - started).toBeLessThan(1000)
  })

  test.each([
    ['an unknown cluster', at('nowhere')],
    ['a wrong token', at('prod', 'wrong')],
    ['a cluster without image reviews', at('local')],
  ])('%s gets the 404 of a path that does not exist', async (_name, where) => {
    const sent = { headers: JSON_TYPE, body: reviewOf([worlds.PEM.images.signed]) }
    const nowhere = await targets.PEM().send('image-review', '/nothing/here', sent)
    expect(nowhere).toMatchObject({ status: 404, text: '' })
    expect(await targets.PEM().send('image-review', where, sent)).toEqual(nowhere)
  })
})

test('a deployment without image reviews has no function for them, and nothing of it in the Worker', async () => {
  const served = await serve(await deploymentOf([policyDocument()]))
  try {
    expect(served.bundles).not.toHaveProperty(['lambda/image-review'])
    const folder = path.dirname(path.dirname(path.dirname(served.bundles['lambda/validate'])))
    expect(existsSync(path.join(folder, 'lambda/image-review'))).toBe(false)
    expect(await textOf(served.bundles.worker)).not.toContain('imagepolicy.k8s.io/v1alpha1')
    expect(await textOf(worlds.PEM.bundles.worker)).toContain('imagepolicy.k8s.io/v1alpha1')
  } finally {
    await served.close()
  }
})

/** Everything beside the entry of a bundle, and the entry. */
async function textOf(entry: string): Promise<string> {
  const folder = path.dirname(entry)
  const names = (await readdir(folder)).filter((name) => name.endsWith('.mjs'))
  return (await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')))).join()
}
