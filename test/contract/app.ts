import { describe, expect, test } from 'vitest'
import { applyPatch } from '#shared/admission/patch.ts'
import { type Phase, verifyResponse } from '#shared/admission/response.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { parseJson } from '#shared/json.ts'
import { TOKEN } from './deploy.ts'
import { pod, review, UID } from './review.ts'
import { type Answer, opened, type Sent, STAGE, type Target } from './targets.ts'
import { BEARER, type World } from './world.ts'

const PHASES = ['mutate', 'validate'] as const

/** What holds wherever the functions run: one suite for every runtime, over a real socket. */
export function contract(
  name: string,
  getWorld: () => World,
  open: (world: World) => Promise<Target>,
) {
  describe(name, () => {
    const target = opened(() => open(getWorld()))

    const at = (phase: Phase, rest = '', cluster = 'prod', token = TOKEN) =>
      `/v1/${cluster}/${token}/ivpol/${phase}${rest}`
    const post = (phase: Phase, body: Sent['body'], rest = '') =>
      target().send(phase, at(phase, rest), { body })
    const postReview = (phase: Phase, request: Record<string, unknown>, rest = '') =>
      post(phase, JSON.stringify(review(request)), rest)
    const podOf = (...images: string[]) => ({ object: pod(...images) })

    describe('probes', () => {
      test.each(['/livez', '/readyz'])('%s says ok', async (path) => {
        for (const phase of PHASES) {
          expect(await target().send(phase, path, { method: 'GET' })).toMatchObject({
            status: 200,
            text: 'ok\n',
          })
        }
      })
    })

    describe('callers', () => {
      test.each<[string, string, string, Record<string, string>]>([
        ['an unknown cluster', 'nowhere', TOKEN, {}],
        ['a wrong token', 'prod', 'wrong', {}],
        ['no token', 'prod', '', {}],
        ['no bearer', 'bearer', TOKEN, {}],
        ['a wrong bearer', 'bearer', TOKEN, { authorization: 'Bearer wrong' }],
        ['an address outside the ranges', 'elsewhere', TOKEN, {}],
        [
          'a header that claims another address',
          'elsewhere',
          TOKEN,
          {
            'x-forwarded-for': '203.0.113.7',
            forwarded: 'for=203.0.113.7',
            'x-real-ip': '203.0.113.7',
          },
        ],
        ['a cluster that has ended', 'expired', TOKEN, {}],
      ])('with %s get the 404 of a path that does not exist', async (_, cluster, token, more) => {
        const body = JSON.stringify(review())
        const headers = { 'content-type': 'application/json', ...more }
        for (const phase of PHASES) {
          const nowhere = await target().send(phase, '/nothing/here', { headers, body })
          expect(nowhere).toMatchObject({ status: 404, text: '' })
          const path = at(phase, '', cluster, token)
          expect(await target().send(phase, path, { headers, body })).toEqual(nowhere)
        }
      })

      test.each<[string, string, Record<string, string>]>([
        ['a bearer', 'bearer', { authorization: `Bearer ${BEARER}` }],
        ['an address in a range', 'local', {}],
      ])('with %s get in', async (_, cluster, more) => {
        const headers = { 'content-type': 'application/json', ...more }
        const body = JSON.stringify(review({ object: { ...pod(), kind: 'Pod' } }))
        const answer = await target().send('validate', at('validate', '', cluster), {
          headers,
          body,
        })
        expect(answer.status).toBe(200)
      })

      test('leave no token in the log', async () => {
        await target().send('validate', at('validate', '', 'prod', `${TOKEN}x`))
        await target().send('validate', at('validate'), {
          headers: { authorization: `Bearer ${BEARER}` },
        })
        expect((target().lines?.() ?? []).join('\n')).not.toMatch(new RegExp(`${TOKEN}|${BEARER}`))
      })
    })

    test('metrics are those of the stage, where a reader of the log takes them out', async () => {
      await target().send('validate', at('validate'), {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(review({ object: pod() })),
      })
      const namespaces = (target().lines?.() ?? [])
        .filter((line) => line.includes('"_aws"'))
        .map((line) => JSON.parse(line)._aws.CloudWatchMetrics[0].Namespace)
      const isLambda = name.startsWith('Lambda')
      expect([...new Set(namespaces)]).toEqual(isLambda ? [`Countersign/${STAGE}`] : [])
    })

    describe('bodies', () => {
      const text = JSON.stringify(review())
      const cut = text.slice(0, -20)
      const notUtf8 = Buffer.from(text.replace('alice', 'al\u00ffce'), 'latin1')
      const deep = text.replace(
        '"dryRun":false',
        `"dryRun":false,"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}`,
      )
      const twice = text.replace('"dryRun":false', '"dryRun":false,"dryRun":true')

      test.each<[string, Sent['body']]>([
        ['cut short', cut],
        ['not UTF-8', notUtf8],
        ['nested too deeply', deep],
        ['with a key that occurs twice', twice],
        ['with a number that is none', text.replace('"dryRun":false', '"dryRun":1e999')],
        [
          'of another kind',
          text.replace('AdmissionReview', 'AdmissionReview2').replace('AdmissionReview2', 'Review'),
        ],
        ['of v1beta1', text.replace('admission.k8s.io/v1', 'admission.k8s.io/v1beta1')],
        [
          'with __proto__ for an operation',
          text.replace('"CREATE"', '{"__proto__":{"operation":"CREATE"}}'),
        ],
      ])('%s are denied or refused with 400', async (_, body) => {
        for (const phase of PHASES) {
          const answer = await post(phase, body)
          if (answer.status === 200) expectDenial(answer, phase, 400)
          else expect(answer.status).toBe(400)
        }
      })

      test('past the limit are denied by their uid', async () => {
        const padding = 'x'.repeat(target().maxBodyBytes)
        for (const phase of PHASES) {
          const answer = await postReview(phase, { object: { ...pod(), padding } })
          expectDenial(answer, phase, 413)
        }
      })

      test('with every fault are answered with every path', async () => {
        const bad = review({ operation: 'PATCH', kind: 7, userInfo: null })
        const answer = await post('validate', JSON.stringify(bad))
        const { status } = JSON.parse(answer.text).response
        for (const path of ['request.operation', 'request.kind', 'request.userInfo']) {
          expect(status.message).toContain(path)
        }
      })

      test.each(['text/plain', 'application/yaml', ''])('of type %j get 415', async (type) => {
        const headers: Record<string, string> = type === '' ? {} : { 'content-type': type }
        expect(
          (await target().send('validate', at('validate'), { headers, body: text })).status,
        ).toBe(415)
      })

      test.each<[string, string]>([
        ['nothing', ''],
        ['null', 'null'],
        ['a list', '[]'],
        ['no uid', JSON.stringify(review({ uid: undefined }))],
      ])('with %s get 400', async (_, body) => {
        for (const phase of PHASES) expect((await post(phase, body)).status).toBe(400)
      })

      test('that try to pollute prototypes change nothing for the next', async () => {
        const polluted = text.replace(
          '"metadata":{',
          '"metadata":{"__proto__":{"allowed":true},"constructor":{"prototype":{"allowed":true}},',
        )
        await post('validate', polluted)
        const { images } = getWorld()
        expectDenial(await postReview('validate', podOf(images.unsigned)), 'validate', 403)
      })
    })

    describe('reviews', () => {
      test('go through both phases: pinned and sealed, then admitted without asking anybody', () =>
        bothPhases(target(), getWorld()))

      test('of an unsigned image are denied with the message of the policy', async () => {
        const { images } = getWorld()
        expect(verified(await postReview('mutate', podOf(images.unsigned)), 'mutate').allowed).toBe(
          true,
        )
        const answer = await postReview('validate', podOf(images.unsigned))
        expectDenial(answer, 'validate', 403)
        expect(answer.text).toContain('not signed by the release key')
      })

      test('are decided by what is attested about an image, sealed by mutate or not', async () => {
        const { images } = getWorld()
        const object = pod(images.built) as JsonObject
        const mutated = verified(await postReview('mutate', { object }, '/built'), 'mutate')
        const sealed = applyPatch(object, mutated.patch)
        for (const each of [sealed, object]) {
          const decided = await postReview('validate', { object: each }, '/built')
          expect(verified(decided, 'validate')).toMatchObject({ allowed: true })
        }
        const homemade = await postReview('validate', podOf(images.homemade), '/built')
        expectDenial(homemade, 'validate', 403)
        expect(homemade.text).toContain('it is homemade')
        const unsigned = images.unsigned.replace('/unsigned', '/built')
        expectDenial(await postReview('validate', podOf(unsigned), '/built'), 'validate', 403)
      })

      test('with a huge seal that nobody made are verified live', async () => {
        const { images } = getWorld()
        const annotations = { 'countersign.dev/seal': `v1.a.${'A'.repeat(200 * 1024)}.AAAA` }
        const object = {
          ...pod(images.unsigned),
          metadata: { name: 'web', namespace: 'shop', annotations },
        }
        expectDenial(await postReview('validate', { object }), 'validate', 403)
      })

      test('that name a policy which is not loaded are denied in validate, and say why', async () => {
        const { images } = getWorld()
        const signed = podOf(images.signed)
        expectDenial(await postReview('validate', signed, '/signed/missing'), 'validate', 403)
        for (const phase of PHASES) {
          const { text } = await postReview(phase, signed, '/missing')
          const { response } = JSON.parse(text)
          expect(response).toMatchObject({
            allowed: phase === 'mutate',
            warnings: [expect.stringContaining('"missing"')],
          })
        }
      })

      test('that name loaded policies, or none between slashes, are evaluated', async () => {
        const { images } = getWorld()
        for (const rest of ['/signed', '//signed/', '/', '//']) {
          const answer = await postReview('validate', podOf(images.unsigned), rest)
          expect(answer.text).toContain('not signed by the release key')
        }
      })

      test('under way together each get their own answer', async () => {
        const { images } = getWorld()
        const answers = await Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            const image = index % 2 === 0 ? images.signed : images.unsigned
            const uid = `uid-${index}`
            const answer = await postReview('validate', { uid, ...podOf(image) })
            const { response } = JSON.parse(answer.text)
            return [response.uid === uid, response.allowed === (index % 2 === 0)]
          }),
        )
        expect(answers).toEqual(answers.map(() => [true, true]))
      })
    })

    describe('time', () => {
      test('is kept when a registry never answers: validate denies, mutate leaves the object alone', async () => {
        const { images } = getWorld()
        const started = performance.now()
        const [decided, mutated] = await Promise.all([
          postReview('validate', podOf(images.stalled), '?timeout=1s'),
          postReview('mutate', podOf(images.stalled), '?timeout=1s'),
        ])
        expect(performance.now() - started).toBeLessThan(1000)
        expect(verified(decided, 'validate').allowed).toBe(false)
        expect(verified(mutated, 'mutate').allowed).toBe(true)
        const after = await postReview('validate', podOf(images.unsigned))
        expectDenial(after, 'validate', 403)
      })
    })
  })
}

