import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RegistryFault } from '#functions/local/registry-faults.ts'
import { toReview } from '#shared/admission/response.ts'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import type { Live } from '#shared/engine/inquiry.ts'
import { AdmissionError } from '#shared/errors.ts'
import { isJsonObject, type JsonValue } from '#shared/json.ts'
import { FACT_TTL_MS, MAX_ANNOTATIONS_BYTES, MAX_HOST_CALLS } from '#shared/limits.ts'
import { OUTCOMES_ANNOTATION, SEAL_ANNOTATION } from '#shared/outcome/annotation.ts'
import type { FetchPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import type { RegistrySession } from '#shared/registry/types.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import type { Verification } from '#shared/signature/types.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import {
  admit,
  callFor,
  createWorld,
  type KeyName,
  NO_KMS,
  type PushedImage,
  patched,
  podWith,
  policyText,
  requestFor,
  START,
  type World,
} from '#test/fakes/world.ts'

/** Attacks on the whole flow. Every row is one that must not get an image in. */

let world: World
beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.close())
beforeEach(() => world.reset())

const UNPINNED =
  '  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}'
const KEYS: KeyName[] = ['release', 'audit', 'other']
const PINNED = (name: string) => `registry.example/${name}@sha256:${'a'.repeat(64)}`

type Answer = 'yes' | 'no' | 'unknown'

/** A registry where every image exists, and a verifier that says of (image, attestor) what it is told to. */
function knowing(answerFor: (image: string, attestor: string) => Answer): Partial<{
  live: () => Promise<Live>
}> {
  const session = {
    calls: 0,
    resolve: async (reference) => ({
      reference,
      repository: { host: 'registry.example', repository: reference.repository },
      descriptor: { mediaType: '', digest: `sha256:${'a'.repeat(64)}`, size: 1 },
    }),
  } as Partial<RegistrySession> as RegistrySession
  const verdicts: Record<Answer, Verification> = {
    yes: { status: 'verified', signer: 'somebody', candidates: [] },
    no: { status: 'rejected', reason: 'no signature', candidates: [] },
    unknown: {
      status: 'inconclusive',
      error: new AdmissionError('KMS_UNAVAILABLE', 'KMS is down'),
      candidates: [],
    },
  }
  const live: Live = {
    registry: { session: () => session },
    verifier: {
      kmsCalls: 0,
      recall: () => undefined,
      verifyImage: async ({ reference }, { name }) =>
        verdicts[answerFor(reference.repository, name)],
      recallAttestation: () => undefined,
      verifyAttestation: () => Promise.reject(new TypeError('asked for an attestation')),
      readPayload: () => Promise.reject(new TypeError('asked for a payload')),
    },
  }
  return { live: async () => live }
}

/** The verdict on a Pod of the images `app` and `sidecar` under one validation. */
async function verdictOf(
  expression: string,
  answerFor: (image: string, attestor: string) => Answer,
): Promise<{ allowed: boolean; message: string | undefined }> {
  const validations = `    - expression: >-\n        ${expression}`
  const text = policyText(world.keys, { attestors: KEYS, validations, spec: UNPINNED })
  const engine = await world.engine([text], knowing(answerFor))
  const pod = podWith([PINNED('app'), PINNED('sidecar')])
  const { allowed, status } = await engine.validate(requestFor(pod), callFor())
  return { allowed, message: status?.message }
}

const A = `verifyImageSignatures(images.containers[0], [attestors.release, attestors.audit, attestors.other])`
const B = `verifyImageSignatures(images.containers[1], [attestors.release, attestors.audit, attestors.other])`
const each = (term: string) =>
  `images.containers.all(i, ${term.replaceAll('#', 'verifyImageSignatures(i, [attestors.release, attestors.audit, attestors.other])')})`

