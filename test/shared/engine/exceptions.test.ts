import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pushImage } from '#functions/local/image.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { OUTCOMES_ANNOTATION } from '#shared/outcome/annotation.ts'
import {
  admit,
  callFor,
  createWorld,
  type PushedImage,
  patched,
  podWith,
  policyText,
  requestFor,
  START,
  type World,
} from '#test/fakes/world.ts'

let world: World
let signed: PushedImage
let excused: PushedImage
let unsigned: PushedImage

beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  excused = await world.push('tools/pause', [])
  unsigned = await world.push('shop/unsigned', [])
})
afterAll(() => world.close())
beforeEach(() => world.reset())

/** A PolicyException for the policy `signed`, its spec given in JSON. */
function exceptionText(spec: object = {}, { name = 'let', namespace = 'shop' } = {}): string {
  const policyRefs = [{ kind: 'ImageValidatingPolicy', name: 'signed' }]
  return JSON.stringify({
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'PolicyException',
    metadata: { name, namespace },
    spec: { policyRefs, ...spec },
  })
}

function recordOf(object: JsonObject): Record<string, Record<string, unknown>> {
  const { annotations } = object.metadata as { annotations?: Record<string, string> }
  return JSON.parse(annotations?.[OUTCOMES_ANNOTATION] ?? '{}')
}

const pinsOf = ({ patch }: { patch: readonly { path: string }[] }) =>
  patch.filter(({ path }) => path.startsWith('/spec')).length

const condition = (expression: string) => ({ matchConditions: [{ name: 'c', expression }] })

