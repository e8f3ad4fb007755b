import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseReview, peekUid, readUid } from '#shared/admission/review.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { copyJson, type JsonValue, parseJson } from '#shared/json.ts'

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'registry.test/web:1' }] },
}

/** A request of the API server with some members replaced; undefined leaves a member out. */
function review(changes: { [key: string]: JsonValue | undefined } = {}): {
  [key: string]: JsonValue
} {
  const request: { [key: string]: JsonValue | undefined } = {
    uid: '6e2b3f0a-0c7e-4a0f-8a5e-1f5f6b6f7a10',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    requestKind: { group: '', version: 'v1', kind: 'Pod' },
    requestResource: { group: '', version: 'v1', resource: 'pods' },
    name: 'web',
    namespace: 'shop',
    operation: 'CREATE',
    userInfo: { username: 'jane', groups: ['dev'], extra: { scopes: ['a', 'b'] } },
    object: POD,
    oldObject: null,
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    ...changes,
  }
  for (const key of Object.keys(request)) if (request[key] === undefined) delete request[key]
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: request as { [key: string]: JsonValue },
  }
}

function faultsOf(value: JsonValue): readonly Fault[] {
  try {
    parseReview(value)
  } catch (thrown) {
    if (thrown instanceof AdmissionError && thrown.code === 'REVIEW_INVALID') return thrown.faults
    throw thrown
  }
  throw new Error('accepted')
}

