import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { podRequest } from '#shared/admission/image-review.ts'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { evaluate, matchConditions } from '#shared/policy/evaluate.ts'
import { reviewNeeds } from '#shared/policy/image-review-needs.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '#shared/policy/prepare.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import { load, POD_RULE, policyDocument } from './documents.ts'

/** What a review lets in a webhook must let in, too: whatever expression, if it is taken, and whatever list each image is really in. */

const LISTS = ['containers', 'initContainers', 'ephemeralContainers'] as const
const IMAGES = ['a', 'b', 'c:1']

const { list, bool } = fc.letrec<{ list: string; bool: string; item: string }>((tie) => {
  const [l, b, p] = [tie('list'), tie('bool'), tie('item')]
  const image = fc.constantFrom(...IMAGES).map((name) => `'${name}'`)
  const both = (arbitrary: fc.Arbitrary<string>) => fc.tuple(arbitrary, arbitrary)
  const compared = fc.constantFrom('<', '<=', '>', '>=', '==', '!=')
  return {
    list: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom(...LISTS).map((name) => `images.${name}`),
      fc.constant('object.spec.containers.map(c, c.image)'),
      fc.constant('object.spec.?initContainers.orValue([]).map(c, c.image)'),
      both(l).map(([x, y]) => `(${x} + ${y})`),
      both(l).map(([x, y]) => `[${x}, ${y}].flatten()`),
      l.map((x) => `${x}.distinct()`),
      fc.tuple(l, p).map(([x, y]) => `${x}.filter(i, ${y})`),
      fc.tuple(b, l, l).map(([x, y, z]) => `(${x} ? ${y} : ${z})`),
      fc.tuple(b, l).map(([x, y]) => `(${x} ? ${y} : [])`),
      fc.tuple(l, l).map(([x, y]) => `cel.bind(v, ${x}, v.filter(i, i in ${y}))`),
      fc.constant(
        '(has(object.spec.initContainers) ? object.spec.initContainers : []).map(c, c.image)',
      ),
      fc.constant(`images.containers.filter(i, i.split(':')[1] == '1')`),
      fc.tuple(l, image).map(([x, y]) => `(${x} + [${y}])`),
      l.map((x) => `dyn([${x}])[0]`),
      fc.constant('images.map(n, images[n]).flatten()'),
      p.map((x) => `images.transformList(n, v, v.filter(i, ${x})).flatten()`),
    ),
    bool: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.tuple(l, p).map(([x, y]) => `${x}.all(i, ${y})`),
      fc.tuple(l, p).map(([x, y]) => `${x}.exists(i, ${y})`),
      fc.tuple(l, p).map(([x, y]) => `${x}.exists_one(i, ${y})`),
      fc.tuple(l, compared, fc.nat(3)).map(([x, y, n]) => `size(${x}) ${y} ${n}`),
      fc.tuple(l, compared, l).map(([x, y, z]) => `${x}.size() ${y} ${z}.size()`),
      fc.tuple(image, l).map(([x, y]) => `${x} in ${y}`),
      l.map((x) => `${x} == []`),
      fc.constant('has(object.spec.initContainers)'),
      fc.constant('!has(object.spec.initContainers)'),
      p.map((x) => `object.spec.initContainers.map(c, c.image).all(i, ${x})`),
      fc.constant(`object.spec.containers.all(c, c.image.split(':')[1] == '1')`),
      fc.tuple(l, compared, l).map(([x, y, z]) => `size(${x}) - size(${z}) ${y} 1`),
      fc.constantFrom('containers', 'own').map((x) => `images.?${x}.orValue(['a']) == []`),
      l.map((x) => `size([?optional.of(${x})]) > 0`),
      fc.tuple(l, p).map(([x, y]) => `${x}.all(n, i, n < 2 || ${y})`),
      fc.tuple(l, p).map(([x, y]) => `${x}.transformList(n, i, ${y}).all(j, j)`),
      fc.constant('images.all(name, images[name].size() < 3)'),
      fc
        .tuple(l, fc.constantFrom('true', 'j'))
        .map(([x, y]) => `[${x}[0] == 'a', true].all(j, ${y})`),
      both(b).map(([x, y]) => `[${x}, ${y}].exists(j, j)`),
      fc.tuple(b, compared).map(([x, y]) => `[${x}].size() ${y} 1`),
      fc.tuple(l, p, compared).map(([x, y, z]) => `${x}.map(i, ${y}).size() ${z} 2`),
      fc.tuple(l, p).map(([x, y]) => `${x}.map(i, ${y}).exists(j, j)`),
      fc.tuple(compared, b).map(([x, y]) => `images.all(n, images[n].size() ${x} 1 || ${y})`),
      l.map((x) => `images.all(n, v, v.size() + ${x}.size() < 4)`),
      both(b).map(([x, y]) => `(${x} && ${y})`),
      both(b).map(([x, y]) => `(${x} || ${y})`),
      b.map((x) => `!(${x})`),
      fc.tuple(b, b, b).map(([x, y, z]) => `(${x} ? ${y} : ${z})`),
      fc.tuple(b, b).map(([x, y]) => `(${x} ? true : ${y})`),
      fc.tuple(b, b).map(([x, y]) => `(${x} ? ${y} : true)`),
    ),
    item: fc.oneof(
      { maxDepth: 2, depthSize: 'small' },
      image.map((x) => `i == ${x}`),
      fc.constant("i.endsWith(':1')"),
      l.map((x) => `i in ${x}`),
      b,
      p.map((x) => `!(${x})`),
    ),
  }
})

