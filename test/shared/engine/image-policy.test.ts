import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '#shared/admission/types.ts'
import type { EngineCall, ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { OUTCOMES_ANNOTATION, SEAL_ANNOTATION } from '#shared/outcome/annotation.ts'
import type { KeyRing } from '#shared/outcome/types.ts'
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
let bundled: PushedImage
let unsigned: PushedImage
let foreign: PushedImage
let twice: PushedImage

beforeAll(async () => {
  world = await createWorld()
  signed = await world.push('shop/signed', ['release'])
  bundled = await world.push('shop/bundled', ['release'], 'dsse')
  unsigned = await world.push('shop/unsigned', [])
  foreign = await world.push('shop/foreign', ['other'])
  twice = await world.push('shop/twice', ['release', 'audit'])
})
afterAll(() => world.close())
beforeEach(() => world.reset())

function annotationsOf(object: JsonObject): Record<string, string> {
  return ((object.metadata as JsonObject).annotations ?? {}) as Record<string, string>
}

function withImage(object: JsonObject, image: string): JsonObject {
  return { ...object, spec: { containers: [{ name: 'c0', image }] } }
}

describe('signed and unsigned images', () => {
  test.each([
    { name: 'a signed image is pinned, sealed and admitted', image: () => signed },
    { name: 'an image signed in a Sigstore bundle is too', image: () => bundled },
  ])('$name', async ({ image }) => {
    const engine = await world.engine([policyText(world.keys)])
    const { mutated, final, validated } = await admit(engine, podWith([image().tagged]))
    expect(mutated.patch.map(({ op, path }) => `${op} ${path}`)).toEqual([
      'replace /spec/containers/0/image',
      'add /metadata/annotations',
      'add /metadata/annotations/kyverno.io~1image-verification-outcomes',
      'add /metadata/annotations/countersign.dev~1seal',
    ])
    expect(mutated.patch[0]).toEqual({
      op: 'replace',
      path: '/spec/containers/0/image',
      value: image().pinned,
    })
    expect(annotationsOf(final)[OUTCOMES_ANNOTATION]).toBe(
      '{"signed":{"name":"signed","ruleType":"ImageVerify","message":"success","status":"pass"}}',
    )
    expect(validated).toMatchObject({ allowed: true, warnings: [], patch: [] })
  })

  test.each([
    {
      name: 'an image without a signature is denied',
      image: () => unsigned,
      reason: /no signature found/,
    },
    {
      name: 'an image signed by another key is denied',
      image: () => foreign,
      reason: /not by this ECDSA P-256 key/,
    },
  ])('$name, and the warning says why', async ({ image, reason }) => {
    const engine = await world.engine([policyText(world.keys)])
    const { mutated, final, validated } = await admit(engine, podWith([image().tagged]))
    expect(mutated.allowed).toBe(true)
    expect(JSON.parse(annotationsOf(final)[OUTCOMES_ANNOTATION] ?? '{}').signed.status).toBe('fail')
    expect(validated.allowed).toBe(false)
    expect(validated.status).toMatchObject({
      code: 403,
      message: 'Policy signed failed: every image must be signed',
    })
    expect(validated.warnings.join()).toMatch(reason)
  })

  test('one bad image among good ones denies the object', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const { validated } = await admit(engine, podWith([signed.tagged, unsigned.tagged]))
    expect(validated.allowed).toBe(false)
  })
})

describe('what validate spends', () => {
  test('a covering seal needs no call to the registry', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const mutated = await engine.mutate(requestFor(podWith([signed.tagged])), callFor())
    const final = patched(podWith([signed.tagged]), mutated)
    world.registry.requests.length = 0
    const fresh = await world.engine([policyText(world.keys)], {
      live: () => Promise.reject(new Error('nothing may be found out live')),
    })
    const validated = await fresh.validate(requestFor(final), callFor())
    expect(validated.allowed).toBe(true)
    expect(validated.record).toMatchObject({ seal: 'open', calls: { registry: 0, kms: 0 } })
    expect(world.registry.requests).toEqual([])
  })

  test('an object that no policy is about costs nothing, in neither phase', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } }
    const mutated = await engine.mutate(requestFor(configMap), callFor())
    const validated = await engine.validate(requestFor(configMap), callFor())
    expect([mutated.allowed, mutated.patch, validated.allowed]).toEqual([true, [], true])
    expect(world.registry.requests).toEqual([])
  })

  test('an image that no reference matches is not looked up, pinned or required', async () => {
    const spec = '  matchImageReferences:\n    - glob: "ghcr.io/*"'
    const engine = await world.engine([policyText(world.keys, { spec })])
    const { mutated, validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(mutated.patch.some(({ path }) => path.startsWith('/spec'))).toBe(false)
    expect(validated.allowed).toBe(true)
    expect(world.registry.requests).toEqual([])
  })

  test('a tag is resolved once for all containers and policies of a request', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'again' }),
    ])
    await engine.mutate(requestFor(podWith([signed.tagged, signed.tagged])), callFor())
    const tags = world.registry.requests.filter(({ url }) => url.endsWith('/manifests/1.0'))
    expect(tags).toHaveLength(1)
  })
})