describe('parseReview', () => {
  test('gives the request of a CREATE', () => {
    expect(parseReview(review())).toEqual({
      uid: '6e2b3f0a-0c7e-4a0f-8a5e-1f5f6b6f7a10',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      requestKind: { group: '', version: 'v1', kind: 'Pod' },
      requestResource: { group: '', version: 'v1', resource: 'pods' },
      name: 'web',
      namespace: 'shop',
      operation: 'CREATE',
      userInfo: { username: 'jane', groups: ['dev'], extra: { scopes: ['a', 'b'] } },
      object: POD,
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    })
  })

  test.each([
    { name: 'an UPDATE has both objects', changes: { operation: 'UPDATE', oldObject: POD } },
    {
      name: 'a DELETE has the old object only',
      changes: { operation: 'DELETE', object: null, oldObject: POD },
    },
    { name: 'a DELETE may have none', changes: { operation: 'DELETE', object: null } },
    {
      name: 'a CONNECT has its options as object',
      changes: {
        operation: 'CONNECT',
        object: { kind: 'PodExecOptions', command: ['sh'] },
        options: null,
        subResource: 'exec',
        requestSubResource: 'exec',
      },
    },
    {
      name: 'a name that is still to be generated is absent',
      changes: { name: undefined, object: { metadata: { generateName: 'web-' } } },
    },
    { name: 'a cluster-scoped object has no namespace', changes: { namespace: undefined } },
    {
      name: 'null stands for absent as in Go',
      changes: {
        subResource: null,
        dryRun: null,
        requestKind: null,
        options: null,
        userInfo: { groups: null, extra: { a: null } },
      },
    },
    { name: 'members of a newer API server are ignored', changes: { trace: { id: 1 } } },
    { name: 'an object without metadata is one', changes: { object: { kind: 'Eviction' } } },
    { name: 'annotations may be null', changes: { object: { metadata: { annotations: null } } } },
  ])('accepts: $name', ({ changes }) => {
    expect(parseReview(review(changes)).uid).toBe('6e2b3f0a-0c7e-4a0f-8a5e-1f5f6b6f7a10')
  })

  test('leaves out optional members that are empty', () => {
    const request = parseReview(
      review({ name: '', subResource: '', namespace: undefined, requestKind: undefined }),
    )
    expect(Object.keys(request).sort()).toEqual([
      'dryRun',
      'kind',
      'object',
      'oldObject',
      'operation',
      'options',
      'requestResource',
      'resource',
      'uid',
      'userInfo',
    ])
  })

  test.each([
    { name: 'null', value: null, path: '(review)', message: 'must be an object, is null' },
    { name: 'a list', value: [], path: '(review)', message: 'must be an object, is a list' },
    {
      name: 'an empty object',
      value: {},
      path: 'apiVersion',
      message: 'must be "admission.k8s.io/v1", is missing',
    },
    {
      name: 'v1beta1',
      value: { ...review(), apiVersion: 'admission.k8s.io/v1beta1' },
      path: 'apiVersion',
      message:
        'admission.k8s.io/v1beta1 is not supported; list "v1" first in admissionReviewVersions of the webhook',
    },
    {
      name: 'another kind',
      value: { ...review(), kind: 'ImageReview' },
      path: 'kind',
      message: 'must be "AdmissionReview", is "ImageReview"',
    },
    {
      name: 'no request',
      value: { ...review(), request: null },
      path: 'request',
      message: 'must be an object, is null',
    },
    {
      name: 'an empty uid',
      value: review({ uid: '' }),
      path: 'request.uid',
      message: 'must not be empty',
    },
    {
      name: 'a uid that is a number',
      value: review({ uid: 1 }),
      path: 'request.uid',
      message: 'must be a string, is a number',
    },
    {
      name: 'a uid that is huge',
      value: review({ uid: 'x'.repeat(1025) }),
      path: 'request.uid',
      message: 'has 1025 characters, at most 1024 may be',
    },
    {
      name: 'no kind',
      value: review({ kind: undefined }),
      path: 'request.kind',
      message: 'must be an object, is missing',
    },
    {
      name: 'a kind that is a string',
      value: review({ kind: 'Pod' }),
      path: 'request.kind',
      message: 'must be an object, is "Pod"',
    },
    {
      name: 'a kind without group',
      value: review({ kind: { version: 'v1', kind: 'Pod' } }),
      path: 'request.kind.group',
      message: 'must be a string, is missing',
    },
    {
      name: 'a bad requestResource',
      value: review({ requestResource: { group: '', version: 'v1', resource: 7n } }),
      path: 'request.requestResource.resource',
      message: 'must be a string, is a number',
    },
    {
      name: 'an operation in lower case',
      value: review({ operation: 'create' }),
      path: 'request.operation',
      message: 'must be one of CREATE, UPDATE, DELETE, CONNECT, is "create"',
    },
    {
      name: 'no operation',
      value: review({ operation: undefined }),
      path: 'request.operation',
      message: 'must be one of CREATE, UPDATE, DELETE, CONNECT, is missing',
    },
    {
      name: 'no userInfo',
      value: review({ userInfo: undefined }),
      path: 'request.userInfo',
      message: 'must be an object, is missing',
    },
    {
      name: 'groups that are a string',
      value: review({ userInfo: { groups: 'dev' } }),
      path: 'request.userInfo.groups',
      message: 'must be a list of strings, is "dev"',
    },
    {
      name: 'a group that is a number',
      value: review({ userInfo: { groups: ['a', 1] } }),
      path: 'request.userInfo.groups[1]',
      message: 'must be a string, is a number',
    },
    {
      name: 'an extra that is a string',
      value: review({ userInfo: { extra: { a: 'b' } } }),
      path: 'request.userInfo.extra["a"]',
      message: 'must be a list of strings, is "b"',
    },
    {
      name: 'CREATE without object',
      value: review({ object: null }),
      path: 'request.object',
      message: 'must be an object on CREATE, is null',
    },
    {
      name: 'CREATE with an old object',
      value: review({ oldObject: POD }),
      path: 'request.oldObject',
      message: 'must be null on CREATE',
    },
    {
      name: 'UPDATE without object',
      value: review({ operation: 'UPDATE', object: undefined }),
      path: 'request.object',
      message: 'must be an object on UPDATE, is null',
    },
    {
      name: 'DELETE with an object',
      value: review({ operation: 'DELETE' }),
      path: 'request.object',
      message: 'must be null on DELETE',
    },
    {
      name: 'CONNECT without options object',
      value: review({ operation: 'CONNECT', object: null }),
      path: 'request.object',
      message: 'must be an object on CONNECT, is null',
    },
    {
      name: 'an object that is a list',
      value: review({ object: [] }),
      path: 'request.object',
      message: 'must be an object, is a list',
    },
    {
      name: 'metadata that is a string',
      value: review({ object: { metadata: 'x' } }),
      path: 'request.object.metadata',
      message: 'must be an object, is "x"',
    },
    {
      name: 'annotations that are a list',
      value: review({ object: { metadata: { annotations: [] } } }),
      path: 'request.object.metadata.annotations',
      message: 'must be an object, is a list',
    },
    {
      name: 'a label that is a number',
      value: review({ object: { metadata: { labels: { a: 1 } } } }),
      path: 'request.object.metadata.labels["a"]',
      message: 'must be a string, is a number',
    },
    {
      name: 'a generateName that is a list',
      value: review({ object: { metadata: { generateName: [] } } }),
      path: 'request.object.metadata.generateName',
      message: 'must be a string, is a list',
    },
    {
      name: 'dryRun as text',
      value: review({ dryRun: 'true' }),
      path: 'request.dryRun',
      message: 'must be a boolean, is "true"',
    },
    {
      name: 'options as text',
      value: review({ options: 'x' }),
      path: 'request.options',
      message: 'must be an object, is "x"',
    },
  ])('refuses $name', ({ value, path, message }) => {
    expect(faultsOf(value)).toContainEqual({ path, message })
  })

  test('names every bad path at once', () => {
    const value = review({
      uid: 7,
      kind: null,
      operation: 'PATCH',
      userInfo: [],
      dryRun: 0,
      namespace: {},
    })
    const paths = faultsOf({ ...value, apiVersion: 'v1' }).map(({ path }) => path)
    expect(paths).toEqual([
      'apiVersion',
      'request.uid',
      'request.kind',
      'request.operation',
      'request.userInfo',
      'request.namespace',
      'request.dryRun',
    ])
  })

  test('keeps a bounded number of faults and says how many there are', () => {
    const labels = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`l${i}`, i]))
    const value = review({ object: { metadata: { labels } } })
    expect(faultsOf(value)).toHaveLength(1000)
    expect(() => parseReview(value)).toThrow('; and 4980 more')
  })

  test('does not see later changes of the envelope', () => {
    const value = review()
    const parsed = parseReview(value)
    const before = copyJson(parsed as unknown as JsonValue)
    const request = value.request as { [key: string]: { [key: string]: JsonValue } }
    request.kind!.kind = 'Secret'
    request.options!.dryRun = ['All']
    ;(request.userInfo!.groups as JsonValue[]).push('system:masters')
    ;(request.userInfo!.extra as { [key: string]: JsonValue[] }).scopes!.push('c')
    request.oldObject = POD
    expect(parsed).toEqual(before)
  })

  test('inherited members are not members', () => {
    const value = review()
    expect(faultsOf(Object.create(value) as JsonValue)[0]).toEqual({
      path: 'apiVersion',
      message: 'must be "admission.k8s.io/v1", is missing',
    })
    const polluted = parseJson(
      '{"__proto__":{"kind":"AdmissionReview"},"request":{"__proto__":{"uid":"x"}}}',
    )
    expect(faultsOf(polluted).map(({ path }) => path)).toContain('request.uid')
    expect(readUid(polluted)).toBeUndefined()
  })

  test('a user called __proto__ in extra stays data', () => {
    const value = parseJson(
      JSON.stringify(review()).replace('"scopes":', '"__proto__":["x"],"scopes":'),
    )
    const { extra } = parseReview(value).userInfo
    expect(Object.entries(extra ?? {})).toEqual([
      ['__proto__', ['x']],
      ['scopes', ['a', 'b']],
    ])
  })

  test('throws nothing but REVIEW_INVALID', () => {
    const key = fc.constantFrom(
      'kind',
      'resource',
      'operation',
      'userInfo',
      'object',
      'oldObject',
      'options',
      'uid',
      'dryRun',
    )
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue()), (changes) => {
        try {
          parseReview(review(changes as { [key: string]: JsonValue }))
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'REVIEW_INVALID' })
        }
      }),
    )
  })
})

