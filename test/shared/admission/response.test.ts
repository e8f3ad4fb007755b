import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  admitted,
  denied,
  errorDecision,
  type Phase,
  toReview,
  verifyResponse,
} from '#shared/admission/response.ts'
import type { Decision } from '#shared/admission/types.ts'
import { AdmissionError, type ErrorCode } from '#shared/errors.ts'
import type { JsonValue } from '#shared/json.ts'

const UID = '6e2b3f0a-0c7e-4a0f-8a5e-1f5f6b6f7a10'

/** What the API server makes of a decision. */
function received(decision: Decision, phase: Phase = 'mutate') {
  return verifyResponse(toReview(UID, decision, phase) as unknown as JsonValue, UID, phase)
}

describe('toReview', () => {
  test('an admission without anything else is the shortest answer', () => {
    expect(toReview(UID, admitted(), 'validate')).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: UID, allowed: true },
    })
  })

  test('a patch goes with its type in the mutate phase', () => {
    const patch = [{ op: 'replace', path: '/a', value: 1 }] as const
    expect(toReview(UID, admitted({ patch }), 'mutate').response).toEqual({
      uid: UID,
      allowed: true,
      patch: btoa('[{"op":"replace","path":"/a","value":1}]'),
      patchType: 'JSONPatch',
    })
    expect(received(admitted({ patch })).patch).toEqual(patch)
  })

  test.each([
    { name: 'an empty patch is none', decision: admitted(), phase: 'mutate' as const },
    {
      name: 'validate never patches',
      decision: admitted({ patch: [{ op: 'remove', path: '/a' }] }),
      phase: 'validate' as const,
    },
    {
      name: 'a denial never patches',
      decision: { ...denied('no'), patch: [{ op: 'remove' as const, path: '/a' }] },
      phase: 'mutate' as const,
    },
  ])('$name', ({ decision, phase }) => {
    const { response } = toReview(UID, decision, phase)
    expect(response).not.toHaveProperty('patch')
    expect(response).not.toHaveProperty('patchType')
  })

  test('a denial carries its status', () => {
    expect(toReview(UID, denied('Policy p failed: no'), 'validate').response).toEqual({
      uid: UID,
      allowed: false,
      status: { status: 'Failure', code: 403, reason: 'Forbidden', message: 'Policy p failed: no' },
    })
  })

  const status = { status: 'Failure', code: 403, reason: 'Forbidden', message: 'no' } as const
  test.each([
    {
      name: 'no status at all',
      status: undefined,
      expected: { ...status, code: 400, message: 'denied without explanation' },
    },
    {
      name: 'a code that means success',
      status: { ...status, code: 200 },
      expected: { ...status, code: 400 },
    },
    {
      name: 'a code that is not HTTP',
      status: { ...status, code: 1000 },
      expected: { ...status, code: 400 },
    },
    {
      name: 'a code that is no number',
      status: { ...status, code: Number.NaN },
      expected: { ...status, code: 400 },
    },
    {
      name: 'an empty message',
      status: { ...status, message: ' \n' },
      expected: { ...status, message: 'denied without explanation' },
    },
    {
      name: 'a long message',
      status: { ...status, message: 'x'.repeat(20_000) },
      expected: { ...status, message: `${'x'.repeat(16_383)}…` },
    },
  ])('a denial is well-formed with $name', ({ status: given, expected }) => {
    const decision: Decision = { ...admitted(), allowed: false, ...(given && { status: given }) }
    expect(toReview(UID, decision, 'validate').response.status).toEqual(expected)
  })

  test('an admission drops a status', () => {
    expect(toReview(UID, { ...admitted(), status }, 'validate').response).toEqual({
      uid: UID,
      allowed: true,
    })
  })

  test.each([
    {
      name: 'control characters and line breaks go',
      warnings: ['a\r\nb\u0000\u001b[31mc\u0085d'],
      expected: ['a b[31mcd'],
    },
    { name: 'duplicates are said once', warnings: ['a', 'a ', 'b'], expected: ['a', 'b'] },
    { name: 'an empty one is none', warnings: ['', ' \n', '\u0007'], expected: undefined },
    { name: 'a long one is cut', warnings: ['ü'.repeat(300)], expected: [`${'ü'.repeat(255)}…`] },
    {
      name: 'a cut never splits a character',
      warnings: ['😀'.repeat(257)],
      expected: [`${'😀'.repeat(255)}…`],
    },
    {
      name: '256 characters fit whatever their UTF-16 length',
      warnings: ['😀'.repeat(256)],
      expected: ['😀'.repeat(256)],
    },
  ])('warnings: $name', ({ warnings, expected }) => {
    expect(toReview(UID, admitted({ warnings }), 'validate').response.warnings).toEqual(expected)
  })

  test('too many warnings end in their number', () => {
    const warnings = Array.from({ length: 40 }, (_, i) => `${i}`.padEnd(256, '.'))
    const out = toReview(UID, admitted({ warnings }), 'validate').response.warnings ?? []
    expect(out).toHaveLength(16)
    expect(out.at(-1)).toBe('and 25 more warnings')
    expect(out.join('').length).toBeLessThanOrEqual(4096)
  })

  test.each([
    { name: 'a good key stays', given: { 'a.b_c-1': 'x' }, expected: { 'a.b_c-1': 'x' } },
    { name: 'a slash cannot be in it', given: { 'a/b': 'x' }, expected: { a_b: 'x' } },
    {
      name: 'it begins and ends with a letter or digit',
      given: { '-a b.': 'x' },
      expected: { a_b: 'x' },
    },
    {
      name: 'an empty one gets a name',
      given: { '': 'x', '/': 'y' },
      expected: { annotation: 'x', 'annotation.2': 'y' },
    },
    {
      name: 'it has 63 characters at most',
      given: { ['a'.repeat(80)]: 'x' },
      expected: { ['a'.repeat(63)]: 'x' },
    },
    {
      name: 'two that become one are told apart',
      given: { 'a/b': 'x', a_b: 'y', 'a b': 'z' },
      expected: { a_b: 'x', 'a_b.2': 'y', 'a_b.3': 'z' },
    },
    {
      name: 'a long value is cut',
      given: { a: 'x'.repeat(11_000) },
      expected: { a: `${'x'.repeat(10_239)}…` },
    },
  ])('audit annotations: $name', ({ given, expected }) => {
    const { response } = toReview(UID, admitted({ auditAnnotations: given }), 'validate')
    expect(response.auditAnnotations).toEqual(expected)
  })

  test('whatever a decision holds, the API server accepts the answer', () => {
    const text = fc.string({ unit: 'binary', maxLength: 400 })
    const decision = fc.record({
      allowed: fc.boolean(),
      status: fc.option(
        fc.record({
          status: fc.constant('Failure' as const),
          code: fc.oneof(fc.integer(), fc.double()),
          reason: text,
          message: text,
        }),
        { nil: undefined },
      ),
      patch: fc.array(
        fc.record({ op: fc.constant('add' as const), path: text, value: fc.integer() }),
      ),
      warnings: fc.array(text),
      auditAnnotations: fc.dictionary(text, text),
      record: fc.constant({}),
    })
    fc.assert(
      fc.property(decision, fc.constantFrom<Phase>('mutate', 'validate'), (given, phase) => {
        const answer = received(given as Decision, phase)
        expect(answer.allowed).toBe(given.allowed)
        if (!given.allowed) {
          expect(answer.status?.code).toBeGreaterThanOrEqual(400)
          expect(answer.status?.message).not.toBe('')
        }
        for (const key of Object.keys(answer.auditAnnotations)) {
          expect(key).toMatch(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/)
        }
      }),
    )
  })
})

