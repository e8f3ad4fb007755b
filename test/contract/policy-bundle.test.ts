import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signerOf } from '#functions/cli/policy-bundle/sign.ts'
import { payloadOf, signedBundle } from '#functions/cli/policy-bundle/write.ts'
import type { Config } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { type ObjectStore, startObjects } from '#functions/local/objects.ts'
import {
  bundleOf,
  configWith,
  deploymentOf,
  forbids,
  newKey,
  type SigningOptions,
} from '../functions/policy-bundle/setup.ts'
import { startLambda } from '../lambda.ts'
import { startWorker } from '../workerd.ts'
import { ENV, type Served, serve, TOKEN } from './deploy.ts'
import { pod, review } from './review.ts'
import { saidIn, TARGETS, type Target } from './targets.ts'

const PLACE = '/policies/prod.json'
const KEY = newKey()
const PATH = `/v1/prod/${TOKEN}/ivpol/validate?timeout=9s`
const bodyFor = (tag: string) =>
  JSON.stringify(review({ object: pod(`registry.example/web:${tag}`) }))

/** A config that looks for bundles with nearly every review: no test waits a minute. */
function eager(config: Config): Config {
  const { policyBundle } = config
  return {
    ...config,
    ...(policyBundle && { policyBundle: { ...policyBundle, refreshSeconds: 0.01 } }),
  }
}

/** Asks until the answer is the wanted one: how many reviews a swap takes, no clock says. */
async function eventually(ask: () => Promise<string>, wanted: string): Promise<string> {
  let said = ''
  for (let tries = 0; tries < 300 && said !== wanted; tries++) said = await ask()
  return said
}

describe('policies from bundles', () => {
  let store: ObjectStore
  let config: Config
  let served: Served
  beforeAll(async () => {
    store = await startObjects()
    config = eager(configWith({ url: `${store.url}${PLACE}` }, KEY))
    served = await serve(await deploymentOf([forbids('built')], config))
  }, 60_000)
  afterAll(async () => {
    await store?.close()
    await served?.close()
  })

  const put = async (tag: string, options: SigningOptions, key = KEY) =>
    store.put(PLACE, await bundleOf(await deploymentOf([forbids(tag)], config), key, options))
  const said = async (target: Target, tag: string) =>
    saidIn((await target.send('validate', PATH, { body: bodyFor(tag) })).text)

  describe.each(Object.entries(TARGETS))('%s', (_, open) => {
    test('has them with the first review, takes the next ones over, and keeps the last good ones', async () => {
      store.faults.clear()
      await put('first', { sequence: 1, issuedAt: Date.now() })
      const target = await open(served)
      try {
        expect(await said(target, 'first')).toContain('no first')
        expect(await said(target, 'built')).toBe('admitted')
        await put('second', { sequence: 2, issuedAt: Date.now() })
        const second = 'Policy tags failed: no second'
        expect(await eventually(() => said(target, 'second'), second)).toBe(second)
        await put('evil', { sequence: 3, issuedAt: Date.now() }, newKey())
        for (let asked = 0; asked < 10; asked++) {
          expect(await said(target, 'evil')).toBe('admitted')
        }
        store.faults.add({ kind: 'status', status: 403 })
        for (let asked = 0; asked < 10; asked++) {
          expect(await said(target, 'second')).toBe(second)
        }
      } finally {
        await target.close()
      }
    }, 60_000)

    test('has those of its build where there are none', async () => {
      store.faults.clear()
      store.delete(PLACE)
      const target = await open(served)
      try {
        expect(await said(target, 'built')).toContain('no built')
        expect(await said(target, 'first')).toBe('admitted')
      } finally {
        await target.close()
      }
    }, 60_000)
  })

  test('a Worker answers reviews that come at once while it looks', async () => {
    store.faults.clear()
    await put('first', { sequence: 1, issuedAt: Date.now() })
    const worker = await startWorker(served.bundles.worker, ENV)
    try {
      const ask = async () => {
        const headers = { 'content-type': 'application/json' }
        const body = bodyFor('first')
        const answer = await fetch(`${worker.url}${PATH}`, { method: 'POST', headers, body })
        return saidIn(await answer.text())
      }
      const answers = await Promise.all(Array.from({ length: 12 }, ask))
      expect(new Set(answers)).toEqual(new Set(['Policy tags failed: no first']))
    } finally {
      await worker.close()
    }
  }, 60_000)
})

