import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { fn, overload } from '#shared/cel/declarations.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { hostFunction } from '#shared/cel/host.ts'
import { int, list, string } from '#shared/cel/implementation.ts'
import { kyvernoLibrary } from '#shared/cel/libraries.ts'
import { Authorizer } from '#shared/cel/library/authorizer.ts'
import { plan } from '#shared/cel/plan.ts'
import { toJson } from '#shared/cel/to-json.ts'
import type { Host, HostAnswer, HostCall } from '#shared/cel/types.ts'
import { CelError, Opaque, Uint } from '#shared/cel/values.ts'
import { run, show } from '#test/shared/cel/run.ts'

const environment = createEnvironment({
  profile: 'kyverno',
  variables: { x: 'dyn' },
  declare: [
    fn('count', overload('count_string_list', ['string', 'list(dyn)'], 'int')),
    fn('ask', overload('ask_int', ['int'], 'bool')),
  ],
})

const implementations = {
  ...kyvernoLibrary,
  count_string_list: hostFunction('count', [string, list]),
  ask_int: hostFunction('ask', [int]),
}

function evaluate(expression: string, host: Host, activation = {}) {
  const compiled = compile(expression, environment)
  if (!compiled.ok) throw new Error(compiled.issues[0]?.message)
  const planned = plan(compiled.checked, { profile: 'kyverno', implementations })
  if (!planned.ok) throw new Error(planned.message)
  return planned.program.evaluate(activation, { host })
}

const answering =
  (answers: Readonly<Record<string, HostAnswer>>): Host =>
  ({ args }) =>
    answers[String(args[0])] ?? { kind: 'pending' }

const yes: HostAnswer = { kind: 'value', value: true }
const no: HostAnswer = { kind: 'value', value: false }
const failed: HostAnswer = { kind: 'error', message: 'no answer' }

class Attestor extends Opaque {
  readonly type = 'test.Attestor'
  readonly key = 'attestor-1'
}

describe('a host call', () => {
  test('gets its arguments as plain data, opaque values as their key', () => {
    const calls: HostCall[] = []
    const host: Host = (call) => {
      calls.push(call)
      return { kind: 'value', value: 2 }
    }
    const activation = { x: [new Attestor(), { a: [1, null] }] }
    expect(evaluate("count('image', x) == 2", host, activation)).toMatchObject({ value: true })
    expect(calls).toEqual([{ name: 'count', args: ['image', ['attestor-1', { a: [1, null] }]] }])
  })

  test.each([
    { expression: 'ask(1) && ask(2)', answers: { 1: yes, 2: yes }, gives: 'true' },
    { expression: 'ask(1) && ask(2)', answers: { 2: no }, gives: 'false' },
    { expression: 'ask(1) || ask(2)', answers: { 2: yes }, gives: 'true' },
    { expression: '[1, 2].all(i, ask(i))', answers: { 2: no }, gives: 'false' },
    { expression: '[1, 2].exists(i, ask(i))', answers: { 2: yes }, gives: 'true' },
    { expression: '[3].map(i, ask(i) ? 1 : 2)', answers: { 3: no }, gives: '[2]' },
  ])('$expression is $gives whatever is still pending', ({ expression, answers, gives }) => {
    expect(show(evaluate(expression, answering(answers)))).toBe(gives)
  })

  test.each([
    { name: 'nothing decides', expression: 'ask(1) && ask(2)', answers: { 1: yes } },
    { name: 'a macro is undecided', expression: '[1, 2].all(i, ask(i))', answers: { 1: yes } },
    { name: 'a condition is pending', expression: 'ask(1) ? 1 : 2', answers: {} },
    { name: 'another call failed too', expression: 'ask(1) && ask(2)', answers: { 1: failed } },
    {
      name: 'the error comes from elsewhere',
      expression: '(ask(1) || true) && x.missing',
      answers: {},
    },
  ])('makes an error pending when $name', ({ expression, answers }) => {
    const outcome = evaluate(expression, answering(answers), { x: {} })
    expect(outcome).toMatchObject({ kind: 'error', code: 'pending' })
  })

  test('that failed is an ordinary error', () => {
    expect(evaluate('ask(1)', answering({ 1: failed }))).toMatchObject({
      code: 'evaluation',
      message: 'no answer',
    })
  })

  test('without a host is an error', () => {
    const planned = compile('ask(1)', environment)
    if (!planned.ok) throw new Error('it is valid')
    const program = plan(planned.checked, { profile: 'kyverno', implementations })
    if (!program.ok) throw new Error(program.message)
    expect(program.program.evaluate({})).toMatchObject({ code: 'evaluation' })
  })
})