describe('a signature that could not be checked', () => {
  /** `release` verifies, `audit` cannot be told, `other` did not sign. */
  const half = (_: string, attestor: string): Answer =>
    attestor === 'release' ? 'yes' : attestor === 'audit' ? 'unknown' : 'no'

  test.each([
    { name: 'is not needed beside one that is enough', expression: each('# > 0') },
    {
      name: 'is not needed in a map either',
      expression: `images.containers.map(i, verifyImageSignatures(i, [attestors.release, attestors.audit])).all(e, e > 0)`,
    },
    { name: 'is outvoted by ||', expression: `true || ${A} == 0` },
  ])('$name', async ({ expression }) => {
    expect(await verdictOf(expression, half)).toEqual({ allowed: true, message: undefined })
  })

  test.each([
    { name: 'none of these keys', expression: `${A} == 0` },
    { name: 'fewer than two', expression: each('# < 2') },
    { name: 'exactly one', expression: each('# == 1') },
    { name: 'not two', expression: each('# != 2') },
    { name: 'no more than one, from the other side', expression: each('1 >= #') },
    {
      name: 'a negation',
      expression: `!images.containers.exists(i, verifyImageSignatures(i, [attestors.release, attestors.audit]) > 1)`,
    },
    { name: 'two images alike', expression: `${A} == ${B}` },
    { name: 'one image no better than the other', expression: `${A} >= ${B}` },
    { name: 'a condition of a ternary', expression: `${A} > 1 ? false : true` },
    { name: 'a count as an index', expression: `[false, true, false, false][${A}]` },
    {
      name: 'a count of images',
      expression: `images.containers.filter(i, verifyImageSignatures(i, [attestors.release, attestors.audit]) > 1).size() == 0`,
    },
    {
      name: 'exactly one image',
      expression: `${each('# > 0')} && !images.containers.exists_one(i, verifyImageSignatures(i, [attestors.release, attestors.audit]) > 1)`,
    },
    { name: 'membership in a list', expression: each('# in [1]') },
    { name: 'a text', expression: each('string(#) == "1"') },
    { name: 'arithmetic', expression: each('2 - # > 0') },
  ])('never lets "$name" pass', async ({ expression }) => {
    const { allowed, message } = await verdictOf(expression, half)
    expect(allowed).toBe(false)
    expect(message).toMatch(
      /^Policy signed error: failed to evaluate policy: (could not verify image|.*composited variable)/,
    )
  })

  test('counts like a bad one where even a good one would not do', async () => {
    expect(await verdictOf(each('# > 2'), half)).toEqual({
      allowed: false,
      message: 'Policy signed failed: CEL expression validation failed at index 0',
    })
  })

  test('never passes a policy that some outcome of the check would have failed', async () => {
    const comparison = fc
      .tuple(
        fc.constantFrom(A, B, `verifyImageSignatures(images.containers[0], [attestors.audit])`),
        fc.constantFrom('>', '>=', '<', '<=', '==', '!='),
        fc.constantFrom('0', '1', '2', '3', B),
      )
      .map((parts) => `(${parts.join(' ')})`)
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 2 },
        comparison,
        tie('expression').map((inner) => `!${inner}`),
        fc
          .tuple(tie('expression'), fc.constantFrom('&&', '||'), tie('expression'))
          .map((parts) => `(${parts.join(' ')})`),
        fc
          .tuple(tie('expression'), tie('expression'), tie('expression'))
          .map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
        comparison.map(
          (term) => `images.containers.all(i, ${term.replaceAll('images.containers[0]', 'i')})`,
        ),
        comparison.map(
          (term) => `images.containers.exists(i, ${term.replaceAll('images.containers[0]', 'i')})`,
        ),
      ),
    }))
    const answers = fc.array(fc.constantFrom<Answer>('yes', 'no', 'unknown'), {
      minLength: 6,
      maxLength: 6,
    })
    const lookIn = (table: readonly Answer[]) => (image: string, attestor: string) =>
      table[(image === 'app' ? 0 : 3) + KEYS.indexOf(attestor as KeyName)] ?? 'no'
    await fc.assert(
      fc.asyncProperty(expression, answers, async (source, table) => {
        if (!(await verdictOf(source, lookIn(table))).allowed) return
        for (const possible of outcomes(table)) {
          expect((await verdictOf(source, lookIn(possible))).allowed).toBe(true)
        }
      }),
      { numRuns: 150 },
    )
  })
})

/** Every way in which what is unknown may turn out. */
function outcomes(table: readonly Answer[]): Answer[][] {
  return table.reduce<Answer[][]>(
    (rows, answer) =>
      rows.flatMap((row) =>
        (answer === 'unknown' ? (['yes', 'no'] as const) : [answer]).map((each) => [...row, each]),
      ),
    [[]],
  )
}

describe('an unsigned image is denied however the policy is written', () => {
  const V = 'verifyImageSignatures(images.containers[0], [attestors.release])'
  test.each([
    'has(variables.v) ? variables.v > 0 : true',
    '!has(variables.v) || variables.v > 0',
    'variables.?v.orValue(1) > 0',
    'variables.?v.hasValue() ? variables.v > 0 : true',
    `optional.of(${V}).orValue(1) > 0`,
    `[?optional.of(${V})].size() == 0 || ${V} > 0`,
    `optional.ofNonZeroValue(${V}).hasValue() || ${V} > 0`,
    `{"a": ${V}}.?a.orValue(1) > 0`,
    `[${V}][?0].orValue(1) > 0`,
    `cel.bind(x, ${V}, x > 0)`,
    `[1].exists_one(i, ${V} > 0)`,
    `[1,2].filter(i, ${V} > 0).size() > 0`,
    `[1,2].map(i, ${V} > 0).exists(e, e)`,
    `[1,2].all(i, j, ${V} > 0)`,
    `{"a": 1}.transformMap(k, v, ${V}).all(k, k == "a" && ${V} > 0)`,
    `[${V}].sum() > 0`,
    `[${V}].max() > 0`,
    `math.greatest(${V}, 0) > 0`,
    `"%d".format([${V}]) == "1"`,
    `string(${V}) == "1"`,
    `dyn(${V}) == 1`,
    `${V} in [1, 2]`,
    `${V} in {1: true}`,
    `[1].map(i, ${V}) == [1]`,
    `(${V} > 0) != false`,
    `!(${V} < 1)`,
    `image.GetMetadata(images.containers[0]).digest != "" && ${V} > 0`,
  ])('%s', async (expression) => {
    const { pinned } = await world.push('written/unsigned', [])
    const spec = `  validationConfigurations: {required: false}
  variables:
    - {name: v, expression: '${V}'}`
    const validations = `    - expression: >-\n        ${expression}`
    const text = policyText(world.keys, { spec, validations })
    for (const state of ['up', 'down in part', 'too slow']) {
      const engine = await world.engine([text])
      if (state === 'down in part') {
        world.registry.faults.add({ kind: 'status', status: 503 }, { on: /\.sig|referrers/ })
      }
      const signal = state === 'too slow' ? AbortSignal.abort() : new AbortController().signal
      const validated = await engine.validate(requestFor(podWith([pinned])), callFor({ signal }))
      expect({ state, allowed: validated.allowed }).toEqual({ state, allowed: false })
    }
  })
})

