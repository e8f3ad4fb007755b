import { describe, expect, test } from 'vitest'
import type { AdmissionStatus } from '#shared/admission/types.ts'
import {
  MAX_AUDIT_VALUE_CHARS,
  MAX_CAUSE_CHARS,
  MAX_LISTED_FAULTS,
  MAX_MESSAGE_CHARS,
} from '#shared/limits.ts'
import { decide, failsOpen, type PolicyResult } from '#shared/policy/decide.ts'
import type { ValidationAction } from '#shared/policy/types.ts'

function result(changes: Partial<PolicyResult> = {}): PolicyResult {
  return {
    policy: 'must-sign',
    validationActions: ['Deny'],
    status: 'pass',
    message: 'success',
    ...changes,
  }
}

const ALLOWED = { allowed: true, warnings: [], auditAnnotations: {} }

function denied(...sentences: [reason: string, message: string][]): AdmissionStatus {
  return {
    status: 'Failure',
    code: 403,
    reason: 'Forbidden',
    message: sentences.map(([, message]) => message).join('; '),
    details: {
      causes: sentences.map(([reason, message]) => {
        const field = message.split(' ')[1] ?? ''
        return { reason, field, message }
      }),
    },
  }
}

const FAILED = 'Policy must-sign failed: not signed'
const ERROR = 'Policy must-sign error: registry down'