describe('errorDecision', () => {
  test.each<{ code: ErrorCode; http: number; reason: string }>([
    { code: 'REVIEW_INVALID', http: 400, reason: 'BadRequest' },
    { code: 'JSON_INVALID', http: 400, reason: 'BadRequest' },
    { code: 'REQUEST_TOO_LARGE', http: 413, reason: 'RequestEntityTooLarge' },
    { code: 'CONTENT_TYPE_UNSUPPORTED', http: 415, reason: 'UnsupportedMediaType' },
    { code: 'IMAGE_LIST_INVALID', http: 422, reason: 'Invalid' },
    { code: 'REGISTRY_UNREACHABLE', http: 503, reason: 'ServiceUnavailable' },
    { code: 'KMS_UNAVAILABLE', http: 503, reason: 'ServiceUnavailable' },
    { code: 'DEADLINE_EXCEEDED', http: 504, reason: 'Timeout' },
    { code: 'INTERNAL', http: 500, reason: 'InternalError' },
    { code: 'KMS_REFUSED', http: 403, reason: 'Forbidden' },
  ])('$code denies with $http', ({ code, http, reason }) => {
    expect(errorDecision(new AdmissionError(code, 'why'))).toEqual({
      allowed: false,
      status: { status: 'Failure', code: http, reason, message: 'why' },
      patch: [],
      warnings: [],
      auditAnnotations: {},
      record: { error: code },
    })
  })

  test('a denial with a thousand long causes is cut to what an answer can hold', () => {
    const cause = { reason: 'ImageVerificationFailed', message: 'x'.repeat(16_384) }
    const causes = Array.from({ length: 1000 }, () => cause)
    const status = { status: 'Failure', code: 403, reason: 'Forbidden', message: 'no' } as const
    const decision: Decision = { ...denied('no'), status: { ...status, details: { causes } } }
    const { response } = toReview('uid', decision, 'validate')
    expect(response.status?.details?.causes).toHaveLength(20)
    expect(response.status?.details?.causes[0]).toEqual({
      reason: 'ImageVerificationFailed',
      message: `${'x'.repeat(2047)}…`,
    })
  })

  test('the bad paths are the causes, twenty of them', () => {
    const faults = Array.from({ length: 30 }, (_, i) => ({ path: `a[${i}]`, message: 'bad' }))
    const { status } = errorDecision(new AdmissionError('REVIEW_INVALID', 'why', { faults }))
    expect(status?.details?.causes).toHaveLength(20)
    expect(status?.details?.causes[3]).toEqual({
      reason: 'FieldValueInvalid',
      message: 'bad',
      field: 'a[3]',
    })
  })
})