describe('none of these keys, as a policy,', () => {
  const text = () => {
    const validations = `    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.other]) == 0)`
    const spec = '  validationConfigurations: {required: false}'
    return policyText(world.keys, { attestors: ['other'], validations, spec })
  }

  test.each<{ name: string; fault: RegistryFault; on: RegExp }>([
    {
      name: 'that hides the image',
      fault: { kind: 'status', status: 404 },
      on: /manifests\/sha256:/,
    },
    { name: 'that wants a login', fault: { kind: 'status', status: 401 }, on: /./ },
    { name: 'that refuses', fault: { kind: 'status', status: 403 }, on: /./ },
    { name: 'that throttles', fault: { kind: 'status', status: 429 }, on: /\.sig/ },
    { name: 'behind a proxy that gives up', fault: { kind: 'status', status: 408 }, on: /\.sig/ },
    { name: 'that is down in part', fault: { kind: 'status', status: 500 }, on: /blobs/ },
    { name: 'that leads in a circle', fault: { kind: 'redirect-loop' }, on: /blobs/ },
    { name: 'that has other bytes', fault: { kind: 'wrong-bytes' }, on: /blobs/ },
  ])('is not passed by a registry $name', async ({ fault, on }) => {
    const { pinned } = await world.push('banned/app', ['other'])
    const engine = await world.engine([text()])
    world.registry.faults.add(fault, { on })
    const validated = await engine.validate(requestFor(podWith([pinned])), callFor())
    expect(validated.status?.message).toMatch(/^Policy signed error: .*could not verify image /)
  })

  test('is passed by an image that none of them signed', async () => {
    const { pinned } = await world.push('banned/clean', ['release'])
    const engine = await world.engine([text()])
    expect((await engine.validate(requestFor(podWith([pinned])), callFor())).allowed).toBe(true)
  })
})

describe('under the strict hand-over (onMissing: deny)', () => {
  const strict = { outcomes: { onMissing: 'deny', lifetimeMs: 120_000 } } as const

  test('what the seal does not cover is no proof that nobody signed', async () => {
    const good = await world.push('strict/good', ['release'])
    const banned = await world.push('strict/banned', ['release', 'other'])
    const validations = `    - expression: >-
        images.containers.all(i, verifyImageSignatures(i, [attestors.other]) == 0)
      message: images of the banned key stay out`
    const spec = '  validationConfigurations: {required: false}'
    const text = policyText(world.keys, { attestors: ['other'], validations, spec })
    const engine = await world.engine([text], strict)
    const { validated } = await admit(engine, podWith([good.tagged]), {
      between: (object) => ({
        ...object,
        spec: { containers: [{ name: 'c0', image: banned.pinned }] },
      }),
    })
    expect(validated.status?.message).toBe(
      `Policy signed error: failed to evaluate policy: image ${banned.pinned} is not covered by the sealed outcomes of the mutate phase`,
    )
  })

  test('a policy of any of two keys is satisfied by the one that is sealed', async () => {
    const good = await world.push('strict/any', ['release'])
    const text = policyText(world.keys, { attestors: ['release', 'audit'] })
    const engine = await world.engine([text], strict)
    const { validated } = await admit(engine, podWith([good.tagged]))
    expect(validated.allowed).toBe(true)
  })

  test('a policy that pins nothing is sealed as well, and without that lets nothing in', async () => {
    const good = await world.push('strict/pinned', ['release'])
    const spec = '  validationConfigurations: {mutateDigest: false}'
    const engine = await world.engine([policyText(world.keys, { spec })], strict)
    const pod = podWith([good.pinned])
    expect((await admit(engine, pod)).validated.allowed).toBe(true)
    const unsealed = await engine.validate(requestFor(pod), callFor())
    expect(unsealed.allowed).toBe(false)
  })
})

