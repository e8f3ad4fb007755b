import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { loadRegex } from '#shared/cel/regex.ts'
import type { RegexEngine } from '#shared/cel/types.ts'
import { servicePathFaults, urlFaults } from '#shared/webhook/client-config.ts'
import { validateWebhookConfiguration } from '#shared/webhook/validate.ts'

let regex: RegexEngine
beforeAll(async () => {
  regex = await loadRegex()
})

const WEBHOOK = {
  name: 'a.example.com',
  clientConfig: { url: 'https://admission.example.com/v1' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}
const RULE = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }

function configuration(changes: object = {}, kind = 'ValidatingWebhookConfiguration'): object {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name: 'x' },
    webhooks: [{ ...WEBHOOK, ...changes }],
  }
}

function messages(value: unknown, options: { minor?: number; isStatic?: boolean } = {}): string[] {
  return validateWebhookConfiguration(value, { regex, ...options }).map(
    ({ path, message }) => `${path}: ${message}`,
  )
}

const AT = 'ValidatingWebhookConfiguration webhooks[0].'

describe('validateWebhookConfiguration', () => {
  test('what the API server stores has no fault', () => {
    const whole = {
      rules: [RULE, { ...RULE, resources: ['*/*'], scope: 'Namespaced' }],
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      namespaceSelector: { matchExpressions: [{ key: 'a/b', operator: 'Exists' }] },
      objectSelector: { matchLabels: { a: '' } },
      timeoutSeconds: 30,
      admissionReviewVersions: ['v1', 'v1beta1', 'v2'],
      matchConditions: [{ name: 'a.b/c', expression: "object.metadata.name.matches('^a')" }],
    }
    expect(messages(configuration(whole))).toEqual([])
    expect(
      messages(
        configuration({ ...whole, reinvocationPolicy: 'IfNeeded' }, 'MutatingWebhookConfiguration'),
      ),
    ).toEqual([])
  })

  test.each<[string, object, string[]]>([
    [
      'a name of two labels',
      { name: 'a.com' },
      [
        'name: Invalid value: "a.com": should be a domain with at least three segments separated by dots',
      ],
    ],
    [
      'neither url nor service',
      { clientConfig: {} },
      ['clientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      'url and service',
      { clientConfig: { url: 'https://a', service: { namespace: 'a', name: 'b' } } },
      ['clientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      'a Service with a bad port and path',
      { clientConfig: { service: { namespace: 'a', name: 'b', port: 0, path: '/v1/A' } } },
      [
        "clientConfig.service.path: Invalid value: segment[1]: must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.'",
        'clientConfig.service.port: Invalid value: 0: must be between 1 and 65535',
      ],
    ],
    [
      'a caBundle that is no PEM',
      { clientConfig: { url: 'https://a', caBundle: 'AAAA' } },
      ['clientConfig.caBundle: Invalid value: must be the base64 of PEM certificates'],
    ],
    [
      'a timeout of 31',
      { timeoutSeconds: 31 },
      ['timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds'],
    ],
    [
      'a timeout of 0',
      { timeoutSeconds: 0 },
      ['timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds'],
    ],
    [
      'side effects',
      { sideEffects: 'Some' },
      ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
    ],
    [
      'no side effects',
      { sideEffects: undefined },
      ['sideEffects: Required value: must specify one of None, NoneOnDryRun'],
    ],
    [
      'versions that nobody knows',
      { admissionReviewVersions: ['v2', 'V3'] },
      [
        'admissionReviewVersions[1]: Invalid value: "V3": must be a DNS-1035 label',
        'admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
      ],
    ],
    [
      'a version twice',
      { admissionReviewVersions: ['v1', 'v1'] },
      ['admissionReviewVersions[1]: Duplicate value: "v1"'],
    ],
    [
      'reinvocation of a validating webhook',
      { reinvocationPolicy: 'Never' },
      ['reinvocationPolicy: unknown field "reinvocationPolicy"'],
    ],
    [
      'an operation beside all',
      { rules: [{ ...RULE, operations: ['*', 'CREATE'] }] },
      [
        `rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
      ],
    ],
    [
      'a rule without resources',
      { rules: [{ ...RULE, resources: [] }] },
      ['rules[0].resources: Required value'],
    ],
    [
      'a wildcard twice',
      {
        rules: [{ ...RULE, resources: ['pods', 'pods', 'pods/*', '*/scale', '*/scale', 'pods/*'] }],
      },
      [
        `rules[0].resources[4]: Invalid value: ["pods","pods","pods/*","*/scale","*/scale","pods/*"]: if '*/scale' is present, must not specify */scale`,
        `rules[0].resources[5]: Invalid value: ["pods","pods","pods/*","*/scale","*/scale","pods/*"]: if 'pods/*' is present, must not specify pods/*`,
      ],
    ],
    [
      'a scope that is none',
      { rules: [{ ...RULE, scope: 'All' }] },
      ['rules[0].scope: Unsupported value: "All": supported values: "Cluster", "Namespaced", "*"'],
    ],
    [
      'a selector without values',
      { namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
      [
        "namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      ],
    ],
    [
      'a condition that does not compile',
      { matchConditions: [{ name: 'a', expression: 'objekt' }] },
      [
        "matchConditions[0].expression: Invalid value: compilation failed: undeclared reference to 'objekt' (in container '')",
      ],
    ],
    [
      'a condition that is no bool',
      { matchConditions: [{ name: 'a', expression: '1' }] },
      [
        'matchConditions[0].expression: Invalid value: compilation failed: must evaluate to bool but got int',
      ],
    ],
    [
      'a condition with a variable of policies',
      { matchConditions: [{ name: 'a', expression: 'params.x' }] },
      [
        "matchConditions[0].expression: Invalid value: compilation failed: undeclared reference to 'params' (in container '')",
      ],
    ],
    [
      'two conditions of one name',
      {
        matchConditions: [
          { name: 'a', expression: 'true' },
          { name: 'a', expression: 'true' },
        ],
      },
      ['matchConditions[1].name: Duplicate value: "a"'],
    ],
    [
      'a condition without a name',
      { matchConditions: [{ name: '', expression: 'true' }] },
      ['matchConditions[0].name: Required value'],
    ],
    [
      '65 conditions',
      {
        matchConditions: Array.from({ length: 65 }, (_, i) => ({
          name: `c${i}`,
          expression: 'true',
        })),
      },
      ['matchConditions: Too many: 65: must have at most 64 items'],
    ],
  ])('%s is refused', (_, changes, expected) => {
    expect(messages(configuration(changes))).toEqual(expected.map((text) => `${AT}${text}`))
  })

  test('labels and annotations have qualified names, the latter in any case', () => {
    const metadata = {
      name: 'x',
      labels: { 'a/b': 'ok', 'a b': 'ok', c: 'not ok' },
      annotations: { 'A.example/Key': 'any text', 'a/b/c': '', '': '' },
    }
    expect(messages({ ...configuration(), metadata })).toEqual([
      'ValidatingWebhookConfiguration metadata.labels["a b"]: Invalid value: must be a qualified name with a label value',
      'ValidatingWebhookConfiguration metadata.labels.c: Invalid value: must be a qualified name with a label value',
      'ValidatingWebhookConfiguration metadata.annotations["a/b/c"]: Invalid value: must be a qualified name',
      'ValidatingWebhookConfiguration metadata.annotations[""]: Invalid value: must be a qualified name',
    ])
  })

  test('every fault of every webhook is told at once, names that are there twice among them', () => {
    const value = {
      ...configuration(),
      webhooks: [WEBHOOK, { ...WEBHOOK, timeoutSeconds: 99 }, WEBHOOK],
    }
    expect(messages(value)).toEqual([
      'ValidatingWebhookConfiguration webhooks[1].timeoutSeconds: Invalid value: 99: the timeout value must be between 1 and 30 seconds',
      'ValidatingWebhookConfiguration webhooks[2].name: Duplicate value: "a.example.com"',
    ])
  })

  test('a function is there from the version after the one that brought it', () => {
    const value = configuration({
      matchConditions: [{ name: 'a', expression: "isSemver('1.0.0')" }],
    })
    expect(messages(value)).toHaveLength(1)
    // The version that brought it takes it back out with the one before.
    expect(messages(value, { minor: 33 })).toHaveLength(1)
    expect(messages(value, { minor: 34 })).toEqual([])
  })

  test('names of manifest-based admission are for files, and files know no Services', () => {
    const value = { ...configuration(), metadata: { name: 'x.static.k8s.io' } }
    expect(messages(value)).toHaveLength(1)
    expect(messages(value, { isStatic: true })).toEqual([])
    const service = configuration({ clientConfig: { service: { namespace: 'a', name: 'b' } } })
    expect(messages(service, { isStatic: true })).toEqual([
      'ValidatingWebhookConfiguration metadata.name: Invalid value: "x": names in manifest-based admission end in .static.k8s.io',
      `${AT}clientConfig.service: Forbidden: manifest-based webhooks are called by url only`,
    ])
  })

  test('nothing that is given to it makes it throw', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (value, webhook) => {
        expect(messages(value).length).toBeGreaterThan(0)
        messages({ ...configuration(), webhooks: [webhook] })
      }),
      { numRuns: 300 },
    )
  })
})

describe('urlFaults', () => {
  test.each([
    'https://admission.example.com',
    'https://admission.example.com:8443/v1/prod/abc/ivpol/validate/a',
    'https://[2001:db8::1]:8443/',
    'HTTPS://a/%20?',
  ])('%s is accepted', (url) => {
    expect(urlFaults(url)).toEqual([])
  })

  test.each<[string, RegExp[]]>([
    ['http://a/', [/'https' is the only allowed URL scheme/]],
    ['https:///a', [/host must be specified/]],
    ['https://u:p@a/', [/user information/]],
    ['https://a/?token=x', [/query parameters/]],
    ['https://a/#x', [/fragments/]],
    ['ftp://u@/?a#b', [/https/, /host/, /user/, /fragments/, /query/]],
    ['a.example.com', [/must be a valid URL/]],
    ['https://a b/', [/must be a valid URL/]],
    ['https://a:port/', [/must be a valid URL/]],
    ['https://a/%zz', [/must be a valid URL/]],
    ['https://a/\n', [/must be a valid URL/]],
    ['', [/must be a valid URL/]],
  ])('%s is refused', (url, expected) => {
    expect(urlFaults(url)).toEqual(expected.map((each) => expect.stringMatching(each)))
  })
})

describe('servicePathFaults', () => {
  test.each(['', '/', '/a', '/a/b.c/', '/v1/prod/abc/ivpol/validate/a'])(
    '%s is accepted',
    (path) => {
      expect(servicePathFaults(path)).toEqual([])
    },
  )

  test.each([
    ['a', 1],
    ['//', 1],
    ['/a//b', 1],
    ['/A/b_c', 2],
  ])('%s has %i faults', (path, count) => {
    expect(servicePathFaults(path)).toHaveLength(count)
  })

  test.each([
    'v1/prod/secrettoken',
    '/v1/prod/SecretToken_',
    'https://u:secrettoken@a/secrettoken?secrettoken#secrettoken',
  ])('what is said of %s does not hold it: the path has the token of a cluster', (text) => {
    const said = [...servicePathFaults(text), ...urlFaults(text)]
    expect(said.length).toBeGreaterThan(1)
    expect(said.join()).not.toMatch(/secrettoken/i)
  })
})