describe('readUid', () => {
  test.each([
    {
      name: 'a review that is wrong elsewhere',
      value: { request: { uid: 'abc', operation: 'NOPE' } },
      uid: 'abc',
    },
    { name: 'no request', value: { kind: 'AdmissionReview' }, uid: undefined },
    { name: 'a uid that is no string', value: { request: { uid: {} } }, uid: undefined },
    { name: 'an empty uid', value: { request: { uid: '' } }, uid: undefined },
    {
      name: 'a uid too long to send back',
      value: { request: { uid: 'x'.repeat(2000) } },
      uid: undefined,
    },
    { name: 'a string', value: 'uid', uid: undefined },
  ])('$name', ({ value, uid }) => {
    expect(readUid(value)).toBe(uid)
  })
})

describe('peekUid', () => {
  const head =
    '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"6e2b-AA"'
  test.each([
    { name: 'the head of a cut body', text: `${head},"kind":{"gro`, uid: '6e2b-AA' },
    {
      name: 'white space between the members',
      text: head.replaceAll(':', ' :\n '),
      uid: '6e2b-AA',
    },
    { name: 'a uid that is cut itself', text: head.slice(0, -1), uid: undefined },
    { name: 'another kind', text: head.replace('AdmissionReview', 'ImageReview'), uid: undefined },
    {
      name: 'a uid further inside',
      text: '{"kind":"AdmissionReview","request":{"object":{"uid":"a"}}}',
      uid: undefined,
    },
    { name: 'a uid with an escape', text: head.replace('6e2b', '\\u0041'), uid: undefined },
    { name: 'text', text: 'hello', uid: undefined },
  ])('$name', ({ text, uid }) => {
    expect(peekUid(text)).toBe(uid)
  })
})
