import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import {
  KYVERNO_CONTEXTS,
  KYVERNO_FUNCTIONS,
  KYVERNO_PORTS,
  KYVERNO_TYPES,
  NAMESPACED_RESOURCE_FUNCTIONS,
} from '#shared/cel/declare/kyverno.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { kyvernoLibrary } from '#shared/cel/libraries.ts'
import { kyvernoFunctions } from '#shared/cel/library/kyverno.ts'
import { KYVERNO_CONTEXT_VALUES } from '#shared/cel/library/kyverno-context.ts'
import { kyvernoHostFunctions } from '#shared/cel/library/kyverno-host.ts'
import { plan } from '#shared/cel/plan.ts'
import { type TaggedValue, toTagged } from '#shared/cel/tagged.ts'
import type { Host, HostCall } from '#shared/cel/types.ts'

const declare = [...KYVERNO_FUNCTIONS, ...Object.values(KYVERNO_PORTS).flat()]
const environment = createEnvironment({
  profile: 'kyverno',
  variables: { ...KYVERNO_CONTEXTS, object: 'dyn' },
  objectTypes: KYVERNO_TYPES,
  declare,
})
/** As in a namespaced policy. */
const namespaced = createEnvironment({
  profile: 'kyverno',
  variables: KYVERNO_CONTEXTS,
  objectTypes: KYVERNO_TYPES,
  declare: NAMESPACED_RESOURCE_FUNCTIONS,
})
const implementations = { ...kyvernoLibrary, ...kyvernoFunctions, ...kyvernoHostFunctions }

function run(source: string, host?: Host, where = environment) {
  const result = compile(source, where)
  if (!result.ok) throw new Error(`${source}: ${result.issues[0]?.message}`)
  const planned = plan(result.checked, { profile: 'kyverno', implementations })
  if (!planned.ok) throw new Error(planned.message)
  const activation = { ...KYVERNO_CONTEXT_VALUES, object: { name: 'a' } }
  const outcome = planned.program.evaluate(activation, host === undefined ? {} : { host })
  return { needs: result.checked.needs, outcome }
}

function valueAt(source: string, host?: Host): TaggedValue | string {
  const { outcome } = run(source, host)
  return outcome.kind === 'value' ? toTagged(outcome.value) : outcome.message
}

describe('functions that need nothing', () => {
  test.each<[string, TaggedValue | string]>([
    ['json.unmarshal("[1, 2.5]")', { list: [{ double: '1' }, { double: '2.5' }] }],
    ['json.unmarshal("{\\"a\\": 12345678901234567890}").a', { double: '1.2345678901234567e+19' }],
    ['json.unmarshal("null")', { null: true }],
    ['json.unmarshal("{\\"__proto__\\": true}")["__proto__"]', { bool: true }],
    [
      'json.marshal({"b": dyn([dyn(1), dyn(2u), dyn(1.0), dyn(1.5)]), "a": dyn("<")})',
      { string: '{"a":"\\u003c","b":[1,2,1,1.5]}' },
    ],
    ['json.marshal(b"foo")', { string: '"Zm9v"' }],
    ['json.marshal(null)', { string: 'null' }],
    ['json.marshal(object)', { string: '{"name":"a"}' }],
    ['json.marshal([1.0 / 0.0])', 'json: unsupported value: Infinity'],
    ['json.marshal(json.unmarshal("{\\"a\\":[1]}"))', { string: '{"a":[1]}' }],
    ['md5("abc")', { string: '900150983cd24fb0d6963f7d28e17f72' }],
    ['hash.sha1("abc")', { string: 'a9993e364706816aba3e25717850c26c9cd0d89d' }],
    ['parseServiceAccount("system:serviceaccount:ns:name").Name', { string: 'name' }],
    ['user.parseServiceAccount("system:serviceaccount:ns:a:b").Name', { string: 'a:b' }],
    ['parseServiceAccount("system:serviceaccount:ns:name").Namespace', { string: 'ns' }],
    ['parseServiceAccount("system:serviceaccount:ns").Namespace', { string: '' }],
    ['parseServiceAccount("jane").Name', { string: '' }],
    [
      'listObjToMap([{"k": "a"}], [{"v": 1}], "k", "v")',
      { map: [[{ string: 'a' }, { int: '1' }]] },
    ],
    [
      'transform.listObjToMap([{"k": "a"}], [{"v": 1}], "k", "w")',
      { map: [[{ string: 'a' }, { null: true }]] },
    ],
    [
      'listObjToMap([], [{"v": 1}], "k", "v")',
      'listObjToMap must take lists of equal length. list1: 0, list2: 1',
    ],
    [
      'listObjToMap([{"k": 1}], [{"v": 1}], "k", "v")',
      'the passed key name cannot be handled as a string in the key object list',
    ],
    ['listObjToMap([1], [{"v": 1}], "k", "v")', 'object cannot be handled as a map'],
    ['math.round(2.345, 2)', { double: '2.35' }],
    ['math.round(-2.5, 0)', { double: '-3' }],
    ['math.round(1234.0, -2)', { double: '1200' }],
    ['time.toCron(timestamp("2024-02-29T23:05:59.9Z"))', { string: '5 23 29 2 4' }],
    ['time.toCron(timestamp("1969-12-31T23:59:59.9999Z"))', { string: '59 23 31 12 3' }],
    [
      'time.truncate(timestamp("2024-02-29T23:05:59.9Z"), duration("1h"))',
      { timestamp: '2024-02-29T23:00:00Z' },
    ],
    [
      'time.truncate(timestamp("1969-12-31T23:05:59Z"), duration("24h"))',
      { timestamp: '1969-12-31T00:00:00Z' },
    ],
    [
      'time.truncate(timestamp("2024-02-29T23:05:59.9Z"), duration("0s"))',
      { timestamp: '2024-02-29T23:05:59.9Z' },
    ],
    // Weeks are counted from the first day of the year 1, a Monday.
    [
      'time.truncate(timestamp("2024-02-29T23:05:59Z"), duration("168h"))',
      { timestamp: '2024-02-26T00:00:00Z' },
    ],
  ])('%s', (source, expected) => {
    expect(valueAt(source)).toEqual(expected)
  })

  test('text that is not JSON is an error', () => {
    expect(run('json.unmarshal("{")').outcome.kind).toBe('error')
  })

  test('none of them needs a host', () => {
    expect(run('json.unmarshal(json.marshal(sha256("a"))) == null').needs).toEqual([])
  })
})

