import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keyAttestor, policyDocument } from '#test/shared/policy/documents.ts'
import { type Received, startSink } from '../functions/sinks/sink-server.ts'
import { startLambda } from '../lambda.ts'
import { startWorker } from '../workerd.ts'
import { deploymentOf, ENV, type Served, serve, TOKEN } from './deploy.ts'
import { pod, review } from './review.ts'

const NO_LATEST = policyDocument(
  {
    validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false },
    attestors: [
      keyAttestor('release', {
        kms: 'awskms:///arn:aws:kms:eu-central-1:111122223333:alias/release',
      }),
    ],
    validations: [
      {
        expression: "images.containers.all(image, !image.endsWith(':latest'))",
        message: 'no latest',
      },
    ],
  },
  'no-latest',
)

/** A sink that hands over each request as it comes. */
async function startWaitingSink() {
  const waiting: ((received: Received) => void)[] = []
  const sink = await startSink((response, received) => {
    response.end()
    waiting.shift()?.(received)
  })
  return { ...sink, next: () => new Promise<Received>((resolve) => waiting.push(resolve)) }
}

describe('events of a built function reach a sink', () => {
  const env = { ...ENV, SINK_KEY: 'key-of-the-sink' }
  let sink: Awaited<ReturnType<typeof startWaitingSink>>
  let served: Served
  beforeAll(async () => {
    sink = await startWaitingSink()
    const headers = [{ name: 'X-Key', valueEnv: 'SINK_KEY' }]
    const events = { sinks: [{ kind: 'http', url: sink.url, headers }] }
    served = await serve(await deploymentOf([NO_LATEST], { events }))
  })
  afterAll(async () => {
    await sink?.close()
    await served?.close()
  })

  test.each<[string, () => Promise<{ url: string; close(): Promise<void> }>]>([
    [
      'from Lambda',
      () =>
        startLambda({ entry: served.bundles['lambda/validate'], frontDoor: 'function-url', env }),
    ],
    ['from a Worker', () => startWorker(served.bundles.worker, env)],
  ])('%s, the first and the second', async (_, start) => {
    const running = await start()
    try {
      for (const [tag, status] of [
        ['latest', 'fail'],
        ['1', 'pass'],
      ]) {
        const next = sink.next()
        const response = await fetch(`${running.url}/v1/prod/${TOKEN}/ivpol/validate`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(review({ object: pod(`registry.example/web:${tag}`) })),
        })
        expect(response.status).toBe(200)
        const { body, headers } = await next
        expect(headers['x-key']).toBe('key-of-the-sink')
        expect(JSON.parse(body)).toMatchObject({ event: 'policy', policy: 'no-latest', status })
      }
    } finally {
      await running.close()
    }
  })
})