describe('a total exception', () => {
  test.each([
    { name: 'skips the policy in both phases', spec: {}, status: 'skip' },
    { name: 'may report a pass', spec: { reportResult: 'pass' }, status: 'pass' },
  ])('$name', async ({ spec, status }) => {
    const engine = await world.engine([policyText(world.keys), exceptionText(spec)])
    const { mutated, final, validated } = await admit(engine, podWith([unsigned.tagged]))
    const message = 'rule is skipped due to policy exception: shop/let'
    expect(pinsOf(mutated)).toBe(0)
    expect(recordOf(final)).toEqual({
      signed: { name: 'exception', ruleType: 'Validation', message, status },
    })
    expect(validated).toMatchObject({
      allowed: true,
      warnings: [],
      auditAnnotations: { 'image-policy-exceptions': `Policy signed: ${message}` },
      record: { policies: [{ policy: 'signed', status, exceptions: ['shop/let'] }] },
    })
    expect(validated.applied?.()).toMatchObject([
      { policy: 'signed', status, exceptions: ['shop/let'] },
    ])
    expect(world.registry.requests).toEqual([])
  })

  test.each([
    { name: 'before', order: [0, 1] },
    { name: 'behind', order: [1, 0] },
  ])('wins $name one that is about other images (IVP-05)', async ({ order }) => {
    const files = [
      exceptionText({}, { name: 'total' }),
      exceptionText({ images: [signed.tagged] }, { name: 'partial' }),
    ]
    const engine = await world.engine([policyText(world.keys), ...order.map((i) => files[i] ?? '')])
    const validated = await engine.validate(requestFor(podWith([unsigned.tagged])), callFor())
    expect(validated.allowed).toBe(true)
    expect(validated.record.policies).toMatchObject([
      { status: 'skip', message: 'rule is skipped due to policy exception: shop/total' },
    ])
  })

  test('does not keep another policy from pinning and judging', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'strict' }),
      exceptionText(),
    ])
    const { mutated, validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(pinsOf(mutated)).toBe(1)
    expect(validated.status?.message).toBe('Policy strict failed: every image must be signed')
  })

  test.each([
    { name: 'it counts in a cluster without a list', exceptions: undefined, is: true },
    { name: 'it counts in a cluster that lists it', exceptions: ['shop/let'], is: true },
    { name: 'it does not in one that lists another', exceptions: ['shop/other'], is: false },
    { name: 'it does not in one that lists none', exceptions: [], is: false },
  ])('$name', async ({ exceptions, is }) => {
    const engine = await world.engine([policyText(world.keys), exceptionText()])
    const call = exceptions && { exceptions: new Set(exceptions) }
    const { validated, mutated } = await admit(engine, podWith([unsigned.tagged]), {
      mutate: call ?? {},
      validate: call ?? {},
    })
    expect([validated.allowed, pinsOf(mutated)]).toEqual([is, is ? 0 : 1])
  })

  test.each([
    {
      name: 'whose condition holds applies',
      expression: 'object.metadata.name == "web"',
      is: true,
    },
    { name: 'whose condition does not hold does not', expression: 'false && true', is: false },
    { name: 'about another namespace does not', expression: 'request.namespace == "x"', is: false },
  ])('$name', async ({ expression, is }) => {
    const engine = await world.engine([
      policyText(world.keys),
      exceptionText(condition(expression)),
    ])
    const { validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(validated.allowed).toBe(is)
  })

  test.each([
    {
      failurePolicy: 'Fail',
      message:
        /^Policy signed error: failed to evaluate policy: exception shop\/let: match condition c: /,
    },
    { failurePolicy: 'Ignore', message: /^Policy signed failed: every image must be signed$/ },
  ])(
    'that cannot be told about denies under $failurePolicy',
    async ({ failurePolicy, message }) => {
      const engine = await world.engine([
        policyText(world.keys, { spec: `  failurePolicy: ${failurePolicy}` }),
        exceptionText(condition('object.metadata.labels.team == "a"')),
      ])
      const { validated } = await admit(engine, podWith([unsigned.tagged]))
      expect(validated.status?.message).toMatch(message)
      expect(validated.auditAnnotations).not.toHaveProperty('image-policy-failed-open')
    },
  )

  test.each([
    { seconds: -1, is: true },
    { seconds: 0, is: true },
    { seconds: 1, is: false },
  ])('at its end and $seconds s, by the clock of the review: $is', async ({ seconds, is }) => {
    const expiresAt = new Date(START + 3_600_000).toISOString()
    const engine = await world.engine([policyText(world.keys), exceptionText({ expiresAt })])
    world.clock.now = START + 3_600_000 + seconds * 1000
    const { validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(validated.allowed).toBe(is)
  })

  test('needs no evidence, and is none for others', async () => {
    const validations = '    - expression: "true"'
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'noop', validations }),
      exceptionText(),
    ])
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated.status?.message).toBe(
      `Policy noop failed: image ${signed.pinned} is not verified: no policy performed a signature or attestation check on it`,
    )
  })

  test('under the strict hand-over is no policy that was not evaluated', async () => {
    const engine = await world.engine([policyText(world.keys), exceptionText()], {
      outcomes: { onMissing: 'deny', lifetimeMs: 120_000 },
    })
    const { validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(validated.allowed).toBe(true)
  })
})