describe('another spelling of an image', () => {
  const D = `@sha256:${'a'.repeat(64)}`
  const reference = (kind: 'glob' | 'expression', text: string) => ({
    name: text,
    spec: `  matchImageReferences:\n    - ${kind}: >-\n        ${text}`,
  })
  const glob = (text: string) => reference('glob', text)
  const expression = (text: string) => reference('expression', text)

  test.each([
    { rule: glob('ghcr.io/acme/*'), image: `GHCR.IO/acme/app:1${D}` },
    { rule: glob('ghcr.io/acme/*'), image: `ghcr.io:443/acme/app:1${D}` },
    { rule: glob('ghcr.io/acme/*'), image: `Ghcr.Io:443/acme/app:1${D}` },
    { rule: glob('ghcr.io:443/acme/*'), image: `ghcr.io/acme/app:1${D}` },
    { rule: glob('ghcr.io/acme/app'), image: `ghcr.io/acme/app:latest${D}` },
    { rule: glob('ghcr.io/acme/app:latest'), image: `ghcr.io/acme/app${D}` },
    { rule: glob('ghcr.io/acme/app:1'), image: `ghcr.io/acme/app:1${D}` },
    { rule: glob('docker.io/*'), image: `nginx:1${D}` },
    { rule: glob('docker.io/*'), image: `org/app:1${D}` },
    { rule: glob('docker.io/nginx*'), image: `library/nginx:1${D}` },
    { rule: glob('docker.io/*'), image: `index.docker.io/org/app:1${D}` },
    { rule: glob('docker.io/*'), image: `registry-1.docker.io/org/app:1${D}` },
    { rule: glob('docker.io/*'), image: `registry.hub.docker.com/org/app:1${D}` },
    { rule: glob('docker.io/*'), image: `docker.io:443/org/app:1${D}` },
    { rule: glob('docker.io/*'), image: `org/app@sha512:${'a'.repeat(128)}` },
    { rule: glob('ghcr.io/*'), image: `GHCR.IO/acme/app@sha512:${'a'.repeat(128)}` },
    { rule: glob('ghcr.io/*'), image: `ghcr.io/acme/app@sha256:${'A'.repeat(64)}` },
    { rule: glob('ghcr.io/*'), image: `ghcr.io/acme/app${D}${D}` },
    { rule: glob('ghcr.io/*'), image: `ghcr.io/${'a'.repeat(900)}:1${D}` },
    { rule: glob('ghcr.io/*'), image: `quay.io/${'a'.repeat(900)}:1${D}` },
    { rule: glob('org/*'), image: `docker.io/org/app:1${D}` },
    { rule: glob('nginx:*'), image: `docker.io/library/nginx:1${D}` },
    { rule: glob('nginx'), image: `library/nginx:latest${D}` },
    { rule: expression('ref.startsWith("ghcr.io/")'), image: `GHCR.IO/acme/app:1${D}` },
    { rule: expression('ref.startsWith("ghcr.io/")'), image: `ghcr.io:443/acme/app:1${D}` },
    {
      rule: expression('parseImageReference(ref).registry() == "ghcr.io"'),
      image: `Ghcr.io:443/acme/app:1${D}`,
    },
    {
      rule: expression('parseImageReference(ref).registry() == "index.docker.io"'),
      image: `org/app:1${D}`,
    },
    { rule: expression('ref == "ghcr.io/acme/app:1"'), image: `ghcr.io/acme/app:1${D}` },
    { rule: expression('ref.endsWith("/app")'), image: `ghcr.io/acme/app${D}` },
    { rule: expression('!ref.startsWith("quay.io/")'), image: `QUAY.IO/acme/app:1${D}` },
  ])('does not get $image around $rule.name', async ({ rule, image }) => {
    const engine = await world.engine(
      [policyText(world.keys, { spec: rule.spec })],
      knowing(() => 'no'),
    )
    const validated = await engine.validate(requestFor(podWith([image])), callFor())
    expect(validated.allowed).toBe(false)
  })

  test.each([
    { rule: glob('ghcr.io/acme/*'), image: `ghcr.io/other/app:1${D}` },
    { rule: glob('ghcr.io/acme/app:1'), image: `ghcr.io/acme/app:2${D}` },
    { rule: glob('ghcr.io/acme/app'), image: `ghcr.io/acme/app:1${D}` },
    { rule: glob('docker.io/*'), image: `ghcr.io/org/app:1${D}` },
    { rule: glob('docker.io/*'), image: `docker.io.example/org/app:1${D}` },
    { rule: glob('library/*'), image: `ghcr.io/library/app:1${D}` },
    { rule: glob('ghcr.io/*'), image: `ghcr.io:8443/org/app:1${D}` },
    { rule: expression('!ref.startsWith("quay.io/")'), image: `quay.io/acme/app:1${D}` },
    { rule: expression('!ref.startsWith("docker.io/")'), image: `docker.io/library/app:1${D}` },
  ])('is another image for $rule.name where it is $image', async ({ rule, image }) => {
    const engine = await world.engine(
      [policyText(world.keys, { spec: rule.spec })],
      knowing(() => 'no'),
    )
    const validated = await engine.validate(requestFor(podWith([image])), callFor())
    expect(validated.allowed).toBe(true)
  })

  test('is not made by pinning: a tag that a policy names is still its own afterwards', async () => {
    const unsigned = await world.push('spelling/unsigned', [])
    for (const rule of [glob(unsigned.tagged), expression(`ref == "${unsigned.tagged}"`)]) {
      const engine = await world.engine([policyText(world.keys, { spec: rule.spec })])
      const { final, validated } = await admit(engine, podWith([unsigned.tagged]))
      expect(final.spec).toMatchObject({ containers: [{ image: unsigned.pinned }] })
      expect(validated.status?.message).toBe('Policy signed failed: every image must be signed')
    }
  })
})