describe('authorizer checks', () => {
  const user = { name: 'jane', groups: ['dev'] }
  const authorizer = new Authorizer(user)
  const granting: Host = ({ args }) => ({
    kind: 'value',
    value: { allowed: JSON.stringify(args[0]).includes('"get"'), reason: 'because' },
  })

  test.each([
    { expression: "authorizer.path('/healthz').check('get').allowed()", gives: 'true' },
    { expression: "authorizer.path(' ').check('get').allowed()", gives: 'error' },
    { expression: "authorizer.group('').resource('pods').check('list').allowed()", gives: 'false' },
    { expression: "authorizer.group('').resource('').check('get').allowed()", gives: 'error' },
    { expression: "authorizer.path('/a').check('get').reason()", gives: '"because"' },
    { expression: "authorizer.path('/a').check('get').errored()", gives: 'false' },
    {
      expression: "authorizer.serviceAccount('ns', 'Not_A_Name').path('/a') == null",
      gives: 'error',
    },
  ])('$expression gives $gives', ({ expression, gives }) => {
    expect(show(run(expression, { authorizer }, { host: granting }))).toBe(gives)
  })

  test('carry the user and every attribute, the last one set winning', () => {
    const calls: HostCall[] = []
    const host: Host = (call) => {
      calls.push(call)
      return { kind: 'value', value: { allowed: true } }
    }
    const expression =
      "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').subresource('scale')" +
      ".namespace('a').namespace('b').name('web').fieldSelector('x=1').labelSelector('y').check('get').allowed()"
    expect(run(expression, { authorizer }, { host })).toMatchObject({ value: true })
    expect(calls).toEqual([
      {
        name: 'authorize',
        args: [
          {
            user: {
              name: 'system:serviceaccount:ns:sa',
              groups: ['system:serviceaccounts', 'system:serviceaccounts:ns'],
            },
            verb: 'get',
            group: 'apps',
            resource: 'deployments',
            subresource: 'scale',
            namespace: 'b',
            name: 'web',
            fieldSelector: 'x=1',
            labelSelector: 'y',
          },
        ],
      },
    ])
  })
})

describe('toJson', () => {
  test.each([
    { expression: "{'a': [1, 2.5, 'x', null, true]}", json: { a: [1, 2.5, 'x', null, true] } },
    { expression: "{1: b'hi', true: 'b'}", json: { 1: 'aGk=', true: 'b' } },
    {
      expression: "[duration('90s'), timestamp('2024-01-01T00:00:00Z')]",
      json: ['90s', '2024-01-01T00:00:00Z'],
    },
    { expression: '[optional.of(1), optional.none()]', json: [1, null] },
    { expression: "{'__proto__': 1}", json: JSON.parse('{"__proto__": 1}') },
    { expression: "[cidr('10.0.0.0/8')]", json: ['10.0.0.0/8'] },
  ])('of $expression', ({ expression, json }) => {
    const outcome = run(expression, {}, { profile: 'spec' })
    if (outcome.kind !== 'value') throw new Error(outcome.message)
    expect(toJson(outcome.value)).toEqual(json)
  })

  test('has no JSON for a type, and keeps a uint as an integer', () => {
    const outcome = run('[int]')
    if (outcome.kind !== 'value') throw new Error(outcome.message)
    expect(toJson(outcome.value)).toBeInstanceOf(CelError)
    expect(toJson(new Uint(2n ** 64n - 1n))).toBe(2n ** 64n - 1n)
  })
})