describe('the seal', () => {
  const rows: {
    name: string
    between?: (object: JsonObject) => JsonObject
    after?: () => void
    validate?: Parameters<typeof callFor>[0]
  }[] = [
    {
      name: 'does not cover an image that a later webhook put in its place',
      between: (object) => withImage(object, unsigned.pinned),
    },
    {
      name: 'does not cover another namespace',
      between: (object) => ({
        ...withImage(object, unsigned.pinned),
        metadata: { ...(object.metadata as JsonObject), namespace: 'other' },
      }),
    },
    {
      name: 'does not cover another cluster',
      between: (object) => withImage(object, unsigned.pinned),
      validate: { cluster: 'staging' },
    },
    {
      name: 'does not cover anything after its lifetime',
      between: (object) => {
        world.clock.now += 121_000
        return withImage(object, unsigned.pinned)
      },
    },
    {
      name: 'is worth nothing when it was written by hand',
      between: (object) => ({
        ...withImage(object, unsigned.pinned),
        metadata: {
          ...(object.metadata as JsonObject),
          annotations: {
            [OUTCOMES_ANNOTATION]:
              '{"signed":{"name":"signed","ruleType":"ImageVerify","message":"success","status":"pass"}}',
            [SEAL_ANNOTATION]: 'v1.test.e30.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
          },
        },
      }),
    },
  ]
  test.each(rows)('$name', async ({ between, validate }) => {
    const engine = await world.engine([policyText(world.keys)])
    const object = podWith([signed.tagged])
    const { validated } = await admit(engine, object, {
      ...(between && { between }),
      ...(validate && { validate }),
    })
    expect(validated.allowed).toBe(false)
    expect(validated.status?.message).toBe('Policy signed failed: every image must be signed')
  })

  test.each([
    { name: 'a missing seal', strip: true, registryDown: false, allowed: true },
    {
      name: 'a missing seal while the registry is down',
      strip: true,
      registryDown: true,
      allowed: false,
    },
    { name: 'a seal while the registry is down', strip: false, registryDown: true, allowed: true },
  ])('$name: allowed $allowed', async ({ strip, registryDown, allowed }) => {
    const engine = await world.engine([policyText(world.keys)])
    const mutated = await engine.mutate(requestFor(podWith([signed.tagged])), callFor())
    const sealed = patched(podWith([signed.tagged]), mutated)
    const final = strip ? { ...sealed, metadata: { name: 'web', namespace: 'shop' } } : sealed
    if (registryDown) world.registry.faults.add({ kind: 'down' })
    const fresh = await world.engine([policyText(world.keys)])
    const validated = await fresh.validate(requestFor(final), callFor())
    expect(validated.allowed).toBe(allowed)
    if (!allowed) {
      expect(validated.status?.message).toMatch(
        /^Policy signed error: failed to evaluate policy: .*could not verify image .*connection failed/,
      )
    }
  })

  test('a policy that changed in between is not covered', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const mutated = await engine.mutate(requestFor(podWith([signed.tagged])), callFor())
    const final = patched(podWith([signed.tagged]), mutated)
    const changed = await world.engine([policyText(world.keys, { attestors: ['audit'] })])
    const validated = await changed.validate(requestFor(final), callFor())
    expect(validated.allowed).toBe(false)
  })

  test('reinvoked on its own output, mutate changes nothing and asks nobody', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const object = podWith([signed.tagged])
    const once = patched(object, await engine.mutate(requestFor(object), callFor()))
    world.registry.requests.length = 0
    world.clock.now += 2000
    const again = await engine.mutate(requestFor(once), callFor())
    expect(again.patch).toEqual([])
    expect(world.registry.requests).toEqual([])
  })

  test('a seal near its end is made anew from what is found out live', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const object = podWith([signed.tagged])
    const once = patched(object, await engine.mutate(requestFor(object), callFor()))
    world.clock.now += 90_000
    const again = await engine.mutate(requestFor(once), callFor())
    expect(again.patch.map(({ path }) => path)).toEqual([
      '/metadata/annotations/countersign.dev~1seal',
    ])
    world.clock.now += 60_000
    const fresh = await world.engine([policyText(world.keys)])
    const validated = await fresh.validate(requestFor(patched(once, again)), callFor())
    expect(validated.record).toMatchObject({ seal: 'open', calls: { registry: 0 } })
  })

  test('a seal that borrows facts from another never outlives it', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const object = podWith([signed.tagged])
    const once = patched(object, await engine.mutate(requestFor(object), callFor()))
    world.clock.now += 30_000
    const grown = {
      ...once,
      spec: {
        containers: [
          ...((once.spec as JsonObject).containers as JsonObject[]),
          { name: 'c1', image: bundled.tagged },
        ],
      },
    }
    const twiceMutated = patched(grown, await engine.mutate(requestFor(grown), callFor()))
    world.clock.now = START + 121_000
    const fresh = await world.engine([policyText(world.keys)])
    const validated = await fresh.validate(requestFor(twiceMutated), callFor())
    expect(validated.record.seal).toMatch(/^refused: .*expired/)
  })

  test('what came in is removed where no policy applies', async () => {
    const spec =
      "  matchConditions:\n    - {name: never, expression: object.metadata.name == 'nobody'}"
    const engine = await world.engine([policyText(world.keys, { spec })])
    const forged = podWith([signed.tagged], {
      name: 'web',
      namespace: 'shop',
      annotations: { [OUTCOMES_ANNOTATION]: '{}', [SEAL_ANNOTATION]: 'x', keep: 'me' },
    })
    const mutated = await engine.mutate(requestFor(forged), callFor())
    expect(annotationsOf(patched(forged, mutated))).toEqual({ keep: 'me' })
  })

  test('without a key service nothing is sealed and validate verifies for itself', async () => {
    const down: KeyRing = {
      current: () => Promise.reject(new AdmissionError('SEAL_KEY_UNAVAILABLE', 'no key')),
      find: () => Promise.reject(new AdmissionError('SEAL_KEY_UNAVAILABLE', 'no key')),
    }
    const engine = await world.engine([policyText(world.keys)], { keyRing: down })
    const { mutated, final, validated } = await admit(engine, podWith([signed.tagged]))
    expect(mutated.record.sealed).toBe('no key')
    expect(annotationsOf(final)[SEAL_ANNOTATION]).toBeUndefined()
    expect(validated.allowed).toBe(true)
  })
})