describe('verifyResponse', () => {
  const good = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }
  const answer = (response: { [key: string]: JsonValue }): JsonValue => ({
    ...good,
    response: { uid: UID, allowed: true, ...response },
  })

  test.each<{ name: string; review: JsonValue; phase?: Phase; message: string }>([
    { name: 'no response', review: { ...good }, message: 'webhook response was absent' },
    {
      name: 'a null response',
      review: { ...good, response: null },
      message: 'webhook response was absent',
    },
    { name: 'not even an object', review: 'ok', message: 'webhook response was absent' },
    {
      name: 'another uid',
      review: answer({ uid: 'x' }),
      message: `expected response.uid="${UID}", got "x"`,
    },
    {
      name: 'no uid',
      review: { ...good, response: { allowed: true } },
      message: `expected response.uid="${UID}", got ""`,
    },
    {
      name: 'no apiVersion and kind',
      review: { response: { uid: UID } },
      message:
        'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=',
    },
    {
      name: 'v1beta1',
      review: { ...good, apiVersion: 'admission.k8s.io/v1beta1', response: { uid: UID } },
      message:
        'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1, Kind=AdmissionReview',
    },
    {
      name: 'a patch without type',
      review: answer({ patch: 'W10=' }),
      message: 'webhook returned response.patch but not response.patchType',
    },
    {
      name: 'a type without patch',
      review: answer({ patchType: 'JSONPatch' }),
      message: 'webhook returned response.patchType but not response.patch',
    },
    {
      name: 'a type with an empty patch',
      review: answer({ patch: '', patchType: 'JSONPatch' }),
      message: 'webhook returned response.patchType but not response.patch',
    },
    {
      name: 'an empty type',
      review: answer({ patch: 'W10=', patchType: '' }),
      message: 'webhook returned invalid response.patchType of ""',
    },
    {
      name: 'another type',
      review: answer({ patch: 'W10=', patchType: 'StrategicMerge' }),
      message: 'unsupported patch type "StrategicMerge"',
    },
    {
      name: 'a patch that is not base64',
      review: answer({ patch: '{}', patchType: 'JSONPatch' }),
      message: 'response.patch is not base64',
    },
    {
      name: 'a patch of a validating webhook',
      review: answer({ patch: 'W10=', patchType: 'JSONPatch' }),
      phase: 'validate',
      message: 'validating webhook may not return response.patch',
    },
    {
      name: 'a type of a validating webhook',
      review: answer({ patchType: 'JSONPatch' }),
      phase: 'validate',
      message: 'validating webhook may not return response.patchType',
    },
  ])('refuses $name', ({ review, phase = 'mutate', message }) => {
    expect(() => verifyResponse(review, UID, phase)).toThrow(
      expect.objectContaining({ code: 'RESPONSE_INVALID', message }),
    )
  })

  test.each([
    { name: 'cut JSON', patch: '[{' },
    { name: 'an object', patch: '{}' },
    { name: 'a list of strings', patch: '["a"]' },
  ])('a patch that is $name cannot be decoded', ({ patch }) => {
    const review = answer({ patch: btoa(patch), patchType: 'JSONPatch' })
    expect(() => verifyResponse(review, UID, 'mutate')).toThrow(
      expect.objectContaining({ code: 'PATCH_INVALID' }),
    )
  })

  test('an empty list is a good patch that changes nothing', () => {
    const review = answer({ patch: btoa('[]'), patchType: 'JSONPatch' })
    expect(verifyResponse(review, UID, 'mutate').patch).toEqual([])
  })

  test('anything but true is not allowed', () => {
    expect(verifyResponse(answer({ allowed: 'true' }), UID, 'validate').allowed).toBe(false)
  })
})