describe('what is remembered between requests', () => {
  test('ends when it ends, however often and by whatever name it is asked for', async () => {
    const { pinned, tagged, digest } = await world.push('memory/app', ['release'])
    const untagged = `${tagged.replace(/:1\.0$/, '')}@${digest}`
    const engine = await world.engine([policyText(world.keys)])
    const admits = async (image: string) =>
      (await engine.validate(requestFor(podWith([image])), callFor())).allowed
    expect(await admits(pinned)).toBe(true)
    world.registry.faults.add({ kind: 'status', status: 404 }, { on: /\.sig|referrers/ })
    world.clock.now = START + FACT_TTL_MS - 1
    expect(await admits(pinned)).toBe(true)
    expect(await admits(untagged)).toBe(true)
    world.clock.now = START + FACT_TTL_MS
    expect(await admits(pinned)).toBe(false)
    expect(await admits(untagged)).toBe(false)
  })

  test('is not shared between clusters, attestors or repositories', async () => {
    const { pinned } = await world.push('memory/mine', ['release'])
    const copied = await world.push('memory/copied', [])
    const engine = await world.engine([
      policyText(world.keys),
      policyText(world.keys, { name: 'audited', attestors: ['audit'] }),
    ])
    const calls = async (image: string, cluster: string, policy: string) => {
      world.registry.requests.length = 0
      const call = callFor({ cluster, policies: [policy] })
      const { allowed } = await engine.validate(requestFor(podWith([image])), call)
      return { allowed, asked: world.registry.requests.length > 0 }
    }
    expect(await calls(pinned, 'prod', 'signed')).toEqual({ allowed: true, asked: true })
    expect(await calls(pinned, 'prod', 'signed')).toEqual({ allowed: true, asked: false })
    expect(await calls(pinned, 'staging', 'signed')).toEqual({ allowed: true, asked: true })
    expect(await calls(pinned, 'prod', 'audited')).toEqual({ allowed: false, asked: true })
    expect(await calls(copied.pinned, 'prod', 'signed')).toEqual({ allowed: false, asked: true })
  })

  test('knows nothing of a tag, which may move', async () => {
    const { tagged, digest } = await world.push('memory/moving', ['release'])
    const other = await world.push('memory/moved', [])
    const engine = await world.engine([policyText(world.keys, { spec: UNPINNED })])
    const admits = async () =>
      (await engine.validate(requestFor(podWith([tagged])), callFor())).allowed
    expect(await admits()).toBe(true)
    world.registry.faults.add(
      { kind: 'moving-tag', digests: [other.digest, digest] },
      { on: /memory\/moving\/manifests\/1\.0/ },
    )
    expect(await admits()).toBe(false)
  })
})

describe('more of everything than anybody needs', () => {
  const many = (count: number) =>
    Array.from(
      { length: count },
      (_, n) => `registry.example/${'x'.repeat(200)}${n}@sha256:${'a'.repeat(64)}`,
    )

  test('more checks than one request may ask for are refused, and not made', async () => {
    let made = 0
    const counting = knowing(() => {
      made++
      return 'yes'
    })
    const texts = ['Fail', 'Ignore'].map((failurePolicy) => {
      const spec = `  failurePolicy: ${failurePolicy}`
      return policyText(world.keys, { name: failurePolicy.toLowerCase(), attestors: KEYS, spec })
    })
    const engine = await world.engine(texts, counting)
    const { status } = await engine.validate(requestFor(podWith(many(1000))), callFor())
    expect(status?.message).toBe(
      `Policy ignore error: failed to evaluate policy: more than ${MAX_HOST_CALLS} checks of images for one request`,
    )
    // Both policies ask the same attestors about the same images, and that is found out once.
    expect(made).toBe(3 * 1000)
  })

  test.each<Answer>(['no', 'unknown'])(
    'a thousand images of which every check says "%s" fit into an answer and a log line',
    async (answer) => {
      const attestors = KEYS
      const engine = await world.engine(
        [policyText(world.keys, { attestors })],
        knowing(() => answer),
      )
      for (const phase of ['mutate', 'validate'] as const) {
        const decision = await engine[phase](requestFor(podWith(many(1000))), callFor())
        expect(decision.allowed).toBe(phase === 'mutate')
        const record = JSON.stringify(decision.record)
        expect(record.length).toBeLessThan(256 * 1024)
        expect(decision.record.imagesOmitted).toBe(answer === 'no' ? 950 : undefined)
        expect(JSON.stringify(toReview('uid', decision, phase)).length).toBeLessThan(512 * 1024)
      }
    },
  )
})

