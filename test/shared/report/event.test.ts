import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { admitted, denied } from '#shared/admission/response.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import type { AppliedPolicy } from '#shared/engine/applied.ts'
import type { EngineDecision, ImagePolicyEngine } from '#shared/engine/types.ts'
import { MAX_RECORDED, MAX_RECORDED_CHARS } from '#shared/limits.ts'
import { admitInAuditMode } from '#shared/policy/decide.ts'
import { type PolicyEvent, policyEvents, type Reviewed } from '#shared/report/event.ts'
import {
  callFor,
  createWorld,
  type PushedImage,
  patched,
  podWith,
  policyText,
  requestFor,
  START,
  type World,
} from '../../fakes/world.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

let world: World
let signed: PushedImage
let unsigned: PushedImage
beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  unsigned = await world.push('shop/unsigned', [])
})
afterAll(() => world.close())

function reviewed(
  decision: EngineDecision,
  object: JsonObject,
  more: Partial<Reviewed> = {},
): Reviewed {
  const request = requestFor(object)
  const about = { cluster: 'prod', phase: 'validate', time: START, ms: 4 } as const
  return { ...about, deployment: 'd'.repeat(12), request, decision, ...more }
}

async function validated(engine: ImagePolicyEngine, object: JsonObject): Promise<PolicyEvent[]> {
  return policyEvents(reviewed(await engine.validate(requestFor(object), callFor()), object))
}

