import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { compose } from '#shared/cel/composition.ts'
import { hostFn, overload } from '#shared/cel/declarations.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { createEnvironment, type Environment } from '#shared/cel/environment.ts'
import { print } from '#shared/cel/print.ts'

function outcome(source: string, environment: Environment): string {
  const result = compile(source, environment)
  return result.ok ? result.checked.type : `${result.issues[0]?.message}`
}

function kubernetes(minor?: number): Environment {
  return createEnvironment({
    profile: 'kubernetes',
    variables: ADMISSION_VARIABLES,
    ...(minor === undefined ? {} : { minor }),
  })
}

describe('functions arrive with the version that introduced them', () => {
  test.each([
    [30, "ip('::1').family()", 'int'],
    [30, "cidr('::/0').containsIP('::1')", 'bool'],
    [30, 'sets.contains([1], [1])', 'bool'],
    [30, "quantity('1').add(1).isInteger()", 'bool'],
    [30, "'a'.find('a') + url('/a').getHost()", 'string'],
    [30, "strings.quote('a') + '%s'.format([1])", 'string'],
    [30, '[1].first().hasValue()', 'bool'],
    [31, "format.dns1123Label().validate('a')", 'optional_type(list(string))'],
    [
      31,
      "authorizer.group('').resource('a').labelSelector('b')",
      'kubernetes.authorization.ResourceCheck',
    ],
    [33, "semver('1.0', true).major()", 'int'],
    [34, '[1, 2].slice(0, 1).reverse().distinct()', 'list(int)'],
    [34, 'lists.range(3).sort()', 'list(int)'],
    [37, '[1].includes(1)', 'bool'],
  ])('from 1.%i: %s', (minor, source, type) => {
    expect(outcome(source, kubernetes(minor))).toBe(type)
    if (minor > 30) expect(outcome(source, kubernetes(minor - 1))).toMatch(/undeclared|no matching/)
    expect(outcome(source, kubernetes())).toBe(type)
  })

  test.each([
    ['math.abs(-1)'],
    ["base64.encode(b'a')"],
    ["regex.extract('a', 'a')"],
    ["'a'.reverse()"],
  ])('the API server never has %s', (source) => {
    expect(outcome(source, kubernetes())).toMatch(/undeclared|no matching/)
  })

  test.each([
    ['math.abs(-1)', 'int'],
    ["base64.encode(b'a')", 'string'],
    ["regex.extract('a', 'a')", 'optional_type(string)'],
    ['request.object.metadata', 'dyn'],
    ["semver('1.0.0').minor()", 'int'],
  ])('Kyverno has %s', (source, type) => {
    const environment = createEnvironment({ profile: 'kyverno', variables: ADMISSION_VARIABLES })
    expect(outcome(source, environment)).toBe(type)
  })

  test.each([29, 38, 30.5])('Kubernetes 1.%f cannot be imitated', (minor) => {
    expect(() => kubernetes(minor)).toThrow(`Kubernetes 1.${minor} is not one of 1.30 to 1.37`)
  })
})

describe('variables of an admission policy', () => {
  test.each([
    ['request.userInfo.extra', 'map(string, list(string))'],
    ['request.kind.group', 'string'],
    ['request.dryRun', 'bool'],
    ['request.options.anything', 'dyn'],
    ['request.uid', "undefined field 'uid'"],
    ['request.object', "undefined field 'object'"],
    ['namespaceObject.metadata.creationTimestamp', 'timestamp'],
    ['namespaceObject.metadata.UID', 'string'],
    ['namespaceObject.metadata.uid', "undefined field 'uid'"],
    ['namespaceObject.status.conditions[0].lastTransitionTime', 'timestamp'],
    ['object.metadata.namespace', 'dyn'],
    ["authorizer.requestResource.check('get').allowed()", 'bool'],
    ["authorizer.path('/a').check('get').reason()", 'string'],
    ["authorizer.group('')", 'kubernetes.authorization.GroupCheck'],
    ['authorizer.foo', "unexpected failed resolution of 'kubernetes.authorization.Authorizer'"],
    ['params', "undeclared reference to 'params' (in container '')"],
  ])('%s: %s', (source, expected) => {
    expect(outcome(source, kubernetes())).toBe(expected)
  })
})

describe('variables of a policy see those before them', () => {
  const composed = compose(kubernetes(), [
    { name: 'names', expression: 'object.spec.containers.map(c, string(c.name))' },
    { name: 'count', expression: 'variables.names.size()' },
    { name: 'late', expression: 'variables.later' },
    { name: 'later', expression: "{'a': [quantity('1')]}" },
    { name: 'maybe', expression: 'object.?spec' },
    { name: 'namespace', expression: 'request.namespace' },
  ])

  test('each is compiled, the faulty one alone is not', () => {
    expect(
      composed.variables.map(({ name, result }) => [
        name,
        result.ok ? result.checked.type : result.issues[0]?.message,
      ]),
    ).toEqual([
      ['names', 'list(string)'],
      ['count', 'int'],
      ['late', "undefined field 'later'"],
      ['later', 'map(string, list(kubernetes.Quantity))'],
      ['maybe', 'optional_type(dyn)'],
      ['namespace', 'string'],
    ])
  })

  test.each([
    ['variables.names', 'list(string)'],
    ['variables.count + 1', 'int'],
    ['variables.late', 'dyn'],
    ['variables.later', 'map(string, list(dyn))'],
    ['variables.maybe', 'dyn'],
    ['variables.namespace', 'string'],
    ['variables.none', "undefined field 'none'"],
  ])('%s is %s', (source, expected) => {
    expect(outcome(source, composed.environment)).toBe(expected)
  })

  test('the environment they extend is as it was', () => {
    expect(outcome('variables.names', kubernetes())).toContain('undeclared')
  })
})

describe('what a caller adds', () => {
  test('functions the host answers are among the needs of a program', () => {
    const environment = createEnvironment({
      profile: 'kyverno',
      variables: { image: 'string' },
      declare: [hostFn('lookUp', overload('look_up', ['string'], 'dyn'))],
    })
    const result = compile('lookUp(image).a.matches("b")', environment)
    expect(result.ok && result.checked.needs).toEqual(['lookUp', 'regex'])
  })

  test.each([
    [
      "Object{spec: Object.spec{replicas: 1}, metadata: Object.metadata{labels: {'a': 'b'}}}",
      'Object',
    ],
    ["[JSONPatch{op: 'add', path: '/a', value: 1}]", 'list(JSONPatch)'],
    ["[JSONPatch{op: 'add', pth: '/a'}]", "undefined field 'pth'"],
    ["jsonpatch.escapeKey('a/b')", 'string'],
  ])('with the types of patches: %s', (source, expected) => {
    const environment = createEnvironment({
      profile: 'kubernetes',
      variables: ADMISSION_VARIABLES,
      patchTypes: true,
    })
    expect(outcome(source, environment)).toBe(expected)
    expect(outcome(source, kubernetes())).toContain('undeclared')
  })

  test('a type name that cannot be read is refused at once', () => {
    expect(() => createEnvironment({ profile: 'spec', variables: { a: 'list(' } })).toThrow(
      TypeError,
    )
  })

  test('a checked tree prints and compiles to the same type again', () => {
    const source =
      "authorizer.requestResource.check('get').allowed() && sets.contains([1], [object.a])"
    const result = compile(source, kubernetes())
    const text = result.ok ? print(result.checked.ast) : ''
    expect(outcome(text, kubernetes())).toBe('bool')
  })
})