describe('functions the host answers', () => {
  test.each<[string, string, HostCall]>([
    [
      'resource.Get("v1", "pods", "ns", "a").size() == 0',
      'resource',
      { name: 'resource.Get', args: ['v1', 'pods', 'ns', 'a'] },
    ],
    [
      'resource.list("v1", "pods", "ns").size() == 0',
      'resource',
      { name: 'resource.List', args: ['v1', 'pods', 'ns', {}] },
    ],
    [
      'resource.List("v1", "pods", "ns", {"a": "b"}) == {}',
      'resource',
      { name: 'resource.List', args: ['v1', 'pods', 'ns', { a: 'b' }] },
    ],
    [
      'resource.post("v1", "pods", {"a": object}) == {}',
      'resource',
      { name: 'resource.Post', args: ['v1', 'pods', '', { a: { name: 'a' } }] },
    ],
    [
      'resource.Post("v1", "pods", "ns", {"a": object}) == {}',
      'resource',
      { name: 'resource.Post', args: ['v1', 'pods', 'ns', { a: { name: 'a' } }] },
    ],
    [
      'globalContext.Get("g") == null',
      'globalContext',
      { name: 'globalContext.Get', args: ['g', ''] },
    ],
    [
      'globalContext.get("g", "p") == null',
      'globalContext',
      { name: 'globalContext.Get', args: ['g', 'p'] },
    ],
    [
      'dyn(globalContext).get("g", "p") == null',
      'globalContext',
      { name: 'globalContext.Get', args: ['g', 'p'] },
    ],
    ['http.Get("u") == null', 'http', { name: 'http.Get', args: ['u', {}, ''] }],
    [
      'http.client("ca").get("u", {"a": "b"}) == null',
      'http',
      { name: 'http.Get', args: ['u', { a: 'b' }, 'ca'] },
    ],
    [
      'http.Post("u", {"a": 1}) == null',
      'http',
      { name: 'http.Post', args: ['u', { a: 1 }, {}, ''] },
    ],
    [
      'http.put("u", [1u], {"a": "b"}) == null',
      'http',
      { name: 'http.Put', args: ['u', [1], { a: 'b' }, ''] },
    ],
    ['yaml.parse("a: b") == null', 'yaml', { name: 'yaml.parse', args: ['a: b'] }],
    ['gzip.decompress(b"\\x00") == ""', 'gzip', { name: 'gzip.decompress', args: ['AA=='] }],
    ['random() == "a"', 'random', { name: 'random', args: ['[0-9a-z]{8}'] }],
    ['random.random("[a-f]") == "a"', 'random', { name: 'random', args: ['[a-f]'] }],
  ])('%s', (source, need, call) => {
    const calls: HostCall[] = []
    const { needs } = run(source, (made) => {
      calls.push(made)
      return { kind: 'value', value: {} }
    })
    expect(calls).toEqual([call])
    expect(needs).toContain(need)
  })

  test.each<[string, Awaited<ReturnType<Host>>, TaggedValue | string]>([
    [
      'time.now()',
      { kind: 'value', value: '2024-02-29T00:00:00Z' },
      { timestamp: '2024-02-29T00:00:00Z' },
    ],
    ['time.now()', { kind: 'value', value: 1 }, 'time.now: no timestamp'],
    ['gzip.compress("a")', { kind: 'value', value: 'AA==' }, { bytes: 'AA==' }],
    [
      'gzip.compress("a")',
      { kind: 'value', value: '?' },
      'gzip.compress: the host did not answer with base64',
    ],
    ['gzip.compress(1)', { kind: 'value', value: 'AA==' }, 'gzip.compress takes a string'],
    [
      'http.Get("u")',
      { kind: 'error', message: 'request failed: no route' },
      'request failed: no route',
    ],
    ['http.Get("u")', { kind: 'pending' }, 'http.Get: the answer is pending'],
    ['http.Post("u", type(1))', { kind: 'pending' }, 'no JSON for a value of type type'],
    [
      'resource.ToGVR("v1", "Pod")',
      { kind: 'value', value: {} },
      'resource.ToGVR: the host did not answer with apiVersion and resource',
    ],
    [
      'resource.ToGVR("v1", "Pod")',
      { kind: 'value', value: null },
      'resource.ToGVR: the host did not answer with apiVersion and resource',
    ],
  ])('%s, answered with %j', (source, answer, expected) => {
    expect(valueAt(source, () => answer)).toEqual(expected)
  })

  test('what ToGVR gave is looked up by its parts', () => {
    const calls: HostCall[] = []
    valueAt('resource.get(resource.toGVR("apps/v1", "Deployment"), "ns", "a")', (call) => {
      calls.push(call)
      return { kind: 'value', value: { apiVersion: 'apps/v1', resource: 'deployments' } }
    })
    expect(calls[1]).toEqual({ name: 'resource.Get', args: ['apps/v1', 'deployments', 'ns', 'a'] })
  })

  test.each<[string, HostCall]>([
    [
      'resource.Get("v1", "pods", "a") == {}',
      { name: 'resource.Get', args: ['v1', 'pods', null, 'a'] },
    ],
    [
      'resource.list("v1", "pods") == {}',
      { name: 'resource.List', args: ['v1', 'pods', null, {}] },
    ],
    [
      'resource.List("v1", "pods", {"a": "b"}) == {}',
      { name: 'resource.List', args: ['v1', 'pods', null, { a: 'b' }] },
    ],
    [
      'resource.get(resource.toGVR("apps/v1", "Deployment"), "a") == {}',
      { name: 'resource.Get', args: ['apps/v1', 'deployments', null, 'a'] },
    ],
    [
      'resource.List(resource.ToGVR("apps/v1", "Deployment")) == {}',
      { name: 'resource.List', args: ['apps/v1', 'deployments', null, {}] },
    ],
    [
      'resource.list(resource.toGVR("apps/v1", "Deployment"), {"a": "b"}) == {}',
      { name: 'resource.List', args: ['apps/v1', 'deployments', null, { a: 'b' }] },
    ],
  ])('in a namespaced policy %s names no namespace', (source, call) => {
    const calls: HostCall[] = []
    const host: Host = (made) => {
      calls.push(made)
      return { kind: 'value', value: { apiVersion: 'apps/v1', resource: 'deployments' } }
    }
    run(source, host, namespaced)
    expect(calls.at(-1)).toEqual(call)
  })

  test.each([
    'resource.get("v1", "pods", "ns", "a") == null',
    'resource.list("v1", "pods", "ns") == null',
    'resource.list(resource.toGVR("v1", "Pod"), "ns") == null',
  ])('a namespaced policy cannot write %s', (source) => {
    expect(compile(source, namespaced).ok).toBe(false)
  })

  test('without a host they are errors', () => {
    expect(valueAt('http.Get("u")')).toBe('http.Get: no host answers here')
  })
})

test('every overload that is declared has an implementation, and the reverse', () => {
  const all = [...declare, ...NAMESPACED_RESOURCE_FUNCTIONS]
  const declared = [...new Set(all.flatMap(({ overloads }) => overloads.map(({ id }) => id)))]
  const implemented = Object.keys({ ...kyvernoFunctions, ...kyvernoHostFunctions })
  expect(declared.sort()).toEqual(implemented.sort())
})

test('a function whose port is not declared is unknown', () => {
  const bare = createEnvironment({ profile: 'kyverno', variables: {}, declare: KYVERNO_FUNCTIONS })
  const result = compile('time.now() > timestamp(0)', bare)
  expect(result.ok ? [] : result.issues.map(({ message }) => message)).toContain(
    "undeclared reference to 'time' (in container '')",
  )
})