describe('several mutating webhooks on one object', () => {
  const own = () =>
    policyText(world.keys, { name: 'own' })
      .replace('kind: Image', 'kind: NamespacedImage')
      .replace('name: own', 'name: own\n  namespace: shop')
  const routes: Partial<EngineCall>[] = [{ scope: 'ivpol' }, { scope: 'nivpol' }]
  const lists: Partial<EngineCall>[] = [{ policies: ['signed'] }, { policies: ['second'] }]

  /** What comes out of the webhooks, one behind the other. */
  async function through(
    engine: ImagePolicyEngine,
    object: JsonObject,
    calls: readonly Partial<EngineCall>[],
  ) {
    let at = object
    for (const call of calls) {
      at = patched(at, await engine.mutate(requestFor(at), callFor(call)))
    }
    return at
  }

  test.each([
    { name: 'both routes', calls: routes, texts: () => [policyText(world.keys), own()] },
    {
      name: 'both routes, without a policy for the second',
      calls: routes,
      texts: () => [policyText(world.keys)],
    },
    {
      name: 'two lists of policies',
      calls: lists,
      texts: () => [policyText(world.keys), policyText(world.keys, { name: 'second' })],
    },
  ])('$name: each keeps what the others sealed', async ({ calls, texts }) => {
    const options = { outcomes: { onMissing: 'deny', lifetimeMs: 120_000 } } as const
    const engine = await world.engine(texts(), options)
    const object = await through(engine, podWith([signed.tagged]), calls)
    world.registry.requests.length = 0
    for (const call of calls) {
      const validated = await engine.validate(requestFor(object), callFor(call))
      expect(validated.allowed).toBe(true)
    }
    expect(await through(engine, object, calls), 'reinvoked').toEqual(object)
    expect(world.registry.requests).toEqual([])
  })

  test('what is kept never outlives the seal it came in', async () => {
    const engine = await world.engine([policyText(world.keys), own()])
    const [first, second] = routes as [Partial<EngineCall>, Partial<EngineCall>]
    const once = await through(engine, podWith([signed.tagged]), [first])
    world.clock.now += 30_000
    const twice = await through(engine, once, [second])
    world.clock.now = START + 121_000
    const validated = await engine.validate(requestFor(twice), callFor(first))
    expect(validated.record.seal).toMatch(/^refused: .*expired/)
  })

  test('what a policy proved once is not kept when it does not any more', async () => {
    const text = [policyText(world.keys), policyText(world.keys, { name: 'second' })]
    const engine = await world.engine(text)
    const once = await through(engine, podWith([signed.tagged]), lists)
    const other = { ...once, spec: podWith([unsigned.tagged]).spec } as JsonObject
    const strict = await world.engine(text, {
      outcomes: { onMissing: 'deny', lifetimeMs: 120_000 },
    })
    const final = await through(strict, other, lists)
    for (const call of lists) {
      expect((await strict.validate(requestFor(final), callFor(call))).allowed).toBe(false)
    }
  })

  test('a seal of another object is kept by none', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const sealed = await through(engine, podWith([signed.tagged]), [{}])
    const metadata = { ...(sealed.metadata as JsonObject), name: 'another' }
    const moved = await through(engine, { ...sealed, metadata }, [{ scope: 'nivpol' }])
    expect(annotationsOf(moved)[SEAL_ANNOTATION]).toBeUndefined()
  })
})