/** Images, each with the list it is really in. */
const placed = fc.array(fc.tuple(fc.constantFrom(...IMAGES), fc.constantFrom(...LISTS)), {
  maxLength: 4,
})

type Placed = readonly (readonly [string, (typeof LISTS)[number]])[]

function requestsOf(images: Placed): { real: AdmissionRequest; review: AdmissionRequest } {
  const review = podRequest({ images: images.map(([image]) => image), annotations: {} }, 'uid')
  const spec: Record<string, { image: string }[]> = { containers: [] }
  for (const [image, name] of images) spec[name] = [...(spec[name] ?? []), { image }]
  return { real: { ...review, object: { ...review.object, spec } }, review }
}

/** Of Pods that are updated a review has not all images. */
const CREATED = {
  matchConstraints: {
    resourceRules: [{ ...POD_RULE, operations: ['CREATE'], resources: ['pods'] }],
  },
}

async function prepared(spec: object): Promise<PreparedPolicy | undefined> {
  const lenient = { mutateDigest: false, verifyDigest: false, required: false }
  const document = policyDocument({ ...CREATED, validationConfigurations: lenient, ...spec })
  const { policies, faults } = await load([document])
  const [policy] = policies
  // Such as an expression that is false for every request.
  if (faults.length > 0 || policy === undefined) return undefined
  if (reviewNeeds(policy).needs.length > 0) return undefined
  return preparePolicy(policy, await loadRuntime(policy))
}

const NOBODY = () => ({ kind: 'error', message: 'nobody is asked' }) as const
const verdict = (policy: PreparedPolicy, request: AdmissionRequest) =>
  evaluate(policy, subjectOf(request), NOBODY).status
const isAsked = (policy: PreparedPolicy, request: AdmissionRequest) =>
  matchConditions(policy, subjectOf(request)).status !== 'unmatched'

describe('an ImageReview is never more lenient than the Pod it stands for', () => {
  test('by validations', async () => {
    let taken = 0
    await fc.assert(
      fc.asyncProperty(
        bool,
        fc.array(placed, { minLength: 6, maxLength: 6 }),
        async (expression, pods) => {
          const policy = await prepared({ validations: [{ expression }] })
          if (policy === undefined) return
          taken++
          for (const { real, review } of pods.map(requestsOf)) {
            if (verdict(policy, review) === 'pass') expect(verdict(policy, real)).toBe('pass')
          }
        },
      ),
      { numRuns: 250 },
    )
    expect(taken).toBeGreaterThan(25)
  }, 60_000)

  test('by conditions, which see the object alone', async () => {
    const condition = bool.filter((text) => !text.includes('images'))
    let taken = 0
    await fc.assert(
      fc.asyncProperty(
        condition,
        fc.array(placed, { minLength: 6, maxLength: 6 }),
        async (expression, pods) => {
          const policy = await prepared({ matchConditions: [{ name: 'a', expression }] })
          if (policy === undefined) return
          taken++
          for (const { real, review } of pods.map(requestsOf)) {
            if (!isAsked(policy, review)) expect(isAsked(policy, real)).toBe(false)
          }
        },
      ),
      { numRuns: 200 },
    )
    expect(taken).toBeGreaterThan(10)
  }, 60_000)

  test('by extractors', async () => {
    let taken = 0
    await fc.assert(
      fc.asyncProperty(
        list,
        fc.array(placed, { minLength: 6, maxLength: 6 }),
        async (expression, pods) => {
          const policy = await prepared({
            images: [
              {
                name: 'own',
                expression: expression.replaceAll(
                  /images\.\w+/g,
                  'object.spec.containers.map(c, c.image)',
                ),
              },
            ],
            validations: [{ expression: `images.own.all(i, i != 'a')` }],
          })
          if (policy === undefined) return
          taken++
          for (const { real, review } of pods.map(requestsOf)) {
            if (verdict(policy, review) === 'pass') expect(verdict(policy, real)).toBe('pass')
          }
        },
      ),
      { numRuns: 200 },
    )
    expect(taken).toBeGreaterThan(20)
  }, 60_000)

  test('by what is added to Pods that it has let in', async () => {
    let taken = 0
    const added = fc.constantFrom<(typeof LISTS)[number][]>(
      ['containers', 'initContainers'],
      ['ephemeralContainers'],
    )
    const pod = fc.tuple(added, placed, fc.array(fc.constantFrom(...IMAGES), { maxLength: 2 }))
    await fc.assert(
      fc.asyncProperty(
        bool,
        fc.array(pod, { minLength: 6, maxLength: 6 }),
        async (expression, pods) => {
          const updated = { matchConstraints: { resourceRules: [POD_RULE] } }
          const policy = await prepared({ ...updated, validations: [{ expression }] })
          if (policy === undefined) return
          taken++
          for (const [lists, images, more] of pods) {
            const before = images.filter(([, list]) => !lists.includes(list))
            const after = more.map((image, index) => [image, lists[index % lists.length]!] as const)
            if (verdict(policy, requestsOf(before).real) !== 'pass') continue
            if (verdict(policy, requestsOf(after).review) !== 'pass') continue
            expect(verdict(policy, requestsOf([...before, ...after]).real)).toBe('pass')
          }
        },
      ),
      { numRuns: 250 },
    )
    expect(taken).toBeGreaterThan(20)
  }, 60_000)
})
