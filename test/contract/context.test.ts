import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleFunctions, noWorkerBecause } from '#functions/cli/bundle.ts'
import { trustingFetch } from '#functions/cluster/https.ts'
import { compose } from '#functions/compose.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type LocalClusterApi, startClusterApi } from '#functions/local/cluster-api.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { startLambda } from '../lambda.ts'
import { node24 } from '../node24.ts'
import { POD_RULE, policyDocument } from '../shared/policy/documents.ts'
import { deploymentOf, ENV, type Served, serve } from './deploy.ts'
import { pod, review } from './review.ts'
import { opened, saidIn, TARGETS, validate, validateUrl } from './targets.ts'

const IMAGE = `registry.example/app@sha256:${'a'.repeat(64)}`

/** A policy that passes when the expression holds, and otherwise says what `says` gives. */
function policyOf(
  name: string,
  expression: string,
  says: string,
  constraints: object = {},
): object {
  const spec = {
    matchConstraints: { resourceRules: [POD_RULE], ...constraints },
    autogen: { podControllers: { controllers: [] } },
    validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false },
    validations: [{ expression, messageExpression: says }],
  }
  return policyDocument(spec, name)
}

const POD = pod(IMAGE)
const body = JSON.stringify(review({ object: POD }))

describe('what needs no cluster', () => {
  let hosts: Server
  let served: Served
  beforeAll(async () => {
    hosts = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ asked: request.url, method: request.method }))
    })
    await new Promise<void>((resolve) => hosts.listen(0, '127.0.0.1', resolve))
    const host = `127.0.0.1:${(hosts.address() as AddressInfo).port}`
    const policies = [
      policyOf(
        'local',
        'false',
        'yaml.parse("a: [x]").a[0] + gzip.decompress(gzip.compress("y")) + string(random("[0-9]{4}").size())',
      ),
      policyOf(
        'time',
        'time.now() > timestamp("2026-01-01T00:00:00Z") && random() == random()',
        '"late"',
      ),
      policyOf(
        'http',
        'false',
        `string(http.get("http://${host}/a?b").asked) + string(http.post("http://${host}/c", {}).method)`,
      ),
      policyOf('far', 'http.get("http://127.0.0.1:1/").ok == true', '"no"'),
    ]
    const http = { allow: [], plainHttp: [host] }
    served = await serve(await deploymentOf(policies, { http }))
  })
  afterAll(async () => {
    await new Promise((resolve) => hosts.close(resolve))
    await served.close()
  })

  describe.each(Object.entries(TARGETS))('%s', (_, open) => {
    const target = opened(() => open(served))

    test.each([
      ['local', 'Policy local failed: xy4'],
      ['time', 'admitted'],
      ['http', 'Policy http failed: /a?bPOST'],
      [
        'far',
        'Policy far error: failed to evaluate policy: http.Get: "http://127.0.0.1:1" is not among the hosts of http.allow (https) and http.plainHttp',
      ],
    ])('%s', async (policy, said) => {
      expect(await validate(target(), policy, POD)).toBe(said)
    })
  })
})

describe('a cluster with an authority of its own', () => {
  let api: LocalClusterApi
  let deployment: Deployment
  let served: Served
  beforeAll(async () => {
    api = await startClusterApi([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { env: 'prod' } } },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'cm', namespace: 'shop' },
        data: { a: 'b' },
      },
    ])
    const { config, policies } = await deploymentOf(
      [
        policyOf('labels', 'false', '"matched"', {
          namespaceSelector: { matchLabels: { env: 'prod' } },
        }),
        policyOf('others', 'false', '"matched"', {
          namespaceSelector: { matchLabels: { env: 'dev' } },
        }),
        policyOf(
          'reads',
          'false',
          'namespaceObject.metadata.labels.env + resource.get("v1", "configmaps", "shop", "cm").data.a',
        ),
      ],
      {},
      { api: { server: api.url, tokenEnv: 'CLUSTER_TOKEN', caFile: 'ca.pem' } },
    )
    const [cluster] = config.clusters
    const withCa = { ...cluster!, api: { ...cluster!.api!, ca: api.ca } }
    deployment = await createDeployment({ ...config, clusters: [withCa] }, policies)
    served = await serve(deployment)
  })
  afterAll(async () => {
    await api.close()
    await served.close()
  })

  const SAID = [
    ['labels', 'Policy labels failed: matched'],
    ['others', 'admitted'],
    ['reads', 'Policy reads failed: prodb'],
  ] as const

  test.each(['this Node', 'Node 24'])('Lambda on %s', async (name) => {
    const lambda = await startLambda({
      entry: served.bundles['lambda/validate'],
      frontDoor: 'function-url',
      env: { ...ENV, CLUSTER_TOKEN: api.token },
      ...(name === 'Node 24' && { node: await node24() }),
    })
    try {
      for (const [policy, said] of SAID) {
        const response = await fetch(`${lambda.url}${validateUrl(policy)}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        expect(saidIn(await response.text())).toBe(said)
      }
      expect(lambda.lines.join('\n')).not.toContain(api.token)
    } finally {
      await lambda.close()
    }
  })

  test('there is no Worker of it, and why', () => {
    expect(served.bundles).not.toHaveProperty('worker')
    expect(noWorkerBecause(deployment)).toBe(
      'no Worker is built: Workers trust public authorities only, and clusters[0].api.caFile is one of its own',
    )
  })

  test.each<[string, object, RegExp]>([
    [
      'without its token',
      { trustingFetch },
      /^Policy reads failed: failed to evaluate message expression: .*variable CLUSTER_TOKEN is not set/,
    ],
    [
      'on a platform that trusts public authorities only',
      { env: { ...ENV, CLUSTER_TOKEN: 'x' } },
      /this platform trusts public authorities only, and the cluster has one of its own$/,
    ],
  ])('%s nothing passes', async (_, changes, said) => {
    const platform = {
      env: ENV,
      log: () => undefined,
      hash: nodeHash,
      maxBodyBytes: MAX_BODY_BYTES,
    }
    const app = compose(deployment, { ...platform, ...changes }, ALL_FLOWS)
    const response = await app.request(validateUrl('reads'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(saidIn(await response.text())).toMatch(said)
  })
})

test('a bundle holds what answers policies only where one asks', async () => {
  const plain = await deploymentOf([policyOf('plain', 'true', '""')])
  const asking = await deploymentOf([policyOf('asking', 'time.now() > timestamp(0)', '""')])
  const outDir = await mkdtemp(path.join(tmpdir(), 'countersign-context-'))
  try {
    const sizes: number[] = []
    for (const deployment of [plain, asking]) {
      const [report] = await bundleFunctions({ deployment, outDir, names: ['worker'] })
      sizes.push(report!.ownBytes)
    }
    const [without = 0, withIt = 0] = sizes
    expect(withIt - without).toBeGreaterThan(3000)
  } finally {
    await rm(outDir, { recursive: true })
  }
})