describe('events of real reviews', () => {
  test('a pass names image, digest, attestor, and whether it was found out, remembered or sealed', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const pod = podWith([signed.pinned])
    const [live] = await validated(engine, pod)
    const [cached] = await validated(engine, pod)
    const sealed = patched(pod, await engine.mutate(requestFor(pod), callFor()))
    const [open] = await validated(engine, sealed)
    const uid = live?.uid
    expect(live).toEqual({
      event: 'policy',
      id: `${uid}:validate:signed`,
      time: '2026-03-01T12:00:00.000Z',
      cluster: 'prod',
      phase: 'validate',
      uid,
      operation: 'CREATE',
      resource: {
        group: '',
        version: 'v1',
        resource: 'pods',
        kind: 'Pod',
        namespace: 'shop',
        name: 'web',
      },
      verdict: 'allow',
      policy: 'signed',
      policyKind: 'ImageValidatingPolicy',
      rule: 'signed',
      policyHash: live?.policyHash,
      status: 'pass',
      action: 'allow',
      images: [{ image: signed.pinned, digest: signed.digest, verifiedBy: ['release'] }],
      checks: { sealed: 0, cached: 0, live: 1 },
      seal: 'absent',
      ms: 4,
      deployment: 'd'.repeat(12),
    })
    expect(live?.policyHash).toMatch(/^[0-9a-f]{12}$/)
    expect(cached?.checks).toEqual({ sealed: 0, cached: 1, live: 0 })
    expect(open).toMatchObject({ checks: { sealed: 1, cached: 0, live: 0 }, seal: 'open' })
    expect(open?.images).toEqual(live?.images)
  })

  test('each applied policy has its own event, with what followed from it', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'audited', spec: '  validationActions: [Audit]' }),
      policyText(world.keys, { name: 'warned', spec: '  validationActions: [Warn]' }),
      policyText(world.keys, { name: 'strict', attestors: ['audit'] }),
      policyText(world.keys, {
        name: 'elsewhere',
        spec: "  matchConditions: [{name: never, expression: object.metadata.name == 'other'}]",
      }),
    ])
    const events = await validated(engine, podWith([unsigned.pinned]))
    const rows = events.map(({ policy, status, action, verdict, message }) => {
      return [policy, status, action, verdict, message]
    })
    const message = 'every image must be signed'
    expect(rows.sort()).toEqual([
      ['audited', 'fail', 'audit', 'deny', message],
      ['signed', 'fail', 'deny', 'deny', message],
      ['strict', 'fail', 'deny', 'deny', message],
      ['warned', 'fail', 'warn', 'deny', message],
    ])
    expect(events[0]?.images).toEqual([
      { image: unsigned.pinned, digest: unsigned.digest, verifiedBy: [] },
    ])
  })

  test('what could not be told is an error', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const missing = `${signed.tagged.replace('signed', 'gone')}@${DIGEST}`
    const [event] = await validated(engine, podWith([missing]))
    expect(event).toMatchObject({ status: 'error', action: 'deny', verdict: 'deny' })
    expect(event?.message).toContain('could not verify')
  })

  test('a policy that was not applied because of its failurePolicy is a warning', async () => {
    const spec = '  failurePolicy: Ignore\n  matchConditions: [{name: bad, expression: "1/0 == 1"}]'
    const engine = await world.engine([policyText(world.keys, { spec })])
    const [event] = await validated(engine, podWith([signed.pinned]))
    expect(event).toMatchObject({ status: 'warn', action: 'warn', verdict: 'allow', images: [] })
  })

  test('the mutate phase refuses nothing', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const pod = podWith([unsigned.tagged])
    const decision = await engine.mutate(requestFor(pod), callFor())
    const [event] = policyEvents(reviewed(decision, pod, { phase: 'mutate' }))
    expect(event).toMatchObject({ phase: 'mutate', status: 'fail', action: 'allow' })
    expect(event?.verdict).toBe('allow')
  })

  test('an exception skips by its name, and a variant of a policy says which it is', async () => {
    const exception = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: legacy, namespace: ops}
spec:
  policyRefs: [{kind: ImageValidatingPolicy, name: signed}]
`
    const pod = podWith([unsigned.pinned])
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { template: { spec: pod.spec ?? null } },
    }
    const policy = policyText(world.keys).replace(', pods/ephemeralcontainers', '')
    const [skipped] = await validated(await world.engine([policy, exception]), pod)
    expect(skipped).toMatchObject({
      status: 'skip',
      action: 'allow',
      rule: 'exception',
      exceptions: ['ops/legacy'],
      message: 'rule is skipped due to policy exception: ops/legacy',
    })
    const [failed] = await validated(await world.engine([policy]), deployment)
    expect(failed).toMatchObject({ policy: 'signed', autogen: 'defaults', status: 'fail' })
    expect(failed?.resource).toMatchObject({ group: 'apps', kind: 'Deployment', name: 'web' })
  })

  test('of a cluster in audit mode say so: nothing is denied, and what would be is told as audit', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const pod = podWith([unsigned.pinned])
    const decision = admitInAuditMode(await engine.validate(requestFor(pod), callFor()))
    const told = policyEvents(reviewed(decision, pod, { mode: 'audit', trace: 'f'.repeat(32) }))
    expect(told).toMatchObject([
      {
        verdict: 'allow',
        status: 'fail',
        action: 'audit',
        mode: 'audit',
        trace: 'f'.repeat(32),
        message: 'every image must be signed',
      },
    ])
  })

  test('of a denial that no policy made and audit mode let in are still there', () => {
    const decision = admitInAuditMode(denied('KMS is away', { code: 503 }))
    const [event, ...more] = policyEvents(reviewed(decision, podWith([]), { mode: 'audit' }))
    expect(event).toMatchObject({ status: 'error', action: 'audit', message: 'KMS is away' })
    expect(more).toEqual([])
  })

  test('a request that no policy is about has no event', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'b' } }
    expect(await validated(engine, object)).toEqual([])
  })
})

const APPLIED: AppliedPolicy = {
  policy: 'shop/signed',
  kind: 'NamespacedImageValidatingPolicy',
  autogen: 'defaults',
  policyHash: 'b'.repeat(64),
  validationActions: ['Deny'],
  status: 'pass',
  message: 'success',
  auditAnnotations: {},
  images: [],
  checks: [],
  exceptions: [],
}

const withApplied = (...applied: Partial<AppliedPolicy>[]): EngineDecision => ({
  ...admitted(),
  applied: () => applied.map((each) => ({ ...APPLIED, ...each })),
})

describe('policyEvents', () => {
  const pod = podWith(['app:1'])

  test('tells namespaced policies and their variants apart', () => {
    const [event] = policyEvents(reviewed(withApplied({}), pod))
    expect(event).toMatchObject({
      id: `${event?.uid}:validate:shop/signed:defaults`,
      policy: 'shop/signed',
      rule: 'signed',
      autogen: 'defaults',
      policyKind: 'NamespacedImageValidatingPolicy',
    })
  })

  test('an exception is named, and is the rule of what it skips', () => {
    const exceptions = ['ops/legacy']
    const [event] = policyEvents(reviewed(withApplied({ status: 'skip', exceptions }), pod))
    expect(event).toMatchObject({ status: 'skip', action: 'allow', rule: 'exception', exceptions })
  })

  test('an attestation that verified is named after its attestor', () => {
    const image = `app@${DIGEST}`
    const checked = { image, attestor: 'ci', attestation: undefined, from: 'live' } as const
    const verified = { ...checked, status: 'verified' } as const
    const checks = [
      verified,
      { ...verified, attestation: 'sbom', from: 'cached' as const },
      { ...checked, attestor: 'other', status: 'rejected' as const },
    ]
    const [event] = policyEvents(reviewed(withApplied({ images: [image], checks }), pod))
    expect(event?.images).toEqual([{ image, digest: DIGEST, verifiedBy: ['ci', 'ci/sbom'] }])
    expect(event?.checks).toEqual({ sealed: 0, cached: 1, live: 2 })
  })

  test('a denial without the result of a policy is an event without one', () => {
    expect(policyEvents(reviewed(denied('no verdict in time'), pod))).toMatchObject([
      { status: 'error', action: 'deny', verdict: 'deny', message: 'no verdict in time' },
    ])
    expect(policyEvents(reviewed(admitted(), pod))).toEqual([])
  })

  test('only wanted statuses are told', () => {
    const decision = withApplied({ status: 'pass' }, { status: 'fail', policy: 'b' })
    const told = policyEvents(reviewed(decision, pod), (status) => status === 'fail')
    expect(told.map(({ policy }) => policy)).toEqual(['b'])
    expect(policyEvents(reviewed(denied('x'), pod), (status) => status === 'fail')).toEqual([])
  })

  test('dry runs say so; names that are not made up yet have their prefix', () => {
    const metadata = { generateName: 'web-', namespace: 'shop', uid: 'u-1' }
    const request = { ...requestFor(podWith([], metadata)), dryRun: true }
    const [event] = policyEvents(reviewed(withApplied({}), {}, { request }))
    expect(event?.dryRun).toBe(true)
    expect(event?.resource).toMatchObject({ generateName: 'web-', uid: 'u-1' })
    expect(event?.resource.name).toBeUndefined()
  })

  test('holds no user, and of the object nothing but who it is', () => {
    const object = podWith(['app:1'], {
      name: 'web',
      namespace: 'shop',
      annotations: { secret: 'hunter2' },
    })
    const userInfo = { username: 'jane@example.com', groups: ['ops'] }
    const request = { ...requestFor(object), userInfo }
    const text = JSON.stringify(policyEvents(reviewed(withApplied({}), object, { request })))
    expect(text).not.toMatch(/hunter2|jane|ops|annotations/)
  })

  test('stays small whatever a policy says and however many images there are', () => {
    const long = 'x'.repeat(100_000)
    const images = Array.from({ length: 500 }, (_, i) => `app-${i}:1`)
    const auditAnnotations = Object.fromEntries(images.map((image) => [image, long]))
    const applied = { status: 'fail', message: long, images, auditAnnotations } as const
    const [event] = policyEvents(reviewed(withApplied(applied), pod))
    expect(event?.message).toHaveLength(MAX_RECORDED_CHARS)
    expect(event?.images).toHaveLength(MAX_RECORDED)
    expect(event?.imagesOmitted).toBe(500 - MAX_RECORDED)
    expect(JSON.stringify(event).length).toBeLessThan(64 * 1024)
  })
})