describe('an object of any shape', () => {
  const GOOD = PINNED('signed')
  const BAD = PINNED('unsigned')
  const bySigned = knowing((image) => (image === 'signed' ? 'yes' : 'no'))
  const listNames = ['containers', 'initContainers', 'ephemeralContainers'] as const

  /** True when nothing but the signed image would run. */
  function isHarmless(object: JsonObject): boolean {
    const spec = object.spec as { [key: string]: JsonValue }
    return listNames.every((name) => {
      const list = spec[name] ?? (name === 'containers' ? undefined : [])
      return (
        Array.isArray(list) &&
        list.every((item) => isJsonObject(item ?? undefined) && (item as JsonObject).image === GOOD)
      )
    })
  }

  test('gets in only when every container runs the signed image, and every patch applies', async () => {
    const engine = await world.engine([policyText(world.keys)], bySigned)
    const junk = fc.jsonValue({ maxDepth: 2 }).map((value) => value as JsonValue)
    const image = fc.oneof(
      { weight: 6, arbitrary: fc.constant<JsonValue>(GOOD) },
      fc.constantFrom<JsonValue>(BAD, '', ' ', GOOD.toUpperCase(), ` ${GOOD}`, [GOOD], {
        image: GOOD,
      }),
      junk,
    )
    const container = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({ name: fc.constantFrom('a', 'b'), image }) as fc.Arbitrary<JsonValue>,
      },
      junk,
    )
    const list = fc.oneof(
      { weight: 8, arbitrary: fc.array(container, { maxLength: 3 }) as fc.Arbitrary<JsonValue> },
      junk,
    )
    const spec = fc.record(
      {
        containers: list,
        initContainers: list,
        ephemeralContainers: list,
        Containers: list,
        __proto__: list,
      },
      { requiredKeys: [] },
    )
    const metadata = fc.record(
      { name: fc.constant('web'), namespace: fc.constant('shop'), labels: junk, annotations: junk },
      { requiredKeys: [] },
    )
    const pod = fc.record({
      metadata: fc.oneof(metadata, junk),
      spec: fc.oneof({ weight: 9, arbitrary: spec }, junk),
    })
    await fc.assert(
      fc.asyncProperty(pod, async (fields) => {
        const object = { apiVersion: 'v1', kind: 'Pod', ...fields } as JsonObject
        const request = { ...requestFor(podWith([GOOD])), object }
        const mutated = await engine.mutate(request, callFor())
        expect(mutated.allowed).toBe(true)
        const final = patched(object, mutated)
        const { allowed, status } = await engine.validate({ ...request, object: final }, callFor())
        if (allowed) expect(isHarmless(object)).toBe(true)
        else expect(status?.message).toMatch(/^Policy signed (failed|error): ./)
      }),
      { numRuns: 500 },
    )
  })

  test.each<{ name: string; object: JsonObject }>([
    ...listNames.map((name) => ({
      name: `an unsigned image among ${name}`,
      object: {
        ...podWith([GOOD]),
        spec: { containers: [{ name: 'a', image: GOOD }], [name]: [{ name: 'b', image: BAD }] },
      },
    })),
    {
      name: 'an unsigned image under the name of a signed one',
      object: {
        ...podWith([]),
        spec: {
          containers: [
            { name: 'a', image: GOOD },
            { name: 'a', image: BAD },
          ],
        },
      },
    },
    { name: 'no list of containers', object: { ...podWith([]), spec: {} } },
    { name: 'no spec', object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } } },
    {
      name: 'a container without an image',
      object: { ...podWith([]), spec: { containers: [{ name: 'a' }] } },
    },
    {
      name: 'an object for a list',
      object: { ...podWith([]), spec: { containers: { 0: { name: 'a', image: GOOD } } } },
    },
    {
      name: 'null for a list',
      object: {
        ...podWith([GOOD]),
        spec: { containers: [{ name: 'a', image: GOOD }], initContainers: null },
      },
    },
  ])('$name is denied', async ({ object }) => {
    const engine = await world.engine([policyText(world.keys)], bySigned)
    const request = { ...requestFor(podWith([GOOD])), object }
    expect((await engine.validate(request, callFor())).allowed).toBe(false)
  })

  test.each([
    { name: 'pods/ephemeralcontainers', subResource: 'ephemeralcontainers', allowed: false },
    { name: 'pods/status, which the policy is not about', subResource: 'status', allowed: true },
  ])('$name: allowed $allowed', async ({ subResource, allowed }) => {
    const engine = await world.engine([policyText(world.keys)], bySigned)
    const spec = {
      containers: [{ name: 'a', image: GOOD }],
      ephemeralContainers: [{ name: 'b', image: BAD }],
    }
    const object = { ...podWith([]), spec }
    const request = {
      ...requestFor(object, { operation: 'UPDATE', oldObject: object }),
      subResource,
    }
    const { patch } = await engine.mutate(request, callFor())
    expect(patch).toEqual([])
    expect((await engine.validate(request, callFor())).allowed).toBe(allowed)
  })

  test.each(['DELETE', 'CONNECT'] as const)(
    '%s is not made to pass by having no object',
    async (operation) => {
      const text = policyText(world.keys).replace('[CREATE, UPDATE]', '["*"]')
      const engine = await world.engine([text], bySigned)
      const old = podWith([BAD])
      const request = {
        ...requestFor(null, { operation, oldObject: old }),
        ...(operation === 'CONNECT' ? { object: { kind: 'PodExecOptions' }, oldObject: null } : {}),
      }
      expect((await engine.mutate(request, callFor())).patch).toEqual([])
      expect((await engine.validate(request, callFor())).allowed).toBe(false)
    },
  )

  test('an image volume is not read by the lists of containers, but by an extractor of the policy', async () => {
    const spec = `  images:
    - name: volumes
      expression: object.spec.?volumes.orValue([]).filter(v, has(v.image)).map(v, v.image.reference)`
    const validations = `    - expression: images.all(name, list, list.all(i, verifyImageSignatures(i, [attestors.release]) > 0))`
    const volumes = [
      { name: 'v', image: { reference: BAD } },
      { name: 'w', emptyDir: {} },
    ]
    const object = { ...podWith([]), spec: { containers: [{ name: 'a', image: GOOD }], volumes } }
    const plain = await world.engine([policyText(world.keys)], bySigned)
    expect((await plain.validate(requestFor(object), callFor())).allowed).toBe(true)
    const reading = await world.engine([policyText(world.keys, { spec, validations })], bySigned)
    expect((await reading.validate(requestFor(object), callFor())).allowed).toBe(false)
  })
})

describe('hosts that an image may name', () => {
  test.each([
    'localhost/app',
    'localhost:8080/app',
    '127.0.0.1/app',
    '169.254.169.254/app',
    '[::1]/app',
    '[fd00:ec2::254]/app',
    '2130706433.:443/app',
    '0x7f.1/app',
    'metadata.google.internal/app',
    'kubernetes.default.svc/app',
    'kubernetes.default.svc.cluster.local/app',
    'registry:5000/app',
    'user:secret@registry.example/app',
    'registry.example#/app',
    'registry.example?x=/app',
    'registry.example\\@evil.example/app',
    'registry.example/../../app',
    'registry.example/%2e%2e/app',
  ])('%s is asked nothing', async (name) => {
    const asked: string[] = []
    const fetch: FetchPort = async (url) => {
      asked.push(url)
      return new Response(null, { status: 404 })
    }
    const now = () => world.clock.now
    const live: Live = {
      registry: createRegistryClient({ fetch, now, credentials: async () => undefined }),
      verifier: createVerifier({ now, kms: createKmsKeys({ port: NO_KMS, now }) }),
    }
    const engine = await world.engine([policyText(world.keys)], { live: async () => live })
    for (const image of [`${name}:1`, `${name}@sha256:${'a'.repeat(64)}`]) {
      const { validated } = await admit(engine, podWith([image]))
      expect(validated.allowed).toBe(false)
    }
    expect(asked).toEqual([])
  })
})