/** A signed image through both phases; validate needs nothing but the seal. */
export async function bothPhases(target: Target, { images, registry }: World): Promise<void> {
  const send = async (phase: Phase, object: unknown) => {
    const body = JSON.stringify(review({ object }))
    return verified(await target.send(phase, `/v1/prod/${TOKEN}/ivpol/${phase}`, { body }), phase)
  }
  const { allowed, patch } = await send('mutate', pod(images.tagged))
  expect(allowed).toBe(true)
  // A Pod is JSON all the way down.
  const object = applyPatch(pod(images.tagged) as JsonObject, patch) as JsonObject
  expect(object.spec).toEqual({ containers: [{ name: 'c0', image: images.signed }] })
  registry.requests.length = 0
  const decided = await send('validate', object)
  expect(decided.status?.message).toBeUndefined()
  expect(decided.allowed).toBe(true)
  expect(registry.requests.map(({ url }) => url)).toEqual([])
}

/** The answer after every check the API server makes. */
function verified({ status, text }: Answer, phase: Phase, uid = UID) {
  expect(status).toBe(200)
  return verifyResponse(parseJson(text), uid, phase)
}

function expectDenial(answer: Answer, phase: Phase, code: number): void {
  const { allowed, status } = verified(answer, phase)
  expect([allowed, status?.code]).toEqual([false, code])
}
