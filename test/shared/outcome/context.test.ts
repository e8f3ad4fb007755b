import { describe, expect, test } from 'vitest'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { sealContext } from '#shared/outcome/context.ts'

const REQUEST: AdmissionRequest = {
  uid: 'u',
  kind: { group: '', version: 'v1', kind: 'Pod' },
  resource: { group: '', version: 'v1', resource: 'pods' },
  name: 'web',
  namespace: 'shop',
  operation: 'CREATE',
  userInfo: {},
  object: { metadata: { name: 'web' } },
  oldObject: null,
  options: null,
}

const CONTEXT = {
  cluster: 'prod',
  resource: '/v1/pods',
  namespace: 'shop',
  operation: 'CREATE',
  name: ['n', 'web'],
}

const generated = { metadata: { generateName: 'web-' } }

describe('sealContext', () => {
  test.each<{ name: string; changes: Partial<AdmissionRequest>; expected: object }>([
    { name: 'a named object', changes: {}, expected: {} },
    {
      name: 'the original resource counts, not the converted one',
      changes: { requestResource: { group: 'apps', version: 'v1beta1', resource: 'deployments' } },
      expected: { resource: 'apps/v1beta1/deployments' },
    },
    {
      name: 'a subresource is part of the resource',
      changes: { subResource: 'x', requestSubResource: 'ephemeralcontainers', operation: 'UPDATE' },
      expected: { resource: '/v1/pods/ephemeralcontainers', operation: 'UPDATE' },
    },
    {
      name: 'a generated name counts by its beginning',
      changes: { name: '', object: generated },
      expected: { name: ['g', 'web-'] },
    },
    {
      name: 'also once the API server has made it up',
      changes: {
        name: 'web-x7k2p',
        object: { metadata: { generateName: 'web-', name: 'web-x7k2p' } },
      },
      expected: { name: ['g', 'web-'] },
    },
    {
      name: 'not on UPDATE, where the object has its name',
      changes: { operation: 'UPDATE', name: 'web-x7k2p', object: generated },
      expected: { operation: 'UPDATE', name: ['n', 'web-x7k2p'] },
    },
    {
      name: 'an empty generateName is none',
      changes: { object: { metadata: { generateName: '' } } },
      expected: {},
    },
    {
      name: 'a generateName that is no string is none',
      changes: { object: { metadata: { generateName: ['web'] } } },
      expected: {},
    },
    {
      name: 'a cluster-scoped object',
      changes: { namespace: undefined as never },
      expected: { namespace: '' },
    },
    {
      name: 'no object and no name',
      changes: { operation: 'DELETE', object: null, name: undefined as never },
      expected: { operation: 'DELETE', name: ['n', ''] },
    },
  ])('$name', ({ changes, expected }) => {
    expect(sealContext({ ...REQUEST, ...changes }, 'prod')).toEqual({ ...CONTEXT, ...expected })
  })
})