describe('secrets', () => {
  const PASSWORD = 'p4ssw0rd-of-the-registry'
  const ISSUED = 't0ken-of-the-registry'

  /** A registry that repeats whatever it is told wherever it can. */
  const parrot: FetchPort = async (url, { headers }) => {
    const { authorization = '' } = Object.fromEntries(new Headers(headers))
    const { pathname } = new URL(url)
    if (pathname === '/token') {
      return Response.json({
        token: ISSUED,
        errors: [{ code: authorization, message: authorization }],
      })
    }
    if (authorization === '') {
      const challenge = 'Bearer realm="https://registry.example/token",service="registry"'
      return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } })
    }
    if (pathname.includes('redirect')) {
      const location = `https://localhost/?authorization=${encodeURIComponent(authorization)}`
      return new Response(null, { status: 307, headers: { location } })
    }
    const status = Number(/[45]\d\d/.exec(pathname)?.[0] ?? 400)
    const errors = [{ code: authorization, message: `you sent ${authorization}` }]
    return Response.json(
      { errors },
      { status, headers: { 'www-authenticate': `Basic realm="${authorization}"` } },
    )
  }

  test.each(['400', '401', '403', '404', '418', '429', '500', '503', 'redirect'])(
    'a registry that answers %s and repeats what it was sent has nothing repeated by us',
    async (answer) => {
      const now = () => world.clock.now
      const credentials = async () =>
        ({ kind: 'basic', username: 'user', password: PASSWORD }) as const
      const live: Live = {
        registry: createRegistryClient({ fetch: parrot, now, credentials, random: () => 0 }),
        verifier: createVerifier({ now, kms: createKmsKeys({ port: NO_KMS, now }) }),
      }
      const engine = await world.engine([policyText(world.keys)], { live: async () => live })
      const { mutated, final, validated } = await admit(
        engine,
        podWith([`registry.example/app${answer}:1`]),
      )
      expect(validated.allowed).toBe(false)
      const said = JSON.stringify([mutated, final, validated])
      const basic = Buffer.from(`user:${PASSWORD}`).toString('base64')
      for (const secret of [PASSWORD, ISSUED, basic]) expect(said).not.toContain(secret)
    },
  )
})