describe('the strict hand-over (onMissing: deny)', () => {
  const strict = { outcomes: { onMissing: 'deny', lifetimeMs: 120_000 } } as const

  test('admits what mutate sealed, without a call', async () => {
    const engine = await world.engine([policyText(world.keys)], strict)
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated.allowed).toBe(true)
  })

  test.each([
    {
      name: 'no annotation at all',
      between: (object: JsonObject) => ({
        ...object,
        metadata: { name: 'web', namespace: 'shop' },
      }),
      message: 'annotations not present on object, image verification failed',
    },
    {
      name: 'only annotations of others',
      between: (object: JsonObject) => ({
        ...object,
        metadata: { name: 'web', namespace: 'shop', annotations: { team: 'a' } },
      }),
      message: 'kyverno.io/image-verification-outcomes annotation not present',
    },
    {
      name: 'the record without a seal',
      between: (object: JsonObject) => ({
        ...object,
        metadata: {
          name: 'web',
          namespace: 'shop',
          annotations: { [OUTCOMES_ANNOTATION]: '{}' },
        },
      }),
      message: 'Policy signed failed: policy not evaluated',
    },
    {
      name: 'an image that was swapped for another signed one',
      between: (object: JsonObject) => withImage(object, bundled.pinned),
      message: 'Policy signed failed: every image must be signed',
    },
  ])('$name is denied', async ({ between, message }) => {
    const engine = await world.engine([policyText(world.keys)], strict)
    const { validated } = await admit(engine, podWith([signed.tagged]), { between })
    expect(validated.allowed).toBe(false)
    expect(validated.status?.message).toBe(message)
  })
})

