import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { toJson } from '#shared/cel/to-json.ts'

const environment = createEnvironment({
  profile: 'kubernetes',
  variables: { x: 'dyn' },
  patchTypes: true,
})

function evaluate(expression: string, activation = {}) {
  const compiled = compile(expression, environment)
  if (!compiled.ok) throw new Error(compiled.issues[0]?.message)
  const planned = plan(compiled.checked, {
    profile: 'kubernetes',
    implementations: kubernetesLibrary,
  })
  if (!planned.ok) throw new Error(planned.message)
  return planned.program.evaluate(activation)
}

describe('what mutations build', () => {
  test.each([
    { expression: 'Object{}', json: {}, cost: 40 },
    {
      expression: 'Object{spec: Object.spec{replicas: 3}}',
      json: { spec: { replicas: 3 } },
      cost: 80,
    },
    {
      expression:
        'Object{metadata: Object.metadata{labels: Object.metadata.labels{?app: x.?a, ?tier: x.?b}}}',
      json: { metadata: { labels: { app: 'web' } } },
      cost: 123,
    },
    {
      expression:
        "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y~z'), value: {'n': x.a}}]",
      json: [{ op: 'add', path: '/a/x~1y~0z', value: { n: 'web' } }],
      cost: 84,
    },
    { expression: 'Object{spec: Object.spec{replicas: 3}}.spec.replicas', json: 3, cost: 83 },
    { expression: 'has(Object{}.spec)', json: false, cost: 41 },
    { expression: 'Object{}.spec', json: null, cost: 42 },
    { expression: "JSONPatch{op: 'add'}.from", json: '', cost: 42 },
    { expression: "JSONPatch{op: 'add'}.value", json: null, cost: 42 },
    { expression: 'Object{a: 1} == Object{a: 1}', json: true, cost: 81 },
    { expression: 'Object{a: 1} == Object{b: 1}', json: false, cost: 81 },
  ])('$expression is made at cost $cost', ({ expression, json, cost }) => {
    const outcome = evaluate(expression, { x: { a: 'web' } })
    if (outcome.kind !== 'value') throw new Error(outcome.message)
    expect(toJson(outcome.value)).toEqual(json)
    expect(outcome.cost).toBe(cost)
  })

  test('a field whose value fails makes the message fail, and it is paid for', () => {
    expect(evaluate('Object{spec: Object.spec{n: 1 / 0}}')).toMatchObject({
      kind: 'error',
      cost: 81,
    })
  })
})
