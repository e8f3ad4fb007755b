import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BundleName, bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/deployment.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { type Received, startSink } from '../functions/sinks/sink-server.ts'
import { startLambda } from '../lambda.ts'
import { startWorker } from '../workerd.ts'
import { hashOf, pod, review } from './review.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const ENV = { SEAL: Buffer.alloc(32, 7).toString('base64'), SINK_KEY: 'key-of-the-sink' }
const POLICY = `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: { name: no-latest }
spec:
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }]
  validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false }
  attestors:
    - name: release
      cosign:
        key: { kms: "awskms:///arn:aws:kms:eu-central-1:111122223333:alias/release" }
        ctlog: { insecureIgnoreTlog: true }
  validations:
    - expression: images.containers.all(image, !image.endsWith(':latest'))
      message: no latest
`

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
  let outDir: string
  let sink: Awaited<ReturnType<typeof startWaitingSink>>
  let entries: Record<BundleName, string>
  beforeAll(async () => {
    sink = await startWaitingSink()
    outDir = await mkdtemp(path.join(tmpdir(), 'countersign-events-'))
    const { policies, faults } = await loadPolicies([{ name: 'p.yaml', text: POLICY }])
    expect(faults).toEqual([])
    const config = parseConfig({
      policies: 'policies',
      endpoint: 'https://admission.example.com',
      outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
      clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)] }],
      events: {
        sinks: [
          { kind: 'http', url: sink.url, headers: [{ name: 'X-Key', valueEnv: 'SINK_KEY' }] },
        ],
      },
    })
    const deployment = await createDeployment(config, policies)
    const reports = await bundleFunctions({ deployment, outDir })
    entries = Object.fromEntries(reports.map(({ name, entry }) => [name, entry])) as typeof entries
  })
  afterAll(async () => {
    await sink?.close()
    await rm(outDir, { recursive: true, force: true })
  })

  test.each<[string, () => Promise<{ url: string; close(): Promise<void> }>]>([
    [
      'from Lambda',
      () => startLambda({ entry: entries['lambda/validate'], frontDoor: 'function-url', env: ENV }),
    ],
    ['from a Worker', () => startWorker(entries.worker, ENV)],
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