describe('a seal', () => {
  let good: PushedImage
  let unsigned: PushedImage
  beforeAll(async () => {
    good = await world.push('seal/good', ['release'])
    unsigned = await world.push('seal/unsigned', [])
  })

  const deployment = (images: readonly string[], metadata: JsonObject): JsonObject => {
    const { spec } = podWith(images)
    return {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { template: { spec: spec ?? {} } },
    }
  }
  /** A policy for Pods and Deployments. */
  const both = (spec = '') =>
    policyText(world.keys, { spec }).replace(
      '    resourceRules:\n',
      '    resourceRules:\n      - {apiGroups: [apps], apiVersions: [v1], operations: ["*"], resources: [deployments]}\n',
    )
  /** The seal of a mutate call, in an object that validate then sees. */
  const sealOf = (object: JsonObject) =>
    ((object.metadata as JsonObject).annotations as JsonObject)[SEAL_ANNOTATION] ?? null

  test.each<{
    name: string
    object?: (metadata: JsonObject) => JsonObject
    metadata?: JsonObject
    submission?: Parameters<typeof requestFor>[1]
    call?: Parameters<typeof callFor>[0]
    change?: (request: AdmissionRequest) => AdmissionRequest
  }>([
    { name: 'another name', metadata: { name: 'other', namespace: 'shop' } },
    { name: 'another namespace', metadata: { name: 'web', namespace: 'bank' } },
    { name: 'a generated name', metadata: { generateName: 'web', namespace: 'shop' } },
    {
      name: 'a name and a generated one',
      metadata: { name: 'web', generateName: 'web', namespace: 'shop' },
    },
    { name: 'no namespace', metadata: { name: 'web' } },
    { name: 'an update', submission: { operation: 'UPDATE' } },
    { name: 'another kind', object: (metadata) => deployment([good.pinned], metadata) },
    { name: 'another cluster', call: { cluster: 'staging' } },
    {
      name: 'a subresource',
      change: (request) => ({
        ...request,
        requestSubResource: 'ephemeralcontainers',
        subResource: 'ephemeralcontainers',
      }),
    },
    {
      name: 'another version of the resource',
      change: (request) => ({
        ...request,
        requestResource: { group: '', version: 'v2', resource: 'pods' },
      }),
    },
  ])('does not count for $name', async ({ object, metadata, submission, call, change }) => {
    const engine = await world.engine([both()])
    const first = podWith([good.tagged])
    const seal = sealOf(patched(first, await engine.mutate(requestFor(first), callFor())))
    expect(seal).toMatch(/^v1\./)
    const place = metadata ?? { name: 'web', namespace: 'shop' }
    const sealed = { ...place, annotations: { [SEAL_ANNOTATION]: seal } }
    const final = object?.(sealed) ?? podWith([good.pinned], sealed)
    const request = requestFor(final, submission)
    const validated = await engine.validate(change?.(request) ?? request, callFor(call))
    expect(validated.record.seal).toBe('refused: it was not made by us for this object')
  })

  test('counts for another object of the same generated name, for the images it names', async () => {
    const metadata = { generateName: 'web-', namespace: 'shop' }
    const engine = await world.engine([both()])
    const first = podWith([good.tagged], metadata)
    const seal = sealOf(patched(first, await engine.mutate(requestFor(first), callFor())))
    const second = { ...metadata, name: 'web-abcde', annotations: { [SEAL_ANNOTATION]: seal } }
    const fresh = await world.engine([both()])
    const same = await fresh.validate(requestFor(podWith([good.pinned], second)), callFor())
    expect(same).toMatchObject({ allowed: true, record: { seal: 'open', calls: { registry: 0 } } })
    for (const images of [[unsigned.pinned], [good.pinned, unsigned.pinned]]) {
      const other = await fresh.validate(requestFor(podWith(images, second)), callFor())
      expect(other).toMatchObject({ allowed: false, record: { seal: 'open' } })
    }
  })

  test.each([
    { name: 'its digest', image: () => `${good.tagged}@${unsigned.digest}` },
    { name: 'its tag', image: () => `${good.tagged.replace(':1.0', ':2.0')}@${unsigned.digest}` },
    { name: 'its repository', image: () => `${unsigned.tagged}@${good.digest}` },
    { name: 'a second digest', image: () => `${good.pinned}@${unsigned.digest}` },
    { name: 'its tag left alone and its digest taken away', image: () => good.tagged },
  ])('does not cover an image that differs in $name', async ({ image }) => {
    const engine = await world.engine([both()])
    const { validated } = await admit(engine, podWith([good.tagged]), {
      between: (object) => ({ ...object, spec: podWith([image()]).spec ?? {} }),
    })
    expect(validated.allowed).toBe(false)
  })

  test('of one policy is none of another with the same spec, where the strict contract asks for all', async () => {
    const strict = { outcomes: { onMissing: 'deny', lifetimeMs: 120_000 } } as const
    const one = await world.engine([policyText(world.keys, { name: 'one' })], strict)
    const two = await world.engine([policyText(world.keys, { name: 'two' })], strict)
    const object = podWith([good.tagged])
    const final = patched(object, await one.mutate(requestFor(object), callFor()))
    expect((await one.validate(requestFor(final), callFor())).allowed).toBe(true)
    const validated = await two.validate(requestFor(final), callFor())
    expect(validated.status?.message).toBe('Policy two failed: policy not evaluated')
  })

  test('of a policy that only audits is none for one that denies', async () => {
    const audit = await world.engine([both('  validationActions: [Audit]')])
    const object = podWith([good.tagged])
    const final = patched(object, await audit.mutate(requestFor(object), callFor()))
    world.registry.faults.add({ kind: 'down' })
    const deny = await world.engine([both()])
    const validated = await deny.validate(requestFor(final), callFor())
    expect(validated).toMatchObject({ allowed: false, record: { seal: 'open' } })
  })

  test.each([
    { name: 'long', seal: 'x'.repeat(200_000) },
    { name: 'of many parts', seal: '.'.repeat(40_000) },
    { name: 'under a key of its own', seal: `v1.mine.${'e30'}.${'A'.repeat(43)}` },
    { name: 'of another version', seal: `v2.test.${'e30'}.${'A'.repeat(43)}` },
  ])('that is $name proves nothing, and mutate takes it away', async ({ seal }) => {
    const engine = await world.engine([both()])
    const annotations = { [SEAL_ANNOTATION]: seal }
    const forged = podWith([unsigned.pinned], { name: 'web', namespace: 'shop', annotations })
    const validated = await engine.validate(requestFor(forged), callFor())
    expect(validated.allowed).toBe(false)
    expect(validated.record.seal).toMatch(/^refused: /)
    const mutated = await engine.mutate(requestFor(forged), callFor())
    expect(sealOf(patched(forged, mutated))).not.toBe(seal)
  })

  test('is left out where other annotations fill the object, and validate verifies for itself', async () => {
    const engine = await world.engine([both()])
    const annotations = { note: 'x'.repeat(MAX_ANNOTATIONS_BYTES - 100) }
    const object = podWith([good.tagged], { name: 'web', namespace: 'shop', annotations })
    const { final, validated } = await admit(engine, object)
    expect((final.metadata as JsonObject).annotations).toEqual(annotations)
    expect(validated).toMatchObject({ allowed: true, record: { seal: 'absent' } })
  })

  test('that came in is removed when mutate has no time to find anything out', async () => {
    const engine = await world.engine([both()])
    const annotations = { [SEAL_ANNOTATION]: 'v1.test.e30.AAAA', [OUTCOMES_ANNOTATION]: '{}' }
    const forged = podWith([unsigned.tagged], { name: 'web', namespace: 'shop', annotations })
    const call = callFor({ signal: AbortSignal.abort() })
    const mutated = await engine.mutate(requestFor(forged), call)
    expect(mutated.allowed).toBe(true)
    const kept = (patched(forged, mutated).metadata as JsonObject).annotations as JsonObject
    expect(kept[SEAL_ANNOTATION]).not.toBe(annotations[SEAL_ANNOTATION])
    expect(kept[OUTCOMES_ANNOTATION]).not.toBe(annotations[OUTCOMES_ANNOTATION])
    expect(mutated.warnings.join()).toMatch(/before the deadline/)
  })
})
