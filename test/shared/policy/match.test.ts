import { describe, expect, test } from 'vitest'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import { matchesConstraints } from '#shared/policy/match.ts'
import type { MatchConstraints, ResourceRule } from '#shared/policy/types.ts'
import { pod, review, withMetadata } from './review.ts'

function rule(changes: Partial<ResourceRule> = {}): ResourceRule {
  return {
    apiGroups: [''],
    apiVersions: ['v1'],
    operations: ['CREATE', 'UPDATE'],
    resources: ['pods'],
    ...changes,
  }
}

function constraints(changes: Partial<MatchConstraints> = {}): MatchConstraints {
  return { resourceRules: [rule()], excludeResourceRules: [], ...changes }
}

const DEPLOYMENTS = { group: 'apps', version: 'v1', resource: 'deployments' }
const NAMESPACES = { group: '', version: 'v1', resource: 'namespaces' }

describe('matchesConstraints', () => {
  test.each<{
    name: string
    rule: Partial<ResourceRule>
    request?: Partial<AdmissionRequest>
    is: boolean
  }>([
    { name: 'the rule as written', rule: {}, is: true },
    { name: 'another operation', rule: {}, request: { operation: 'DELETE' }, is: false },
    {
      name: 'every operation',
      rule: { operations: ['*'] },
      request: { operation: 'CONNECT' },
      is: true,
    },
    {
      name: 'another group',
      rule: {},
      request: { resource: { ...DEPLOYMENTS, resource: 'pods' } },
      is: false,
    },
    {
      name: 'every group',
      rule: { apiGroups: ['*'], resources: ['deployments'] },
      request: { resource: DEPLOYMENTS },
      is: true,
    },
    { name: 'another version', rule: { apiVersions: ['v2'] }, is: false },
    { name: 'every version', rule: { apiVersions: ['*'] }, is: true },
    { name: 'another resource', rule: { resources: ['services'] }, is: false },
    { name: 'one of several resources', rule: { resources: ['services', 'pods'] }, is: true },
    {
      name: 'pods is not a subresource of pods',
      rule: {},
      request: { subResource: 'ephemeralcontainers' },
      is: false,
    },
    {
      name: 'a subresource by name',
      rule: { resources: ['pods/ephemeralcontainers'] },
      request: { subResource: 'ephemeralcontainers' },
      is: true,
    },
    {
      name: 'a subresource rule is not the resource',
      rule: { resources: ['pods/ephemeralcontainers'] },
      is: false,
    },
    { name: 'every subresource of pods, and pods', rule: { resources: ['pods/*'] }, is: true },
    {
      name: 'every subresource of pods',
      rule: { resources: ['pods/*'] },
      request: { subResource: 'status' },
      is: true,
    },
    { name: 'a star is every resource', rule: { resources: ['*'] }, is: true },
    {
      name: 'a star is no subresource',
      rule: { resources: ['*'] },
      request: { subResource: 'status' },
      is: false,
    },
    {
      name: 'two stars are everything',
      rule: { resources: ['*/*'] },
      request: { subResource: 'status' },
      is: true,
    },
    {
      name: 'one subresource of everything',
      rule: { resources: ['*/scale'] },
      request: { subResource: 'scale' },
      is: true,
    },
    {
      name: 'not another subresource of everything',
      rule: { resources: ['*/scale'] },
      request: { subResource: 'status' },
      is: false,
    },
    { name: 'scope Namespaced takes a Pod', rule: { scope: 'Namespaced' }, is: true },
    { name: 'scope Cluster does not take a Pod', rule: { scope: 'Cluster' }, is: false },
    {
      name: 'scope Cluster takes what has no namespace',
      rule: { scope: 'Cluster' },
      request: { namespace: '' },
      is: true,
    },
    {
      name: 'scope Namespaced does not take what has no namespace',
      rule: { scope: 'Namespaced' },
      request: { namespace: '' },
      is: false,
    },
    {
      name: 'a Namespace is in scope Cluster',
      rule: { scope: 'Cluster', resources: ['namespaces'] },
      request: { resource: NAMESPACES, namespace: 'shop' },
      is: true,
    },
    {
      name: 'a Namespace is not in scope Namespaced',
      rule: { scope: 'Namespaced', resources: ['namespaces'] },
      request: { resource: NAMESPACES, namespace: 'shop' },
      is: false,
    },
    { name: 'scope * takes everything', rule: { scope: '*' }, is: true },
    { name: 'a listed name', rule: { resourceNames: ['db', 'web'] }, is: true },
    { name: 'a name that is not listed', rule: { resourceNames: ['db'] }, is: false },
    { name: 'a listed name is not a prefix', rule: { resourceNames: ['we'] }, is: false },
    { name: 'no listed names', rule: { resourceNames: [] }, is: true },
    {
      name: 'a generated name begins with a listed one',
      rule: { resourceNames: ['web'] },
      request: { name: '', object: withMetadata(pod('a'), { generateName: 'web-' }) },
      is: true,
    },
    {
      name: 'a generated name begins otherwise',
      rule: { resourceNames: ['db'] },
      request: { name: '', object: withMetadata(pod('a'), { generateName: 'web-' }) },
      is: false,
    },
    {
      name: 'neither name nor generateName',
      rule: { resourceNames: ['web'] },
      request: { name: '', object: withMetadata(pod('a'), {}) },
      is: false,
    },
    {
      name: 'the resource the object was converted to counts',
      rule: { apiVersions: ['v1'] },
      request: { requestResource: { group: '', version: 'v0', resource: 'pods' } },
      is: true,
    },
    {
      name: 'the resource the object was converted from does not count',
      rule: { apiVersions: ['v0'] },
      request: { requestResource: { group: '', version: 'v0', resource: 'pods' } },
      is: false,
    },
  ])('$name: $is', ({ rule: changes, request, is }) => {
    expect(
      matchesConstraints(constraints({ resourceRules: [rule(changes)] }), review(request)),
    ).toBe(is)
  })

  test.each<{ name: string; changes: Partial<MatchConstraints>; is: boolean }>([
    {
      name: 'the second rule',
      changes: { resourceRules: [rule({ resources: ['services'] }), rule()] },
      is: true,
    },
    {
      name: 'an exclude rule outranks',
      changes: { excludeResourceRules: [rule({ resourceNames: ['web'] })] },
      is: false,
    },
    {
      name: 'an exclude rule about something else',
      changes: { excludeResourceRules: [rule({ resourceNames: ['db'] })] },
      is: true,
    },
    {
      name: 'an object selector that does not match',
      changes: { objectSelector: { matchLabels: { app: 'db' } } },
      is: false,
    },
    {
      name: 'an object selector that matches',
      changes: { objectSelector: { matchLabels: { app: 'web' } } },
      is: true,
    },
    {
      name: 'a namespace selector that does not match',
      changes: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'prod' } } },
      is: false,
    },
    {
      name: 'a namespace selector that matches',
      changes: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } } },
      is: true,
    },
  ])('$name: $is', ({ changes, is }) => {
    expect(matchesConstraints(constraints(changes), review())).toBe(is)
  })
})
