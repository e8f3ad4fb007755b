import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_FAULTS, MAX_LISTED_FAULTS, MAX_POLICY_BYTES } from '#shared/limits.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { keyAttestor, listed, load, PEM, policyDocument, said } from './documents.ts'

const indentedPem = PEM.trim().replaceAll('\n', '\n            ')

const GOOD = `# signed images only
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: good
spec:
  matchConstraints:
    resourceRules:
      - apiGroups: ['']
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [pods, pods/ephemeralcontainers]
  attestors:
    - name: release
      cosign:
        key:
          data: |
            ${indentedPem}
        ctlog:
          insecureIgnoreTlog: true
  validations:
    - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.release]) > 0)
      message: not signed
`

function yaml(text: string, name = 'a.yaml') {
  return loadPolicies([{ name, text }])
}

describe('loadPolicies', () => {
  test('names every fault of a document at once, each with its place', async () => {
    const text = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: Bad
spec:
  validationActions: [Deny, test]
  matchConstraints:
    resourceRules:
      - apiGroups: ['']
        operations: [CREATE]
        resources: [pods]
        resorces: [pods]
  matchConditions:
    - name: plain
      expression: object.spec.x && 1
    - name: quoted
      expression: "has(object.a) && (object.b"
  matchImageReferences:
    - glob: 'a[b'
  variables:
    - name: block
      expression: |
        object.spec.replicas
          .nothing(1)
    - name: folded
      expression: >-
        missing +
        1
  attestors:
    - name: k
      cosign:
        key: {}
  validations:
    - expression: variables.block == variables.folded && variables.nobody
      message: 7
  credentials:
    secrets: a
`
    const { policies, faults } = await yaml(text)
    expect(policies).toEqual([])
    expect(listed(faults)).toEqual([
      'a.yaml:4:9 POLICY_INVALID metadata.name: Invalid value: "Bad": must be a DNS-1123 subdomain',
      'a.yaml:6:29 POLICY_INVALID spec.validationActions[1]: Unsupported value: "test": supported values: "Deny", "Audit", "Warn"',
      'a.yaml:9:9 POLICY_INVALID spec.matchConstraints.resourceRules[0].apiVersions: Required value',
      'a.yaml:12:9 POLICY_INVALID spec.matchConstraints.resourceRules[0].resorces: unknown field "resorces"',
      "a.yaml:15:36 CEL_CHECK spec.matchConditions[0].expression: expected type 'bool' but found 'int' (at 1:18 of the expression)",
      "a.yaml:17:46 CEL_PARSE spec.matchConditions[1].expression: Syntax error: mismatched input '<EOF>' expecting ')' (at 1:27 of the expression)",
      'a.yaml:19:13 POLICY_INVALID spec.matchImageReferences[0].glob: glob "a[b" at character 2: "[" is never closed',
      "a.yaml:24:19 CEL_CHECK spec.variables[0].expression: undeclared reference to 'nothing' (in container '') (at 2:11 of the expression)",
      "a.yaml:26:19 CEL_CHECK spec.variables[1].expression: undeclared reference to 'missing' (in container '') (at 1:1 of the expression)",
      'a.yaml:32:9 POLICY_INVALID spec.attestors[0].cosign.key: Required value: one of data, kms and expression must be set',
      "a.yaml:34:67 CEL_CHECK spec.validations[0].expression: undefined field 'nobody' (at 1:49 of the expression)",
      'a.yaml:35:16 POLICY_INVALID spec.validations[0].message: Invalid value: "integer": must be of type string',
      'a.yaml:37:14 POLICY_INVALID spec.credentials.secrets: Invalid value: "string": must be of type array',
    ])
  })

  test('reads several documents of a file and says which line each begins at', async () => {
    const second = GOOD.replace('name: good', 'name: second')
    const { policies, faults } = await yaml(`---\n${GOOD}---\n# nothing here\n---\n${second}`)
    expect(faults).toEqual([])
    expect(policies.map(({ name, source }) => ({ name, source }))).toEqual([
      { name: 'good', source: 'a.yaml:3' },
      { name: 'second', source: 'a.yaml:32' },
    ])
  })

  test('reads JSON', async () => {
    const { policies, faults } = await yaml(JSON.stringify(policyDocument(), null, '\t'), 'a.json')
    expect(faults).toEqual([])
    expect(policies.map(({ name }) => name)).toEqual(['must-sign'])
  })

  test('gives policies in the order of their names, whatever the files are called', async () => {
    const { policies } = await load([
      policyDocument({}, 'b'),
      policyDocument({}, 'c'),
      policyDocument({}, 'a'),
    ])
    expect(policies.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  })

  test.each([
    'List',
    'ImageValidatingPolicyList',
    'NamespacedImageValidatingPolicyList',
    'PolicyExceptionList',
  ])('expands a %s, and knows its items by index', async (kind) => {
    const bad = policyDocument({ failurePolicy: 'Open' }, 'bad')
    const { policies, faults } = await load([
      {
        apiVersion: 'v1',
        kind,
        metadata: {},
        items: [policyDocument({}, 'a'), bad, 7, { kind: 'Pod', apiVersion: 'v1' }],
      },
    ])
    expect(policies.map(({ name }) => name)).toEqual(['a'])
    expect(said(faults)).toEqual([
      {
        code: 'POLICY_INVALID',
        path: 'items[1].spec.failurePolicy',
        message: 'Unsupported value: "Open": supported values: "Ignore", "Fail"',
      },
      {
        code: 'POLICY_UNSUPPORTED',
        path: 'items[3].kind',
        message:
          'Pod of v1: only ImageValidatingPolicy, NamespacedImageValidatingPolicy and PolicyException of policies.kyverno.io can be loaded; ignoreOtherKinds: true in the config leaves it out',
      },
      {
        code: 'POLICY_INVALID',
        path: 'items[2]',
        message: 'an item must be an object with apiVersion and kind',
      },
    ])
  })

  test('expands lists in lists', async () => {
    const list = (...items: unknown[]) => ({ apiVersion: 'v1', kind: 'List', items })
    const { policies, faults } = await load([
      list(list(policyDocument({}, 'a'), list()), policyDocument({}, 'b'), list(7)),
    ])
    expect(policies.map(({ name }) => name)).toEqual(['a', 'b'])
    expect(faults.map(({ path }) => path)).toEqual(['items[2].items[0]'])
  })

  test('two policies of one name are a fault that names both places', async () => {
    const files = [
      { name: 'one.yaml', text: GOOD },
      { name: 'two.yaml', text: `\n\n${GOOD}` },
    ]
    const { policies, faults } = await loadPolicies(files)
    expect(policies.map(({ source }) => source)).toEqual(['one.yaml:2'])
    expect(listed(faults)).toEqual([
      'two.yaml:7:9 POLICY_INVALID metadata.name: Duplicate value: "good": two.yaml:4 and one.yaml:2 define the same policy',
    ])
  })

  test('a fault in one document does not cost the others', async () => {
    const { policies, faults } = await load([
      policyDocument({ images: 1 }, 'a'),
      policyDocument({}, 'b'),
    ])
    expect(policies.map(({ name }) => name)).toEqual(['b'])
    expect(faults).toHaveLength(1)
  })

  test('nothing gives nothing', async () => {
    expect(await loadPolicies([])).toEqual({ policies: [], faults: [], warnings: [] })
    expect(await yaml('# only a comment\n')).toEqual({ policies: [], faults: [], warnings: [] })
  })
})

describe('text that is not a document', () => {
  const laughs = Array.from(
    { length: 9 },
    (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i}, `.repeat(9)}]`,
  )

  test.each<{ name: string; text: string; faults: string[] }>([
    {
      name: 'a scalar',
      text: 'hello',
      faults: ['a.yaml:1:1 POLICY_INVALID : a document must be an object with apiVersion and kind'],
    },
    {
      name: 'a list',
      text: '- a',
      faults: ['a.yaml:1:1 POLICY_INVALID : a document must be an object with apiVersion and kind'],
    },
    {
      name: 'an object that says nothing',
      text: 'a: b',
      faults: [
        'a.yaml:1:1 POLICY_INVALID apiVersion: Required value',
        'a.yaml:1:1 POLICY_INVALID kind: Required value',
      ],
    },
    {
      name: 'a List without items',
      text: 'apiVersion: v1\nkind: List',
      faults: ['a.yaml:1:1 POLICY_INVALID items: Required value: a List has items'],
    },
    {
      name: 'a duplicate key',
      text: 'a: 1\nb:\n  c: 1\n  "c": 2\na: 2\n',
      faults: [
        'a.yaml:4:3 POLICY_INVALID : key "c" occurs twice',
        'a.yaml:5:1 POLICY_INVALID : key "a" occurs twice',
      ],
    },
    {
      name: 'a duplicate key in JSON',
      text: '{"a": 1, "a": 2}',
      faults: ['a.yaml:1:10 POLICY_INVALID : key "a" occurs twice'],
    },
    {
      name: 'a key that is not a string',
      text: '? [a]\n: b\n',
      faults: ['a.yaml:1:3 POLICY_INVALID : a key must be a string, a number or a boolean'],
    },
    {
      name: 'aliases without an anchor',
      text: 'a: *b\n',
      faults: ['a.yaml:1:4 POLICY_INVALID : alias *b has no anchor before it'],
    },
    {
      name: 'an alias of itself',
      text: 'a: &a [*a]\n',
      faults: ['a.yaml:1:8 POLICY_INVALID : more than 100 aliases expanded in one document'],
    },
    {
      name: 'a billion laughs',
      text: `l0: &l0 [x]\n${laughs.join('\n')}\n`,
      faults: ['a.yaml:3:10 POLICY_INVALID : more than 100 aliases expanded in one document'],
    },
    {
      name: 'a number that is none',
      text: 'a: .nan\n',
      faults: ['a.yaml:1:4 POLICY_INVALID : .nan is not a JSON number'],
    },
    {
      name: 'a file that is too large',
      text: `a: "${'x'.repeat(MAX_POLICY_BYTES)}"`,
      faults: [`a.yaml:0:0 POLICY_INVALID : the file is larger than ${MAX_POLICY_BYTES} bytes`],
    },
    {
      name: 'a document with too many values',
      text: `a: [${'1,'.repeat(100_001)}]`,
      faults: ['a.yaml:1:200001 POLICY_INVALID : more than 100000 values in one document'],
    },
    {
      name: 'deep nesting',
      text: `a: ${'['.repeat(600)}${']'.repeat(600)}`,
      faults: ['a.yaml:1:503 POLICY_INVALID : nested deeper than 500'],
    },
  ])('$name', async ({ text, faults }) => {
    const loaded = await yaml(text)
    expect(loaded.policies).toEqual([])
    expect(listed(loaded.faults)).toEqual(faults)
  })

  test.each([
    { name: 'bad indentation', text: 'a:\n  b: 1\n c: 2\n', line: 3 },
    { name: 'a tab as indentation', text: 'a:\n\tb: 1\n', line: 2 },
    { name: 'an open bracket', text: 'a: [1\n', line: 2 },
    { name: 'an unknown tag', text: 'a: !secret x\n', line: 1 },
  ])('$name is a fault at its line', async ({ text, line }) => {
    const { policies, faults } = await yaml(text)
    expect(policies).toEqual([])
    expect(faults[0]).toMatchObject({ code: 'POLICY_INVALID', file: 'a.yaml', line })
  })

  test('nesting beyond the parser is a fault, and a short list of them', async () => {
    const { policies, faults } = await yaml('['.repeat(100_000))
    expect(policies).toEqual([])
    expect(faults.length).toBeGreaterThan(0)
    expect(faults.length).toBeLessThanOrEqual(MAX_LISTED_FAULTS)
  })

  test('a document with endless faults has a list of a thousand', async () => {
    const images = Array.from({ length: 2000 }, () => ({}))
    const { policies, faults } = await load([policyDocument({ images })])
    expect(policies).toEqual([])
    expect(faults).toHaveLength(MAX_FAULTS)
  })

  test('a key cannot reach a prototype', async () => {
    const { faults } = await yaml(`${GOOD}  __proto__:\n    polluted: true\n  constructor: 1\n`)
    expect(said(faults)).toEqual([
      { code: 'POLICY_INVALID', path: 'spec.__proto__', message: 'unknown field "__proto__"' },
      { code: 'POLICY_INVALID', path: 'spec.constructor', message: 'unknown field "constructor"' },
    ])
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  test('scalars are what kubectl makes of them, and say where they stand', async () => {
    const text = GOOD.replace(
      '  matchConstraints:',
      `  validationConfigurations:
    required: no
    verifyDigest: off
    mutateDigest: On
  webhookConfiguration:
    timeoutSeconds: 017
  matchConditions:
    - name: y
      expression: true
  matchConstraints:`,
    )
    const { policies, faults } = await yaml(text)
    expect(policies).toEqual([])
    expect(listed(faults)).toEqual([
      'a.yaml:14:13 POLICY_INVALID spec.matchConditions[0].name: Invalid value: "boolean": must be of type string',
      'a.yaml:15:19 POLICY_INVALID spec.matchConditions[0].expression: Invalid value: "boolean": must be of type string',
    ])
    const right = text
      .replace('name: y', "name: 'y'")
      .replace('expression: true', 'expression: "true"')
    expect((await yaml(right)).policies[0]).toMatchObject({
      required: false,
      verifyDigest: false,
      mutateDigest: true,
      timeoutSeconds: 15,
    })
  })

  test('what a merge key brings has its place where it was written', async () => {
    const text = GOOD.replace('spec:', 'x: &x\n  failurePolicy: Open\nspec:\n  <<: *x')
    expect(listed((await yaml(text)).faults)).toEqual([
      'a.yaml:6:1 POLICY_INVALID x: unknown field "x"',
      'a.yaml:7:18 POLICY_INVALID spec.failurePolicy: Unsupported value: "Open": supported values: "Ignore", "Fail"',
    ])
  })

  test('an anchor may be used again', async () => {
    const text = GOOD.replace(
      'operations: [CREATE, UPDATE]',
      'operations: &ops [CREATE, UPDATE]',
    ).replace(
      '  attestors:',
      "    excludeResourceRules:\n      - apiGroups: ['']\n        apiVersions: [v1]\n        operations: *ops\n        resources: [pods]\n        resourceNames: [a]\n  attestors:",
    )
    const { policies, faults } = await yaml(text)
    expect(faults).toEqual([])
    expect(policies[0]?.matchConstraints.excludeResourceRules[0]?.operations).toEqual([
      'CREATE',
      'UPDATE',
    ])
  })

  test('no text makes it throw', async () => {
    const pieces = fc.constantFrom(
      ...GOOD.split('\n'),
      '---',
      '- &a',
      '*a',
      '{',
      '}',
      '[',
      '"',
      ': ',
      '\t',
      '!!x',
      '%YAML 1.1',
      '\u0000',
      '\ud800',
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(pieces, fc.string()), { maxLength: 12 }),
        async (lines) => {
          const { policies, faults } = await yaml(lines.join('\n'))
          for (const fault of faults) expect(fault.line >= 0 && fault.column >= 0).toBe(true)
          expect(policies).toEqual([])
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('expressions', () => {
  test.each<{ name: string; spec: object }>([
    {
      name: 'a match condition sees the request',
      spec: {
        matchConditions: [
          {
            name: 'a',
            expression:
              'request.operation == "CREATE" && request.userInfo.username != "x" && has(object.metadata) && oldObject == null',
          },
        ],
      },
    },
    {
      name: 'a reference expression sees ref and the parsing functions',
      spec: {
        matchImageReferences: [
          { expression: 'parseImageReference(ref).registry() == "a.test" && isImage(ref)' },
        ],
      },
    },
    {
      name: 'an extractor may be a list of strings',
      spec: { images: [{ name: 'x', expression: '["a"]' }] },
    },
    {
      name: 'an extractor may be dyn',
      spec: { images: [{ name: 'x', expression: 'object.spec.images' }] },
    },
    {
      name: 'an extractor may be a list of dyn',
      spec: { images: [{ name: 'x', expression: '[object.spec.image]' }] },
    },
    {
      name: 'variables see images, attestors and the variables before them',
      spec: {
        variables: [
          { name: 'a', expression: 'images.containers' },
          {
            name: 'b',
            expression: 'variables.a.map(i, verifyImageSignatures(i, [attestors.release]))',
          },
        ],
        validations: [{ expression: 'variables.b.all(n, n > 0)' }],
      },
    },
    {
      name: 'every image function has its type',
      spec: {
        validations: [
          {
            expression:
              'parseImageReference("a").containsDigest() || image("a").tag() == image("a").digest() || image("a").repository() == image("a").identifier() || getImageData("a").config == image.GetMetadata("a").config || image.getMetadata("a") == null',
          },
        ],
      },
    },
    {
      name: 'a variable of an image keeps its type',
      spec: {
        variables: [{ name: 'r', expression: 'parseImageReference("a")' }],
        validations: [{ expression: 'variables.r.registry() == "x"' }],
      },
    },
    {
      name: 'an extractor is optional to expressions',
      spec: {
        validations: [{ expression: 'images.?ephemeralContainers.orValue([]).size() == 0' }],
      },
    },
    {
      name: 'an audit annotation may be null',
      spec: { auditAnnotations: [{ key: 'a', valueExpression: 'null' }] },
    },
    {
      name: 'a name bound in the expression is not the unsupported one',
      spec: { validations: [{ expression: '["a"].all(resource, resource == "a")' }] },
    },
    {
      name: 'the namespace, and what is outside, may be asked about once the images are known',
      spec: {
        matchConditions: [{ name: 'a', expression: 'namespaceObject.metadata.name != "a"' }],
        validations: [
          { expression: 'resource.get("v1", "configmaps", "a", "b").x == 1' },
          { expression: 'http.Get("https://a.test").x == 1' },
          { expression: 'yaml.parse("1") == 1' },
          { expression: 'time.now() > timestamp("2026-01-01T00:00:00Z")' },
        ],
      },
    },
    {
      name: 'presence of an undeclared attestor may be asked',
      spec: { validations: [{ expression: '!has(attestors.nobody)' }] },
    },
  ])('$name', async ({ spec }) => {
    expect((await load([policyDocument(spec)])).faults).toEqual([])
  })

  const at = (path: string, code: string, message: string) => [{ path, code, message }]
  const validation = (expression: string) => ({ validations: [{ expression }] })
  const EXPRESSION = 'spec.validations[0].expression'
  const UNDECLARED = 'attestation "sbom" is not declared in spec.attestations'

  test.each<{ name: string; spec: object; is: ReturnType<typeof at> }>([
    {
      name: 'a match condition must be a bool',
      spec: { matchConditions: [{ name: 'a', expression: 'object.spec.x' }] },
      is: at(
        'spec.matchConditions[0].expression',
        'CEL_CHECK',
        'must evaluate to bool but got dyn (at 1:1 of the expression)',
      ),
    },
    {
      name: 'a validation must be a bool',
      spec: validation('1'),
      is: at(
        EXPRESSION,
        'CEL_CHECK',
        'must evaluate to bool but got int (at 1:1 of the expression)',
      ),
    },
    {
      name: 'a message must be a string',
      spec: { validations: [{ expression: 'true', messageExpression: '1' }] },
      is: at(
        'spec.validations[0].messageExpression',
        'CEL_CHECK',
        'must evaluate to string but got int (at 1:1 of the expression)',
      ),
    },
    {
      name: 'an audit annotation must be a string or null',
      spec: { auditAnnotations: [{ key: 'a', valueExpression: 'true' }] },
      is: at(
        'spec.auditAnnotations[0].valueExpression',
        'CEL_CHECK',
        'must evaluate to one of [string null_type] but got bool (at 1:1 of the expression)',
      ),
    },
    {
      name: 'an extractor must be a list of strings',
      spec: { images: [{ name: 'a', expression: '"x"' }] },
      is: at(
        'spec.images[0].expression',
        'CEL_CHECK',
        'must evaluate to one of [list(string) list(dyn) dyn] but got string (at 1:1 of the expression)',
      ),
    },
    {
      name: 'an extractor is no list of numbers',
      spec: { images: [{ name: 'a', expression: '[1]' }] },
      is: at(
        'spec.images[0].expression',
        'CEL_CHECK',
        'must evaluate to one of [list(string) list(dyn) dyn] but got list(int) (at 1:1 of the expression)',
      ),
    },
    {
      name: 'a reference expression must be a bool',
      spec: { matchImageReferences: [{ expression: 'ref' }] },
      is: at(
        'spec.matchImageReferences[0].expression',
        'CEL_CHECK',
        'must evaluate to bool but got string (at 1:1 of the expression)',
      ),
    },
    {
      name: 'a reference expression sees no object',
      spec: { matchImageReferences: [{ expression: 'object == null' }] },
      is: at(
        'spec.matchImageReferences[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'object' (in container '') (at 1:1 of the expression)",
      ),
    },
    {
      name: 'a match condition sees no variables',
      spec: {
        variables: [{ name: 'a', expression: 'true' }],
        matchConditions: [{ name: 'a', expression: 'variables.a' }],
      },
      is: at(
        'spec.matchConditions[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'variables' (in container '') (at 1:1 of the expression)",
      ),
    },
    {
      name: 'a match condition sees no images',
      spec: { matchConditions: [{ name: 'a', expression: 'size(images) > 0' }] },
      is: at(
        'spec.matchConditions[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'images' (in container '') (at 1:6 of the expression)",
      ),
    },
    {
      name: 'a match condition cannot verify',
      spec: { matchConditions: [{ name: 'a', expression: 'verifyImageSignatures("a", []) > 0' }] },
      is: at(
        'spec.matchConditions[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'verifyImageSignatures' (in container '') (at 1:22 of the expression)",
      ),
    },
    {
      name: 'an extractor sees no variables',
      spec: {
        variables: [{ name: 'a', expression: '["x"]' }],
        images: [{ name: 'a', expression: 'variables.a' }],
      },
      is: at(
        'spec.images[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'variables' (in container '') (at 1:1 of the expression)",
      ),
    },
    {
      name: 'a variable sees no later one',
      spec: {
        variables: [
          { name: 'a', expression: 'variables.b' },
          { name: 'b', expression: '1' },
        ],
      },
      is: at(
        'spec.variables[0].expression',
        'CEL_CHECK',
        'variable "b" comes later: a variable sees only those before it',
      ),
    },
    {
      name: 'a variable sees no later one, however it is written',
      spec: {
        variables: [
          { name: 'a', expression: 'variables["b"]' },
          { name: 'b', expression: '1' },
        ],
      },
      is: at(
        'spec.variables[0].expression',
        'CEL_CHECK',
        'variable "b" comes later: a variable sees only those before it',
      ),
    },
    {
      name: 'a variable cannot need itself',
      spec: { variables: [{ name: 'a', expression: '[1].all(i, variables.a)' }] },
      is: at('spec.variables[0].expression', 'CEL_CHECK', 'variables need each other: a → a'),
    },
    {
      name: 'variables cannot need each other',
      spec: {
        variables: [
          { name: 'a', expression: 'variables.b' },
          { name: 'b', expression: 'variables.c' },
          { name: 'c', expression: 'variables.a' },
        ],
      },
      is: [
        ...at(
          'spec.variables[0].expression',
          'CEL_CHECK',
          'variables need each other: a → b → c → a',
        ),
        ...at(
          'spec.variables[1].expression',
          'CEL_CHECK',
          'variables need each other: b → c → a → b',
        ),
      ],
    },
    {
      name: 'a variable has the type of its expression',
      spec: { variables: [{ name: 'a', expression: '1' }], ...validation('variables.a == "x"') },
      is: at(
        EXPRESSION,
        'CEL_CHECK',
        "found no matching overload for '_==_' applied to '(int, string)' (at 1:13 of the expression)",
      ),
    },
    {
      name: 'the mistake in a variable is told once',
      spec: {
        variables: [{ name: 'a', expression: 'nobody' }],
        ...validation('variables.a == "x"'),
      },
      is: at(
        'spec.variables[0].expression',
        'CEL_CHECK',
        "undeclared reference to 'nobody' (in container '') (at 1:1 of the expression)",
      ),
    },
    {
      name: 'a field the request does not have',
      spec: validation('request.who == ""'),
      is: at(EXPRESSION, 'CEL_CHECK', "undefined field 'who' (at 1:8 of the expression)"),
    },
    {
      name: 'an attestor nobody declared',
      spec: validation('verifyImageSignatures("a", [attestors.nobody]) > 0'),
      is: at(EXPRESSION, 'CEL_CHECK', 'attestor "nobody" is not declared in spec.attestors'),
    },
    {
      name: 'globalContext.*',
      spec: validation('globalContext.get("a", "b") == 0'),
      is: at(
        EXPRESSION,
        'POLICY_UNSUPPORTED',
        'globalContext is not supported: nothing watches the cluster between two requests; resource.list and resource.get read it',
      ),
    },
    {
      name: 'an attestation that is not declared',
      spec: validation('attestations.sbom == "sbom"'),
      is: at(EXPRESSION, 'CEL_CHECK', UNDECLARED),
    },
    {
      name: 'an attestation by index that is not declared',
      spec: validation('attestations["sbom"] == "sbom"'),
      is: at(EXPRESSION, 'CEL_CHECK', UNDECLARED),
    },
    {
      name: 'an attestation by its text that is not declared',
      spec: validation('verifyAttestationSignatures("a", "sbom", []) > 0'),
      is: at(EXPRESSION, 'CEL_CHECK', UNDECLARED),
    },
    {
      name: 'a payload of an attestation that is not declared',
      spec: validation('extractPayload("a", "sbom") == null'),
      is: at(EXPRESSION, 'CEL_CHECK', UNDECLARED),
    },
    {
      name: 'an attestor by index that is not declared',
      spec: validation('verifyImageSignatures("a", [attestors["ci"]]) > 0'),
      is: at(EXPRESSION, 'CEL_CHECK', 'attestor "ci" is not declared in spec.attestors'),
    },
  ])('$name', async ({ spec, is }) => {
    const { policies, faults } = await load([policyDocument(spec)])
    expect(policies).toEqual([])
    expect(said(faults)).toEqual(is)
  })

  test.each([
    { name: 'a constant that cannot be converted', expression: 'int("x") == 1' },
    { name: 'a pattern that is none', expression: '"a".matches("(")' },
  ])('$name is found when the policy loads', async ({ expression }) => {
    const { policies, faults } = await load([policyDocument(validation(expression))])
    expect(policies).toEqual([])
    expect(faults.map(({ path }) => path)).toEqual([EXPRESSION])
    expect(faults[0]?.code).toMatch(/^CEL_/)
  })
})

describe('the hash of a policy', () => {
  async function hashOf(spec: object, kmsRegion?: string): Promise<string> {
    const { policies } = await load(
      [policyDocument(spec)],
      kmsRegion === undefined ? {} : { kmsRegion },
    )
    return policies[0]!.hash
  }
  const kms = { attestors: [keyAttestor('release', { kms: 'awskms:///alias/a' })] }
  const arn = {
    attestors: [
      keyAttestor('release', { kms: 'awskms:///arn:aws:kms:eu-west-1:111122223333:alias/a' }),
    ],
  }

  test('is the same for documents that mean the same', async () => {
    const defaults = {
      failurePolicy: 'Fail',
      validationActions: ['Deny'],
      variables: [],
      validationConfigurations: { required: true },
    }
    expect(await hashOf({})).toBe(await hashOf(defaults))
  })

  test.each<{ name: string; spec: object }>([
    { name: 'an expression', spec: { validations: [{ expression: 'true || false' }] } },
    { name: 'a message', spec: { validations: [{ expression: 'true', message: 'm' }] } },
    { name: 'a rule', spec: { matchImageReferences: [{ glob: '*' }] } },
    { name: 'a setting', spec: { validationConfigurations: { verifyDigest: false } } },
    { name: 'the name of an attestor', spec: { attestors: [keyAttestor('other')] } },
    {
      name: 'a hash algorithm',
      spec: { attestors: [keyAttestor('release', { data: PEM, hashAlgorithm: 'sha512' })] },
    },
  ])('changes with $name', async ({ spec }) => {
    expect(await hashOf(spec)).not.toBe(await hashOf({}))
  })

  test('changes with the region that an alias is looked up in', async () => {
    expect(await hashOf(kms, 'eu-west-1')).not.toBe(await hashOf(kms, 'us-east-1'))
    expect(await hashOf(arn, 'eu-west-1')).toBe(await hashOf(arn, 'us-east-1'))
  })
})

describe('notes', () => {
  const rule = (changes: object) => ({
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: [''],
          apiVersions: ['v1'],
          operations: ['CREATE', 'UPDATE'],
          resources: ['pods'],
          ...changes,
        },
      ],
    },
  })
  const DEBUG =
    'pods/ephemeralcontainers is not among the resources: containers added by kubectl debug are not checked'
  const OWN = `${DEBUG}; a policy of its own can be about it: beside pods it would keep this one from standing for controllers`
  const UPDATE =
    'UPDATE is not among the operations for pods: the image of a running Pod can be changed without a check'
  const OFF = { autogen: { podControllers: { controllers: [] } } }

  test.each<{ name: string; spec: object; notes: string[] }>([
    { name: 'a policy about Pods and their controllers', spec: rule({}), notes: [OWN] },
    { name: 'generation switched off', spec: { ...rule({}), ...OFF }, notes: [DEBUG] },
    {
      name: 'controllers that are none',
      spec: { ...rule({}), autogen: { podControllers: { controllers: ['all', 'jobs'] } } },
      notes: [
        OWN,
        '"all" is no Pod controller and means nothing: known are daemonsets, deployments, replicasets, statefulsets, jobs, cronjobs',
      ],
    },
    {
      name: 'controllers of a policy that is not about Pods alone',
      spec: {
        ...rule({ resources: ['pods', 'pods/ephemeralcontainers'] }),
        autogen: { podControllers: { controllers: ['jobs'] } },
      },
      notes: [
        'nothing is generated for controllers: that takes a single resource rule, about pods of v1 alone, without names, excluded rules or an object selector',
      ],
    },
    {
      name: 'a policy that does not deny',
      spec: { ...rule({}), ...OFF, validationActions: ['Audit'] },
      notes: [],
    },
    {
      name: 'CREATE alone',
      spec: {
        ...rule({ operations: ['CREATE'], resources: ['pods', 'pods/ephemeralcontainers'] }),
      },
      notes: [UPDATE],
    },
    { name: 'every subresource', spec: rule({ resources: ['pods/*'] }), notes: [] },
    {
      name: 'everything',
      spec: rule({ apiGroups: ['*'], operations: ['*'], resources: ['*/*'] }),
      notes: [],
    },
    {
      name: 'every resource without subresources',
      spec: rule({ resources: ['*'] }),
      notes: [DEBUG],
    },
    {
      name: 'another resource',
      spec: rule({ apiGroups: ['apps'], resources: ['deployments'] }),
      notes: [],
    },
    {
      name: 'listed names, which are not extended',
      spec: rule({ resourceNames: ['a'] }),
      notes: [DEBUG],
    },
  ])('$name', async ({ spec, notes }) => {
    const { policies, faults, warnings } = await load([policyDocument(spec)])
    expect(faults).toEqual([])
    expect(policies.filter(({ autogen }) => autogen === undefined)).toHaveLength(1)
    expect(warnings.map(({ message }) => message).sort()).toEqual([...notes].sort())
    for (const { code } of warnings) expect(code).toBe('POLICY_NOTE')
  })

  test('a policy that is switched off at admission is left out, and that is said', async () => {
    const { policies, faults, warnings } = await load([
      policyDocument({
        evaluation: { admission: { enabled: false }, background: { enabled: true } },
      }),
    ])
    expect(policies).toEqual([])
    expect(faults).toEqual([])
    expect(said(warnings)).toEqual([
      {
        code: 'POLICY_NOTE',
        path: 'spec.evaluation.admission.enabled',
        message: 'the policy is switched off at admission, so it is left out',
      },
    ])
  })
})