describe('other places and keys', () => {
  let kms: KmsEmulator
  beforeAll(async () => {
    kms = await startKms()
    await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', alias: 'alias/policies' })
  })
  afterAll(() => kms?.close())

  const inKms = (source: object) => {
    const { host } = new URL(kms.url)
    return eager(
      configWith(
        source,
        KEY,
        { key: { kms: `awskms://${host}/alias/policies` } },
        { kms: { region: kms.region, endpoints: [kms.url] } },
      ),
    )
  }
  const signed = async (deployment: Deployment) => {
    const { config } = deployment
    const signer = await signerOf(config.policyBundle!, config, { keyFile: undefined, env: ENV })
    return signedBundle(payloadOf(deployment, { sequence: 1, issuedAt: Date.now() }), signer)
  }
  const ask = async (url: string, tag: string) => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${url}${PATH}`, { method: 'POST', headers, body: bodyFor(tag) })
    return saidIn(await answer.text())
  }

  test('Lambda reads S3 with its role, and the key in KMS', async () => {
    const reader = {
      accessKeyId: ENV.AWS_ACCESS_KEY_ID,
      secretAccessKey: ENV.AWS_SECRET_ACCESS_KEY,
      region: 'eu-central-1',
    }
    const store = await startObjects({ reader })
    const config = inKms({ s3: 's3://policies/bundles/prod(1).json', endpoint: store.url })
    const served = await serve(await deploymentOf([forbids('built')], config))
    store.put(
      '/policies/bundles/prod(1).json',
      await signed(await deploymentOf([forbids('stored')], config)),
    )
    const open = (env: Record<string, string>) =>
      startLambda({ entry: served.bundles['lambda/validate'], frontDoor: 'function-url', env })
    const [mine, foreign] = await Promise.all([
      open(ENV),
      open({ ...ENV, AWS_SECRET_ACCESS_KEY: 'another' }),
    ])
    try {
      expect(await ask(mine.url, 'stored')).toBe('Policy tags failed: no stored')
      expect(await ask(foreign.url, 'stored')).toBe('admitted')
      expect(foreign.lines.join('\n')).toContain('s3://policies/bundles/prod(1).json: answered 403')
    } finally {
      await Promise.all([mine.close(), foreign.close(), store.close(), served.close()])
    }
  }, 60_000)

  test('a Worker reads R2, with a key in KMS', async () => {
    const config = inKms({ r2: { binding: 'POLICIES', key: 'bundles/prod.json' } })
    const served = await serve(await deploymentOf([forbids('built')], config))
    const worker = await startWorker(served.bundles.worker, ENV, false, ['POLICIES'])
    try {
      expect(await ask(worker.url, 'built')).toBe('Policy tags failed: no built')
      await worker.put(
        'POLICIES',
        'bundles/prod.json',
        await signed(await deploymentOf([forbids('stored')], config)),
      )
      const wanted = 'Policy tags failed: no stored'
      expect(await eventually(() => ask(worker.url, 'stored'), wanted)).toBe(wanted)
      expect(await ask(worker.url, 'built')).toBe('admitted')
    } finally {
      await worker.close()
      await served.close()
    }
  }, 60_000)

  test('a bundle may hold what nothing of the build asked for', async () => {
    const store = await startObjects()
    const config = eager(configWith({ url: `${store.url}${PLACE}` }, KEY))
    const served = await serve(await deploymentOf([forbids('built')], config))
    const { policies } = await deploymentOf(
      [
        forbids('', {
          validations: [
            {
              expression:
                "images.containers.all(image, !image.matches('[:](stored|gone)$') && quantity('1Gi').isGreaterThan(quantity('1Mi')))",
              message: 'no stored',
            },
          ],
        }),
      ],
      config,
    )
    store.put(
      PLACE,
      await bundleOf(await createDeployment(config, policies), KEY, { issuedAt: Date.now() }),
    )
    const worker = await startWorker(served.bundles.worker, ENV)
    try {
      expect(await ask(worker.url, 'stored')).toBe('Policy tags failed: no stored')
      expect(await ask(worker.url, 'built')).toBe('admitted')
    } finally {
      await Promise.all([worker.close(), store.close(), served.close()])
    }
  }, 60_000)
})