describe('actions, required evidence and digests', () => {
  test.each([
    { action: 'Audit', allowed: true, warnings: 0, audited: true },
    { action: 'Warn', allowed: true, warnings: 1, audited: true },
    { action: 'Deny, Warn', allowed: false, warnings: 1, audited: false },
  ])(
    '$action on an unsigned image: allowed $allowed',
    async ({ action, allowed, warnings, audited }) => {
      const spec = `  validationActions: [${action}]`
      const engine = await world.engine([policyText(world.keys, { spec })])
      const { validated } = await admit(engine, podWith([unsigned.tagged]))
      expect(validated.allowed).toBe(allowed)
      const own = validated.warnings.filter((text) => text.startsWith('Policy signed failed: '))
      expect(own).toHaveLength(warnings)
      expect('image-policy-findings' in validated.auditAnnotations).toBe(audited)
    },
  )

  test.each([
    {
      name: 'a policy that verifies nothing is denied',
      validations: '    - expression: "true"',
      message:
        /^Policy signed failed: image .* is not verified: no policy performed a signature or attestation check on it$/,
    },
    {
      name: 'a policy that tolerates failed verification is denied',
      validations:
        '    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.release]) >= 0)',
      message: /^Policy signed failed: image .* failed signature or attestation verification$/,
      warning: /^no signature found/,
    },
  ])('required: $name', async ({ validations, message, warning }) => {
    const engine = await world.engine([policyText(world.keys, { validations })])
    const { validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(validated.status?.message).toMatch(message)
    expect(validated.warnings).toEqual(warning ? [expect.stringMatching(warning)] : [])
  })

  test('required: another policy of the request may bring the evidence', async () => {
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'labels', validations: '    - expression: "true"' }),
    ])
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated.allowed).toBe(true)
  })

  test('verifyDigest: a tag that nobody pinned is denied before any call', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const validated = await engine.validate(requestFor(podWith([signed.tagged])), callFor())
    expect(validated.status?.message).toBe(
      `Policy signed failed: image ${signed.tagged} does not have a digest`,
    )
    expect(world.registry.requests).toEqual([])
  })

  test('mutateDigest false with verifyDigest false verifies the tag live', async () => {
    const spec = '  validationConfigurations: {mutateDigest: false, verifyDigest: false}'
    const engine = await world.engine([policyText(world.keys, { spec })])
    const { mutated, validated } = await admit(engine, podWith([signed.tagged]))
    expect(mutated.patch.some(({ path }) => path.startsWith('/spec'))).toBe(false)
    expect(validated.allowed).toBe(true)
  })

  test('counts attestors: two of two is met by an image both signed and not by one', async () => {
    const validations =
      '    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.release, attestors.audit]) == 2)'
    const text = policyText(world.keys, { attestors: ['release', 'audit'], validations })
    const engine = await world.engine([text])
    expect((await admit(engine, podWith([twice.tagged]))).validated.allowed).toBe(true)
    expect((await admit(engine, podWith([signed.tagged]))).validated.allowed).toBe(false)
  })
})

describe('when the outside fails', () => {
  test('a registry that is down leaves the tag unpinned, says so, and validate denies', async () => {
    world.registry.faults.add({ kind: 'down' })
    const engine = await world.engine([policyText(world.keys)])
    const { mutated, validated } = await admit(engine, podWith([signed.tagged]))
    expect(mutated.allowed).toBe(true)
    expect(mutated.warnings[0]).toMatch(
      /^Policy signed error: failed to update digest: failed to resolve digest for image .*connection failed/,
    )
    expect(validated.status?.message).toMatch(/does not have a digest$/)
  })

  test('a registry that serves other bytes for a digest is not believed', async () => {
    world.registry.faults.add({ kind: 'wrong-bytes' }, { on: /manifests\/sha256:/ })
    const engine = await world.engine([policyText(world.keys)])
    const validated = await engine.validate(requestFor(podWith([signed.pinned])), callFor())
    expect(validated.allowed).toBe(false)
    expect(validated.status?.message).toMatch(/content hashes to sha256:/)
  })

  test('a request that is already over is denied, not admitted', async () => {
    const engine = await world.engine([policyText(world.keys)])
    const signal = AbortSignal.abort()
    const validated = await engine.validate(
      requestFor(podWith([signed.pinned])),
      callFor({ signal }),
    )
    expect(validated.allowed).toBe(false)
    expect(validated.status?.message).toMatch(/before the deadline/)
  })

  test('failurePolicy Ignore does not admit what could not be verified', async () => {
    world.registry.faults.add({ kind: 'down' })
    const spec = '  failurePolicy: Ignore'
    const engine = await world.engine([policyText(world.keys, { spec })])
    const validated = await engine.validate(requestFor(podWith([signed.pinned])), callFor())
    expect(validated.allowed).toBe(false)
  })

  test('DELETE and CONNECT get no patch', async () => {
    const engine = await world.engine([policyText(world.keys)])
    for (const operation of ['DELETE', 'CONNECT'] as const) {
      const request = { ...requestFor(podWith([signed.tagged])), operation }
      expect((await engine.mutate(request, callFor())).patch).toEqual([])
    }
  })
})