describe('decide', () => {
  test.each<{ name: string; results: PolicyResult[]; is: ReturnType<typeof decide> }>([
    { name: 'no policy allows', results: [], is: ALLOWED },
    { name: 'a pass allows and says nothing', results: [result()], is: ALLOWED },
    {
      name: 'a skip allows and says nothing',
      results: [result({ status: 'skip', message: 'x' })],
      is: ALLOWED,
    },
    {
      name: 'a failure under Deny denies',
      results: [result({ status: 'fail', message: 'not signed' })],
      is: { ...ALLOWED, allowed: false, status: denied(['ImageVerificationFailed', FAILED]) },
    },
    {
      name: 'an error under Deny denies',
      results: [result({ status: 'error', message: 'registry down' })],
      is: { ...ALLOWED, allowed: false, status: denied(['ImageVerificationError', ERROR]) },
    },
    {
      name: 'a failure under Warn warns, leaves an audit annotation and allows',
      results: [result({ status: 'fail', message: 'not signed', validationActions: ['Warn'] })],
      is: {
        ...ALLOWED,
        warnings: [FAILED],
        auditAnnotations: { 'image-policy-findings': FAILED },
      },
    },
    {
      name: 'an error under Warn warns, leaves an audit annotation and allows',
      results: [result({ status: 'error', message: 'registry down', validationActions: ['Warn'] })],
      is: {
        ...ALLOWED,
        warnings: [ERROR],
        auditAnnotations: { 'image-policy-findings': ERROR },
      },
    },
    {
      name: 'a failure under Audit leaves an audit annotation and allows',
      results: [result({ status: 'fail', message: 'not signed', validationActions: ['Audit'] })],
      is: { ...ALLOWED, auditAnnotations: { 'image-policy-findings': FAILED } },
    },
    {
      name: 'Deny and Warn do both',
      results: [
        result({ status: 'fail', message: 'not signed', validationActions: ['Deny', 'Warn'] }),
      ],
      is: {
        allowed: false,
        status: denied(['ImageVerificationFailed', FAILED]),
        warnings: [FAILED],
        auditAnnotations: {},
      },
    },
    {
      name: 'one policy that denies outranks others that do not',
      results: [
        result({ policy: 'b', status: 'fail', message: 'x', validationActions: ['Audit'] }),
        result({ policy: 'c' }),
        result({ policy: 'a', status: 'error', message: 'y' }),
      ],
      is: {
        allowed: false,
        status: denied(['ImageVerificationError', 'Policy a error: y']),
        warnings: [],
        auditAnnotations: { 'image-policy-findings': 'Policy b failed: x' },
      },
    },
    {
      name: 'every denial is told, in the order of names',
      results: [
        result({ policy: 'b', status: 'fail', message: 'x' }),
        result({ policy: 'a', status: 'error', message: 'y' }),
      ],
      is: {
        allowed: false,
        status: denied(
          ['ImageVerificationError', 'Policy a error: y'],
          ['ImageVerificationFailed', 'Policy b failed: x'],
        ),
        warnings: [],
        auditAnnotations: {},
      },
    },
    {
      name: 'failing open leaves a warning and an audit annotation whatever the actions',
      results: [result({ status: 'skip', message: 'no such key: x', failedOpen: true })],
      is: {
        allowed: true,
        warnings: ['Policy must-sign not applied: no such key: x'],
        auditAnnotations: {
          'image-policy-failed-open': 'Policy must-sign not applied: no such key: x',
        },
      },
    },
    {
      name: 'a namespaced policy is told by its name, ordered and pointed at by its key',
      results: [
        result({ policy: 'a', key: 'team/a', status: 'fail', message: 'x' }),
        result({ policy: 'b', status: 'fail', message: 'y' }),
      ],
      is: {
        ...ALLOWED,
        allowed: false,
        status: {
          ...denied(),
          message: 'Policy b failed: y; Policy a failed: x',
          details: {
            causes: [
              { reason: 'ImageVerificationFailed', field: 'b', message: 'Policy b failed: y' },
              { reason: 'ImageVerificationFailed', field: 'team/a', message: 'Policy a failed: x' },
            ],
          },
        },
      },
    },
    {
      name: 'a failure has a cause for every image that is known, with what was found of it',
      results: [
        result({
          status: 'fail',
          message: 'not signed',
          images: [
            { image: 'r.test/a:1', reason: 'attestor k: no signature found' },
            { image: 'r.test/b:1', reason: '' },
          ],
        }),
      ],
      is: {
        ...ALLOWED,
        allowed: false,
        status: {
          ...denied(['', FAILED]),
          details: {
            causes: [
              {
                reason: 'ImageVerificationFailed',
                field: 'must-sign[r.test/a:1]',
                message: `${FAILED} (attestor k: no signature found)`,
              },
              {
                reason: 'ImageVerificationFailed',
                field: 'must-sign[r.test/b:1]',
                message: FAILED,
              },
            ],
          },
        },
      },
    },
    {
      name: 'what an exception lets in leaves an audit annotation and no warning',
      results: [
        result({ status: 'skip', message: 'x', exempted: 'rule is skipped' }),
        result({ policy: 'other', exempted: 'exempt are image a (ns/e)' }),
      ],
      is: {
        ...ALLOWED,
        auditAnnotations: {
          'image-policy-exceptions':
            'Policy must-sign: rule is skipped; Policy other: exempt are image a (ns/e)',
        },
      },
    },
    {
      name: "the policies' own annotations are kept on pass and on fail",
      results: [
        result({ auditAnnotations: { team: 'a' } }),
        result({
          policy: 'other',
          status: 'fail',
          message: 'm',
          validationActions: ['Warn'],
          auditAnnotations: { n: '2' },
        }),
        result({ policy: 'silent', auditAnnotations: {} }),
      ],
      is: {
        allowed: true,
        warnings: ['Policy other failed: m'],
        auditAnnotations: {
          'image-policy-findings': 'Policy other failed: m',
          'image-policy-annotations': '{"must-sign":{"team":"a"},"other":{"n":"2"}}',
        },
      },
    },
  ])('$name', ({ results, is }) => {
    expect(decide(results)).toEqual(is)
  })

  test('no status but pass and skip is ever allowed under Deny', () => {
    for (const status of ['pass', 'fail', 'skip', 'error'] as const) {
      for (const extra of [[], ['Audit'], ['Warn'], ['Audit', 'Warn']] as ValidationAction[][]) {
        const ruling = decide([result({ status, validationActions: [...extra, 'Deny'] })])
        expect(ruling.allowed).toBe(status === 'pass' || status === 'skip')
      }
    }
  })

  test('messages and annotations stay within their bounds', () => {
    const long = 'x'.repeat(MAX_MESSAGE_CHARS)
    const ruling = decide([
      result({ policy: 'a', status: 'fail', message: long, validationActions: ['Deny', 'Audit'] }),
      result({ policy: 'b', auditAnnotations: { k: long } }),
      result({ policy: 'c', auditAnnotations: { k: 'v' } }),
    ])
    expect(ruling.status?.message).toHaveLength(MAX_MESSAGE_CHARS)
    expect(ruling.auditAnnotations['image-policy-findings']).toHaveLength(MAX_AUDIT_VALUE_CHARS)
    expect(ruling.auditAnnotations['image-policy-annotations']).toBe('{"c":{"k":"v"}}')
    expect(ruling.status?.details?.causes[0]?.message).toHaveLength(MAX_CAUSE_CHARS)
  })

  test('there are at most so many causes, whoever they are of', () => {
    const images = Array.from({ length: 15 }, (_, i) => ({ image: `i${i}`, reason: '' }))
    const many = Array.from({ length: 30 }, (_, i) =>
      result({ policy: `p${i}`, status: 'fail', message: 'm', images }),
    )
    expect(decide(many).status?.details?.causes).toHaveLength(MAX_LISTED_FAULTS)
  })
})

describe('failsOpen', () => {
  test.each([
    { failurePolicy: 'Fail' as const, is: false },
    { failurePolicy: 'Ignore' as const, is: true },
  ])('$failurePolicy: $is', ({ failurePolicy, is }) => {
    expect(failsOpen({ failurePolicy })).toBe(is)
  })
})