describe('an exception for images', () => {
  const texts = (images: string[]) => [policyText(world.keys), exceptionText({ images })]
  const DENIED = 'Policy signed failed: every image must be signed'

  test('lets its image in and no other; both are pinned (IVP-04)', async () => {
    const engine = await world.engine(texts([excused.tagged]))
    const only = await admit(engine, podWith([excused.tagged]))
    expect(only.validated.allowed).toBe(true)
    expect(only.validated.auditAnnotations).toEqual({
      'image-policy-exceptions': `Policy signed: exempt are image ${excused.pinned} (shop/let)`,
    })
    const both = await admit(engine, podWith([excused.tagged, unsigned.tagged]))
    expect(pinsOf(both.mutated)).toBe(2)
    expect(both.validated.status?.message).toBe(DENIED)
    expect(both.validated.status?.details?.causes).toMatchObject([
      { field: `signed[${unsigned.pinned}]` },
    ])
  })

  test.each([
    { name: 'one about other images', more: {}, told: undefined, used: undefined },
    {
      name: 'one with values as well',
      more: { allowedValues: ['x'] },
      told: 'Policy signed: values are allowed by shop/let',
      used: ['shop/let'],
    },
  ])('$name is told of only where it allowed something', async ({ more, told, used }) => {
    const engine = await world.engine([
      policyText(world.keys),
      exceptionText({ images: [excused.tagged], ...more }),
    ])
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated.allowed).toBe(true)
    expect(validated.auditAnnotations['image-policy-exceptions']).toBe(told)
    const record = validated.record.policies as { exceptions?: unknown }[]
    expect(record.map(({ exceptions }) => exceptions)).toEqual([used])
    expect(validated.applied?.().map(({ exceptions }) => exceptions)).toEqual([used ?? []])
  })

  test('is told of beside one with values', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      exceptionText({ images: [excused.tagged] }),
      exceptionText({ allowedValues: ['a'] }, { name: 'values' }),
    ])
    const { validated } = await admit(engine, podWith([excused.tagged]))
    expect(validated.auditAnnotations).toEqual({
      'image-policy-exceptions': `Policy signed: exempt are image ${excused.pinned} (shop/let), values are allowed by shop/values`,
    })
  })

  test('shows expressions what is allowed, and leaves its images out of the lists', async () => {
    const validations = `    - expression: >-
        exceptions.allowedImages == ["${excused.tagged}"] && exceptions.allowedValues == ["a", "b"] &&
        images.containers.all(i, i in exceptions.allowedImages || verifyImageSignatures(i, [attestors.release]) > 0)
    - expression: images.containers.size() == 1`
    const engine = await world.engine([
      policyText(world.keys, { validations }),
      exceptionText({ images: [excused.tagged] }),
      exceptionText({ allowedValues: ['a', 'b'] }, { name: 'values' }),
    ])
    const { validated } = await admit(engine, podWith([excused.tagged, signed.tagged]))
    expect(validated.status?.message).toBeUndefined()
    expect(validated.record.policies).toMatchObject([{ exceptions: ['shop/let', 'shop/values'] }])
  })

  test('values exempt no image', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      exceptionText({ allowedValues: ['x'] }),
    ])
    expect((await admit(engine, podWith([unsigned.tagged]))).validated.allowed).toBe(false)
  })

  test('without any, a policy sees empty lists', async () => {
    const validations = `    - expression: >-
        exceptions.allowedImages.size() + exceptions.allowedValues.size() == 0 &&
        images.containers.all(i, verifyImageSignatures(i, [attestors.release]) > 0)`
    const engine = await world.engine([policyText(world.keys, { validations })])
    expect((await admit(engine, podWith([signed.tagged]))).validated.allowed).toBe(true)
  })

  test('is known to validate from the seal, without a call', async () => {
    const files = texts([excused.tagged])
    const object = podWith([excused.tagged])
    const mutated = await (await world.engine(files)).mutate(requestFor(object), callFor())
    const fresh = await world.engine(files, {
      live: () => Promise.reject(new Error('nothing may be found out live')),
    })
    const final = patched(object, mutated)
    const validated = await fresh.validate(requestFor(final), callFor())
    expect(validated).toMatchObject({ allowed: true, record: { seal: 'open' } })
    const again = await fresh.mutate(requestFor(final), callFor())
    expect(again.patch).toEqual([])
  })

  test('holds under the strict hand-over for what was sealed only', async () => {
    const strict = { outcomes: { onMissing: 'deny', lifetimeMs: 120_000 } } as const
    const engine = await world.engine(texts([excused.tagged]), strict)
    expect((await admit(engine, podWith([excused.tagged]))).validated.allowed).toBe(true)
    const swapped = await admit(engine, podWith([signed.tagged]), {
      between: (object) => ({ ...object, spec: podWith([excused.pinned]).spec as JsonObject }),
    })
    expect(swapped.validated.status?.message).toBe(
      `Policy signed error: failed to evaluate policy: image ${excused.pinned} is not covered by the sealed outcomes of the mutate phase`,
    )
  })

  test.each([
    { name: 'mutate and validate', phases: 2 },
    { name: 'validate alone', phases: 1 },
  ])('a digest that its tag does not mean is judged, by $name', async ({ phases }) => {
    const { url } = world.registry
    const other = await pushImage({ url, repository: 'tools/pause' }, { text: 'evil', tag: 'evil' })
    const forged = `${excused.tagged}@${other.digest}`
    const engine = await world.engine(texts([excused.tagged]))
    const object = podWith([forged])
    const mutated = phases === 2 ? await engine.mutate(requestFor(object), callFor()) : undefined
    const final = mutated === undefined ? object : patched(object, mutated)
    const validated = await engine.validate(requestFor(final), callFor())
    expect(validated.status?.message).toBe(DENIED)
  })

  test('the digest that its tag means now is let in whoever wrote it', async () => {
    const engine = await world.engine(texts([excused.tagged]))
    const validated = await engine.validate(requestFor(podWith([excused.pinned])), callFor())
    expect(validated.allowed).toBe(true)
  })

  test('what a seal says of a tag is never sealed for longer', async () => {
    const text = [policyText(world.keys), exceptionText({ images: ['*/tools/*:1.0'] })]
    const engine = await world.engine(text)
    const once = (await admit(engine, podWith([excused.tagged]))).final
    world.clock.now += 30_000
    const more = await world.push('tools/more', [])
    const images = [excused.pinned, more.pinned]
    const grown = { ...once, spec: podWith(images).spec as JsonObject }
    const mutated = await (await world.engine(text)).mutate(requestFor(grown), callFor())
    world.clock.now = START + 121_000
    const final = patched(grown, mutated)
    const validated = await (await world.engine(text)).validate(requestFor(final), callFor())
    expect(validated.record.seal).toMatch(/^refused: .*expired/)
  })

  test('a tag that moved on takes its exception along, except from what was sealed before', async () => {
    const before = await world.push('tools/moving', [])
    const files = texts([before.tagged])
    const object = podWith([before.tagged])
    const mutated = await (await world.engine(files)).mutate(requestFor(object), callFor())
    world.registry.faults.add(
      { kind: 'status', status: 404 },
      { on: /tools\/moving\/manifests\/1\.0/ },
    )
    const final = patched(object, mutated)
    const sealed = await (await world.engine(files)).validate(requestFor(final), callFor())
    expect(sealed.allowed).toBe(true)
    const bare = podWith([before.pinned])
    const unsealed = await (await world.engine(files)).validate(requestFor(bare), callFor())
    expect(unsealed.status?.message).toMatch(
      /^Policy signed error: failed to evaluate policy: could not tell whether image .* is what its tag means: /,
    )
  })

  test('that cannot be told about, since the registry is down, denies', async () => {
    world.registry.faults.add({ kind: 'down' })
    const engine = await world.engine(texts([excused.tagged]))
    const validated = await engine.validate(requestFor(podWith([excused.pinned])), callFor())
    expect(validated.status?.message).toMatch(/could not tell whether image .*connection failed/)
  })

  test('wants a digest of the others only', async () => {
    const engine = await world.engine(texts([excused.tagged]))
    const excusedOnly = await engine.validate(requestFor(podWith([excused.tagged])), callFor())
    expect(excusedOnly.allowed).toBe(true)
    const other = await engine.validate(
      requestFor(podWith([excused.tagged, signed.tagged])),
      callFor(),
    )
    expect(other.status?.message).toBe(
      `Policy signed failed: image ${signed.tagged} does not have a digest`,
    )
  })

  test('is about its own policy only', async () => {
    const engine = await world.engine([
      ...texts([excused.tagged]),
      policyText(world.keys, { name: 'strict' }),
    ])
    const { validated } = await admit(engine, podWith([excused.tagged]))
    expect(validated.status?.message).toBe('Policy strict failed: every image must be signed')
  })

  test.each([
    { name: 'expired', spec: { expiresAt: new Date(START + 1000).toISOString() } },
    { name: 'of a condition that does not hold', spec: condition('request.namespace == "x"') },
  ])('exempts nothing when it is $name', async ({ spec }) => {
    const engine = await world.engine([
      policyText(world.keys),
      exceptionText({ images: [excused.tagged], ...spec }),
    ])
    world.clock.now = START + 2000
    expect((await admit(engine, podWith([excused.tagged]))).validated.allowed).toBe(false)
  })
})