describe('several policies', () => {
  const unmet = (name: string, spec = '') =>
    policyText(world.keys, {
      name,
      spec,
      validations: `    - {expression: 'false', message: ${name} says no}`,
    })

  test('speak in the order of their names, whatever the order of their documents', async () => {
    const engine = await world.engine(['c', 'a', 'b'].map((name) => unmet(name)))
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated.status?.message).toBe(
      'Policy a failed: a says no; Policy b failed: b says no; Policy c failed: c says no',
    )
    expect(validated.status?.details?.causes.map(({ message }) => message)).toEqual(
      ['a', 'b', 'c'].map((name) => `Policy ${name} failed: ${name} says no`),
    )
  })

  test('each act by their own actions', async () => {
    const engine = await world.engine([
      unmet('audits', '  validationActions: [Audit]'),
      unmet('warns', '  validationActions: [Warn]'),
      policyText(world.keys),
    ])
    const { validated } = await admit(engine, podWith([signed.tagged]))
    expect(validated).toMatchObject({
      allowed: true,
      warnings: ['Policy warns failed: warns says no'],
      auditAnnotations: {
        'image-policy-findings':
          'Policy audits failed: audits says no; Policy warns failed: warns says no',
      },
    })
  })

  test('that the route does not name are not asked', async () => {
    const engine = await world.engine([unmet('strict'), policyText(world.keys)])
    const call = { policies: ['signed'] }
    const { validated } = await admit(engine, podWith([signed.tagged]), {
      mutate: call,
      validate: call,
    })
    expect(validated.allowed).toBe(true)
  })
})

describe('match conditions that cannot be evaluated', () => {
  const broken = (failurePolicy: string) =>
    policyText(world.keys, {
      spec: `  failurePolicy: ${failurePolicy}
  matchConditions:
    - {name: broken, expression: object.metadata.labels.team == 'a'}`,
    })

  test('deny under Fail, with nothing looked up', async () => {
    const engine = await world.engine([broken('Fail')])
    const { mutated, validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(mutated.patch.some(({ path }) => path.startsWith('/spec'))).toBe(false)
    expect(validated.status?.message).toMatch(
      /^Policy signed error: failed to evaluate policy: match condition broken: /,
    )
    expect(world.registry.requests).toEqual([])
  })

  test('admit under Ignore, with a warning, an audit annotation and no fact in the seal', async () => {
    const engine = await world.engine([broken('Ignore')])
    const { final, validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(annotationsOf(final)).toEqual({})
    expect(validated.allowed).toBe(true)
    expect(validated.warnings).toEqual([
      expect.stringMatching(/^Policy signed not applied: failed to evaluate policy: /),
    ])
    expect(validated.auditAnnotations['image-policy-failed-open']).toBe(validated.warnings[0])
    expect(validated.record.policies).toMatchObject([{ policy: 'signed', status: 'failed-open' }])
  })

  test('leave the other policies of the request as they are', async () => {
    const open = broken('Ignore').replace('name: signed', 'name: open')
    const engine = await world.engine([open, policyText(world.keys)])
    const { validated } = await admit(engine, podWith([unsigned.tagged]))
    expect(validated.allowed).toBe(false)
  })
})

test('an unexpected fault denies, and its text stays in the log', async () => {
  const now = () => {
    throw new TypeError('something internal')
  }
  const engine = await world.engine([policyText(world.keys)], { now })
  const annotations = { [SEAL_ANNOTATION]: 'v1.test.e30.AAAA' }
  const object = podWith([signed.pinned], { name: 'web', namespace: 'shop', annotations })
  const mutated = await engine.mutate(requestFor(object), callFor())
  const validated = await engine.validate(requestFor(object), callFor())
  expect(mutated.allowed).toBe(true)
  expect(annotationsOf(patched(object, mutated))).toEqual({})
  expect(validated.status).toMatchObject({
    code: 500,
    message: 'image verification failed internally',
  })
  for (const { record } of [mutated, validated]) {
    expect(record).toMatchObject({
      error: 'INTERNAL',
      message: expect.stringContaining('something internal'),
    })
  }
  expect(mutated.warnings).toEqual(['images were not pinned: image verification failed internally'])
})

test('fifty reviews at once never see each other', async () => {
  const engine = await world.engine([policyText(world.keys)])
  const rows = Array.from(
    { length: 50 },
    (_, index) => [signed, unsigned, foreign, bundled][index % 4] as PushedImage,
  )
  const verdicts = await Promise.all(
    rows.map(async (image, index) => {
      const metadata = { name: `pod-${index}`, namespace: `ns-${index % 3}` }
      const { validated } = await admit(engine, podWith([image.tagged], metadata))
      return validated.allowed
    }),
  )
  expect(verdicts).toEqual(rows.map((image) => image === signed || image === bundled))
})
