import { createApp } from '#functions/app.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { toLambdaHandler } from '#functions/lambda.ts'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import { sha256, toHex, utf8 } from '#shared/bytes.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { sealContext } from '#shared/outcome/context.ts'
import { secretKeyRing } from '#shared/outcome/keyring.ts'
import { openSeal, sealOutcomes } from '#shared/outcome/seal.ts'
import {
  callFor,
  createWorld,
  patched,
  podWith,
  policyText,
  requestFor,
} from '#test/fakes/world.ts'
import { type Bench, measure, type Row } from './measure.ts'

const SIZES = [1, 3, 30]

/** Both phases as the engine and as the whole door see them, beside reading and writing the same review as JSON. */
export async function admissionRows(): Promise<Row[]> {
  const world = await createWorld()
  try {
    const policies = [policyText(world.keys)]
    const engine = await world.engine(policies)
    const images = await Promise.all(
      Array.from({ length: 30 }, (_, i) => world.push(`bench/app-${i}`, ['release'])),
    )
    const objects = new Map<number, { tagged: JsonObject; sealed: JsonObject }>()
    for (const size of SIZES) {
      const tagged = podWith(images.slice(0, size).map((image) => image.tagged))
      const decision = await engine.mutate(requestFor(tagged), callFor())
      objects.set(size, { tagged, sealed: patched(tagged, decision) })
    }
    const sealed = (size: number) => objects.get(size)?.sealed ?? {}
    const text = reviewText(requestFor(sealed(3)))
    const baseline: Bench = {
      name: 'baseline: read and write a 3-container review as JSON',
      run: () => JSON.stringify(JSON.parse(text)),
      runs: 2000,
    }
    const benches: Bench[] = []
    for (const size of SIZES) {
      const fresh = await world.engine(policies)
      benches.push(
        validateBench(`engine: validate, covering seal, ${size} containers`, fresh, sealed(size)),
      )
    }
    const door = await doorBench(engine, sealed(3))
    benches.push(door)
    const pinned = podWith(images.slice(0, 3).map((image) => image.pinned))
    benches.push(mutateBench('engine: mutate, 3 pinned containers, cached', engine, pinned))
    const { tagged } = objects.get(3) ?? { tagged: {} }
    benches.push(mutateBench('engine: mutate, 3 tags, signatures cached', engine, tagged, 50))
    benches.push({
      name: 'engine: mutate, 3 tags, nothing cached',
      run: async () => (await world.engine(policies)).mutate(requestFor(tagged), callFor()),
      runs: 10,
      note: () => 'with an in-process registry over loopback; includes compiling the policy',
    })
    benches.push(...(await sealBenches(sealed(3))))
    return await measure(baseline, benches)
  } finally {
    await world.close()
  }
}

function reviewText(request: AdmissionRequest): string {
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request })
}

function validateBench(name: string, engine: ImagePolicyEngine, object: JsonObject): Bench {
  const request = requestFor(object)
  let record: Readonly<Record<string, unknown>> = {}
  return {
    name,
    run: async () => {
      const decision = await engine.validate(request, callFor())
      if (!decision.allowed) throw new Error(decision.status?.message)
      record = decision.record
    },
    note: () => `calls ${JSON.stringify(record.calls)}`,
  }
}

function mutateBench(
  name: string,
  engine: ImagePolicyEngine,
  object: JsonObject,
  runs = 200,
): Bench {
  let record: Readonly<Record<string, unknown>> = {}
  return {
    name,
    runs,
    run: async () => {
      record = (await engine.mutate(requestFor(object), callFor())).record
    },
    note: () => `calls ${JSON.stringify(record.calls)}`,
  }
}

async function doorBench(engine: ImagePolicyEngine, object: JsonObject): Promise<Bench> {
  const token = 'a'.repeat(32)
  const clusters = [{ name: 'prod', tokens: [toHex(await sha256(utf8(token)))], timeouts: {} }]
  // The door reads nothing else of a deployment.
  const deployment = { config: { clusters }, policies: [], hash: 'bench' } as unknown as Parameters<
    typeof createApp
  >[0]['deployment']
  const app = createApp({
    deployment,
    engine,
    hash: nodeHash,
    maxBodyBytes: MAX_BODY_BYTES,
    now: Date.now,
    log: () => undefined,
  })
  const body = reviewText(requestFor(object))
  const handler = toLambdaHandler(app)
  const event = {
    version: '2.0',
    rawPath: `/v1/prod/${token}/ivpol/validate`,
    rawQueryString: 'timeout=5s',
    headers: { 'content-type': 'application/json' },
    requestContext: { stage: '$default', http: { method: 'POST', sourceIp: '203.0.113.1' } },
    body,
  }
  return {
    name: 'Lambda handler: validate, seal, 3 containers',
    run: async () => {
      const { statusCode } = await handler(event, {})
      if (statusCode !== 200) throw new Error(`answered ${statusCode}`)
    },
    note: () => `body ${body.length} bytes; token, JSON, review, seal, CEL, answer, log record`,
  }
}

async function sealBenches(object: JsonObject): Promise<Bench[]> {
  const ring = secretKeyRing([{ kid: 'bench', secret: new Uint8Array(32).fill(7) }], nodeHash)
  const { signal } = new AbortController()
  const key = await ring.current(0, signal)
  const context = sealContext(requestFor(object), 'prod')
  const image = `registry.example.com/app:1@sha256:${'a'.repeat(64)}`
  const facts = Array.from({ length: 3 }, (_, i) => ({
    policy: 'signed',
    policyHash: 'b'.repeat(64),
    function: 'verifyImageSignatures',
    image: image.replace('app', `app-${i}`),
    digest: `sha256:${'a'.repeat(64)}`,
    attestor: 'release',
  }))
  const outcomes = { policies: [{ policy: 'signed', policyHash: 'b'.repeat(64) }], facts }
  const seal = sealOutcomes(outcomes, context, key, 0, 120_000)
  return [
    {
      name: 'seal: make, 3 facts',
      run: () => sealOutcomes(outcomes, context, key, 0, 120_000),
      note: () => `${seal.length} characters`,
    },
    { name: 'seal: open, 3 facts', run: () => openSeal(seal, context, ring, 0, signal) },
  ]
}
