import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { SigstoreWorld } from '#test/fakes/sigstore.ts'
import { keyAttestor, load, PEM, POD_RULE, policyDocument, said } from './documents.ts'

const CERTS = { value: pemOf(mintRoot()) }

const NEEDS_RULE = 'Required value: a matchConstraints with at least one resource rule is required'

/** A spec with one rule, changed. */
function withRule(changes: object) {
  return { matchConstraints: { resourceRules: [{ ...POD_RULE, ...changes }] } }
}

const RULE = 'spec.matchConstraints.resourceRules[0]'

const ROOT = JSON.stringify(new SigstoreWorld().trustedRoot())
const IDENTITY = { issuer: 'https://issuer.example.com', subject: 'https://ci.example.com/x' }
const keyless = (fields: object, value = ROOT) => ({
  attestors: [{ name: 'a', cosign: { keyless: fields, trustedRoot: { value } } }],
})

describe('a spec that is wrong', () => {
  test.each<{ spec: object; path: string; message: string }>([
    // matchConstraints
    { spec: { matchConstraints: undefined }, path: 'spec.matchConstraints', message: NEEDS_RULE },
    { spec: { matchConstraints: null }, path: 'spec.matchConstraints', message: NEEDS_RULE },
    {
      spec: { matchConstraints: {} },
      path: 'spec.matchConstraints.resourceRules',
      message: NEEDS_RULE,
    },
    {
      spec: { matchConstraints: { resourceRules: [] } },
      path: 'spec.matchConstraints.resourceRules',
      message: NEEDS_RULE,
    },
    {
      spec: withRule({ operations: ['create'] }),
      path: `${RULE}.operations[0]`,
      message:
        'Unsupported value: "create": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT", "*"',
    },
    { spec: withRule({ operations: [] }), path: `${RULE}.operations`, message: 'Required value' },
    {
      spec: withRule({ operations: undefined }),
      path: `${RULE}.operations`,
      message: 'Required value',
    },
    {
      spec: withRule({ operations: ['*', 'CREATE'] }),
      path: `${RULE}.operations`,
      message:
        'Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    },
    {
      spec: withRule({ apiGroups: ['*', 'apps'] }),
      path: `${RULE}.apiGroups`,
      message:
        'Invalid value: ["*","apps"]: if \'*\' is present, must not specify other API groups',
    },
    {
      spec: withRule({ apiVersions: ['v1', '*'] }),
      path: `${RULE}.apiVersions`,
      message:
        'Invalid value: ["v1","*"]: if \'*\' is present, must not specify other API versions',
    },
    {
      spec: withRule({ apiVersions: [''] }),
      path: `${RULE}.apiVersions[0]`,
      message: 'Required value',
    },
    {
      spec: withRule({ resources: [''] }),
      path: `${RULE}.resources[0]`,
      message: 'Required value',
    },
    { spec: withRule({ resources: [] }), path: `${RULE}.resources`, message: 'Required value' },
    {
      spec: withRule({ resources: ['*/*', 'pods'] }),
      path: `${RULE}.resources`,
      message:
        'Invalid value: ["*/*","pods"]: if \'*/*\' is present, must not specify other resources',
    },
    {
      spec: withRule({ resources: ['*', 'pods'] }),
      path: `${RULE}.resources`,
      message:
        'Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without subresources',
    },
    {
      spec: withRule({ resources: ['pods/*', 'pods/status'] }),
      path: `${RULE}.resources[1]`,
      message:
        'Invalid value: ["pods/*","pods/status"]: if \'pods/*\' is present, must not specify pods/status',
    },
    {
      spec: withRule({ resources: ['pods/scale', '*/scale'] }),
      path: `${RULE}.resources[0]`,
      message:
        'Invalid value: ["pods/scale","*/scale"]: if \'*/scale\' is present, must not specify pods/scale',
    },
    {
      spec: withRule({ scope: 'Everything' }),
      path: `${RULE}.scope`,
      message: 'Unsupported value: "Everything": supported values: "Cluster", "Namespaced", "*"',
    },
    {
      spec: withRule({ resourceNames: ['a', 'a'] }),
      path: `${RULE}.resourceNames[1]`,
      message: 'Duplicate value: "a"',
    },
    {
      spec: { matchConstraints: { resourceRules: [POD_RULE], matchPolicy: 'Loose' } },
      path: 'spec.matchConstraints.matchPolicy',
      message: 'Unsupported value: "Loose": supported values: "Exact", "Equivalent"',
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          excludeResourceRules: [{ ...POD_RULE, apiGroups: [] }],
        },
      },
      path: 'spec.matchConstraints.excludeResourceRules[0].apiGroups',
      message: 'Required value',
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchExpressions[0].values',
      message: "Required value: must be specified when `operator` is 'In' or 'NotIn'",
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchExpressions[0].values',
      message: "Required value: must be specified when `operator` is 'In' or 'NotIn'",
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchExpressions[0].values',
      message: "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchExpressions: [{ key: 'a', operator: 'Equals' }] },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchExpressions[0].operator',
      message:
        'Unsupported value: "Equals": supported values: "In", "NotIn", "Exists", "DoesNotExist"',
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchExpressions: [{ key: 'a b', operator: 'Exists' }] },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchExpressions[0].key',
      message: 'Invalid value: "a b": is not a label key',
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchLabels: { '/x': 'y' } },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchLabels["/x"]',
      message: 'Invalid value: "/x": is not a label key',
    },
    {
      spec: {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchLabels: { x: 'a b' } },
        },
      },
      path: 'spec.matchConstraints.objectSelector.matchLabels.x',
      message: 'Invalid value: "a b": is not a label value',
    },
    // match conditions, variables, images
    {
      spec: {
        matchConditions: [
          { name: 'a', expression: 'true' },
          { name: 'a', expression: 'true' },
        ],
      },
      path: 'spec.matchConditions[1].name',
      message: 'Duplicate value: "a"',
    },
    {
      spec: { matchConditions: [{ name: 'a b', expression: 'true' }] },
      path: 'spec.matchConditions[0].name',
      message: 'Invalid value: "a b": must be a qualified name',
    },
    {
      spec: { matchConditions: [{ expression: 'true' }] },
      path: 'spec.matchConditions[0].name',
      message: 'Required value',
    },
    {
      spec: { matchConditions: [{ name: 'a', expression: ' ' }] },
      path: 'spec.matchConditions[0].expression',
      message: 'Required value: expression is not specified',
    },
    {
      spec: {
        matchConditions: Array.from({ length: 65 }, (_, i) => ({
          name: `c${i}`,
          expression: 'true',
        })),
      },
      path: 'spec.matchConditions',
      message: 'Too many: 65: must have at most 64 items',
    },
    {
      spec: { variables: [{ name: 'a-b', expression: '1' }] },
      path: 'spec.variables[0].name',
      message: 'Invalid value: "a-b": must be a CEL identifier that is not a reserved word',
    },
    {
      spec: { variables: [{ name: 'for', expression: '1' }] },
      path: 'spec.variables[0].name',
      message: 'Invalid value: "for": must be a CEL identifier that is not a reserved word',
    },
    {
      spec: {
        variables: [
          { name: 'a', expression: '1' },
          { name: 'a', expression: '2' },
        ],
      },
      path: 'spec.variables[1].name',
      message: 'Duplicate value: "a"',
    },
    {
      spec: {
        images: [
          { name: 'a', expression: '["x"]' },
          { name: 'a', expression: '["y"]' },
        ],
      },
      path: 'spec.images[1].name',
      message: 'Duplicate value: "a"',
    },
    // image references
    {
      spec: { matchImageReferences: [{}] },
      path: 'spec.matchImageReferences[0]',
      message: 'Required value: either glob or expression must be set',
    },
    {
      spec: { matchImageReferences: [{ glob: '' }] },
      path: 'spec.matchImageReferences[0]',
      message: 'Required value: either glob or expression must be set',
    },
    {
      spec: { matchImageReferences: [{ glob: '*', expression: 'true' }] },
      path: 'spec.matchImageReferences[0]',
      message: 'Invalid value: only one of glob and expression may be set',
    },
    {
      spec: { matchImageReferences: [{ glob: 'a{b' }] },
      path: 'spec.matchImageReferences[0].glob',
      message: 'glob "a{b" at character 2: "{" is never closed',
    },
    // validations and audit annotations
    { spec: { validations: undefined }, path: 'spec.validations', message: 'Required value' },
    {
      spec: { validations: [{}] },
      path: 'spec.validations[0].expression',
      message: 'Required value',
    },
    {
      spec: { validations: [{ expression: '' }] },
      path: 'spec.validations[0].expression',
      message: 'Required value: expression is not specified',
    },
    {
      spec: { validations: {} },
      path: 'spec.validations',
      message: 'Invalid value: "object": must be of type array',
    },
    {
      spec: { validations: [{ expression: 'true', message: 1 }] },
      path: 'spec.validations[0].message',
      message: 'Invalid value: "integer": must be of type string',
    },
    {
      spec: { auditAnnotations: [{ key: 'a' }] },
      path: 'spec.auditAnnotations[0].valueExpression',
      message: 'Required value',
    },
    {
      spec: { auditAnnotations: [{ key: 'a/b/c', valueExpression: '""' }] },
      path: 'spec.auditAnnotations[0].key',
      message: 'Invalid value: "a/b/c": must be a qualified name',
    },
    {
      spec: {
        auditAnnotations: [
          { key: 'a', valueExpression: '""' },
          { key: 'a', valueExpression: '""' },
        ],
      },
      path: 'spec.auditAnnotations[1].key',
      message: 'Duplicate value: "a"',
    },
    // settings
    {
      spec: { validationActions: ['test'] },
      path: 'spec.validationActions[0]',
      message: 'Unsupported value: "test": supported values: "Deny", "Audit", "Warn"',
    },
    {
      spec: { validationActions: ['Deny', 'Deny'] },
      path: 'spec.validationActions[1]',
      message: 'Duplicate value: "Deny"',
    },
    {
      spec: { failurePolicy: 'Open' },
      path: 'spec.failurePolicy',
      message: 'Unsupported value: "Open": supported values: "Ignore", "Fail"',
    },
    {
      spec: { validationConfigurations: { required: 'yes' } },
      path: 'spec.validationConfigurations.required',
      message: 'Invalid value: "string": must be of type boolean',
    },
    {
      spec: { webhookConfiguration: { timeoutSeconds: 31 } },
      path: 'spec.webhookConfiguration.timeoutSeconds',
      message: 'Invalid value: 31: must be between 1 and 30',
    },
    {
      spec: { webhookConfiguration: { timeoutSeconds: 1.5 } },
      path: 'spec.webhookConfiguration.timeoutSeconds',
      message: 'Invalid value: "number": must be of type integer',
    },
    // attestors
    { spec: { attestors: undefined }, path: 'spec.attestors', message: 'Required value' },
    {
      spec: { attestors: [keyAttestor('a'), keyAttestor('a')] },
      path: 'spec.attestors[1].name',
      message: 'Duplicate value: "a"',
    },
    {
      spec: { attestors: [{ name: 'a' }] },
      path: 'spec.attestors[0]',
      message: 'Required value: one of cosign, notary must be set',
    },
    {
      spec: { attestors: [{ name: 'a', notary: {} }] },
      path: 'spec.attestors[0].notary.certs',
      message: 'Required value',
    },
    {
      spec: { attestors: [{ name: 'a', notary: { certs: { value: '' } } }] },
      path: 'spec.attestors[0].notary.certs',
      message: 'Required value: certificates in PEM',
    },
    {
      spec: { attestors: [{ name: 'a', notary: { certs: { value: 'x' } } }] },
      path: 'spec.attestors[0].notary',
      message: 'notary.certs: found no certificate in PEM',
    },
    {
      spec: { attestors: [{ name: 'a', notary: { certs: CERTS, tsaCerts: { value: 'x' } } }] },
      path: 'spec.attestors[0].notary',
      message: 'notary.tsaCerts: found no certificate in PEM',
    },
    {
      spec: { attestors: [{ name: 'a', notary: { certs: CERTS, level: 'audit' } }] },
      path: 'spec.attestors[0].notary.level',
      message: 'unknown field "level"',
    },
    {
      spec: { attestors: [{ name: 'a', cosign: {} }] },
      path: 'spec.attestors[0].cosign',
      message:
        'Required value: cosign verifier needs to have one key, keyless or certificate fields set',
    },
    {
      spec: {
        attestors: [{ name: 'a', cosign: { keyless: {}, trustedRoot: { value: ROOT } } }],
      },
      path: 'spec.attestors[0].cosign.keyless.identities',
      message: 'Required value',
    },
    {
      spec: keyless({ identities: [] }),
      path: 'spec.attestors[0].cosign.keyless.identities',
      message: 'Required value: at least one identity',
    },
    {
      spec: keyless({ identities: [{ subject: 's' }] }),
      path: 'spec.attestors[0].cosign.keyless.identities[0]',
      message: 'Invalid value: exactly one of issuer and issuerRegExp must be set',
    },
    {
      spec: keyless({ identities: [{ issuer: 'i', subject: 's', subjectRegExp: 's' }] }),
      path: 'spec.attestors[0].cosign.keyless.identities[0]',
      message:
        'Invalid value: exactly one of subject, subjectRegExp and subjectExpression must be set',
    },
    {
      spec: keyless({ identities: [{ issuer: 'i', subjectRegExp: '(?=a)' }] }),
      path: 'spec.attestors[0].cosign.keyless.identities',
      message: 'identity: subjectRegExp is not RE2',
    },
    {
      spec: keyless({ identities: [IDENTITY] }, '{}'),
      path: 'spec.attestors[0].cosign.trustedRoot.value',
      message: 'trusted root: no trusted root of version 0.1 or 0.2',
    },
    {
      spec: {
        attestors: [
          {
            name: 'a',
            cosign: {
              key: { data: PEM },
              keyless: { identities: [IDENTITY] },
              trustedRoot: { value: ROOT },
            },
          },
        ],
      },
      path: 'spec.attestors[0].cosign',
      message: 'Invalid value: key and keyless are set, only one may be',
    },
    {
      spec: { attestors: [keyAttestor('a', {})] },
      path: 'spec.attestors[0].cosign.key',
      message: 'Required value: one of data, kms and expression must be set',
    },
    {
      spec: { attestors: [keyAttestor('a', { data: '', kms: '' })] },
      path: 'spec.attestors[0].cosign.key',
      message: 'Required value: one of data, kms and expression must be set',
    },
    {
      spec: { attestors: [keyAttestor('a', { data: PEM, kms: 'awskms:///alias/a' })] },
      path: 'spec.attestors[0].cosign.key',
      message: 'Invalid value: data and kms are set, only one may be',
    },
    {
      spec: { attestors: [keyAttestor('a', { data: PEM, hashAlgorithm: 'md5' })] },
      path: 'spec.attestors[0].cosign.key.hashAlgorithm',
      message: 'Unsupported value: "md5": supported values: "sha256", "sha384", "sha512"',
    },
    // unknown fields
    { spec: { validation: [] }, path: 'spec.validation', message: 'unknown field "validation"' },
    {
      spec: withRule({ resource: 'pods' }),
      path: `${RULE}.resource`,
      message: 'unknown field "resource"',
    },
    {
      spec: { validations: [{ expression: 'true', mesage: 'x' }] },
      path: 'spec.validations[0].mesage',
      message: 'unknown field "mesage"',
    },
  ])('$path: $message', async ({ spec, path, message }) => {
    const { policies, faults } = await load([policyDocument(spec)])
    expect(policies).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path, message }])
  })

  test('a key that is none, and a reference that is none', async () => {
    const { policies, faults } = await load([
      policyDocument({
        attestors: [keyAttestor('a', { data: 'x' }), keyAttestor('b', { kms: 'awskms://alias/b' })],
      }),
    ])
    expect(policies).toEqual([])
    expect(faults.map(({ code, path }) => ({ code, path }))).toEqual([
      { code: 'POLICY_INVALID', path: 'spec.attestors[0].cosign.key.data' },
      { code: 'POLICY_INVALID', path: 'spec.attestors[1].cosign.key.kms' },
    ])
  })

  test.each([
    { name: 'no region', kms: 'awskms:///alias/a', options: {}, ok: false },
    {
      name: 'the region of the config',
      kms: 'awskms:///alias/a',
      options: { kmsRegion: 'eu-west-1' },
      ok: true,
    },
    {
      name: 'the region of the ARN',
      kms: 'awskms:///arn:aws:kms:eu-west-1:111122223333:alias/a',
      options: {},
      ok: true,
    },
    {
      name: 'an endpoint nobody allowed',
      kms: 'awskms://kms.test:4566/alias/a',
      options: { kmsRegion: 'eu-west-1' },
      ok: false,
    },
    {
      name: 'an allowed endpoint',
      kms: 'awskms://kms.test:4566/alias/a',
      options: { kmsRegion: 'eu-west-1', kmsEndpoints: ['https://kms.test:4566'] },
      ok: true,
    },
  ])('a KMS key with $name loads: $ok', async ({ kms, options, ok }) => {
    const { policies } = await load(
      [policyDocument({ attestors: [keyAttestor('a', { kms })] })],
      options,
    )
    expect(policies.length === 1).toBe(ok)
  })
})

describe('metadata that is wrong', () => {
  test.each([
    { metadata: undefined, path: 'metadata', message: 'Required value' },
    { metadata: {}, path: 'metadata.name', message: 'Required value' },
    {
      metadata: { name: 'A' },
      path: 'metadata.name',
      message: 'Invalid value: "A": must be a DNS-1123 subdomain',
    },
    {
      metadata: { name: 'a', namespace: 'b' },
      path: 'metadata.namespace',
      message: 'Forbidden: an ImageValidatingPolicy belongs to the whole cluster',
    },
    {
      metadata: { name: 'a', label: {} },
      path: 'metadata.label',
      message: 'unknown field "label"',
    },
    {
      metadata: { name: 'a', labels: { b: 1 } },
      path: 'metadata.labels.b',
      message: 'Invalid value: "integer": must be of type string',
    },
  ])('$path: $message', async ({ metadata, path, message }) => {
    const { faults } = await load([{ ...policyDocument(), metadata }])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path, message }])
  })

  test('what the API server adds is let through', async () => {
    const metadata = {
      name: 'a',
      uid: 'u',
      resourceVersion: '1',
      generation: 2,
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [{}],
    }
    const { faults } = await load([{ ...policyDocument(), metadata, status: { autogen: {} } }])
    expect(faults).toEqual([])
  })
})

describe('what is not supported is refused, never ignored', () => {
  const KEY = { data: PEM }
  const cosign = (fields: object) => ({
    attestors: [
      { name: 'a', cosign: { key: KEY, ctlog: { insecureIgnoreTlog: true }, ...fields } },
    ],
  })
  const at = (field: string) => `spec.attestors[0].cosign.${field}`

  test.each<{ spec: object; path: string; message: string }>([
    {
      spec: cosign({ tuf: { root: { path: '/root.json' } } }),
      path: at('tuf.root.path'),
      message: 'functions read no files; name the TUF root in the config, or set root.data',
    },
    {
      spec: cosign({ key: { ...KEY, hashAlgorithm: 'sha224' } }),
      path: at('key.hashAlgorithm'),
      message: 'sha224 is not supported: WebCrypto does not have it',
    },
    {
      spec: cosign({ key: { kms: 'gcpkms://projects/p' } }),
      path: at('key.kms'),
      message:
        'KMS reference gcpkms://…: keys in Google Cloud KMS are not supported yet; put the public key into cosign.key.data as PEM',
    },
    {
      spec: { evaluation: { mode: 'JSON' } },
      path: 'spec.evaluation.mode',
      message:
        'evaluation mode "JSON" is about files: no webhook is called for them, so that only `countersign test` runs it',
    },
    {
      spec: { evaluation: { mode: 'Envoy' } },
      path: 'spec.evaluation.mode',
      message: 'Unsupported value: "Envoy": supported values: "Kubernetes", "JSON"',
    },
  ])('$path: $message', async ({ spec, path, message }) => {
    const { policies, faults } = await load([policyDocument(spec)], { kmsRegion: 'eu-west-1' })
    expect(policies).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_UNSUPPORTED', path, message }])
  })

  test('a version that is not served', async () => {
    const { faults } = await load([{ ...policyDocument(), apiVersion: 'policies.kyverno.io/v2' }])
    expect(said(faults)).toEqual([
      {
        code: 'POLICY_UNSUPPORTED',
        path: 'apiVersion',
        message:
          'Unsupported value: "policies.kyverno.io/v2": supported values: "policies.kyverno.io/v1", "policies.kyverno.io/v1beta1", "policies.kyverno.io/v1alpha1"',
      },
    ])
  })
})

test('no value anywhere makes reading throw', async () => {
  const spec = {
    ...policyDocument().spec,
    matchConditions: [{ name: 'a', expression: 'true' }],
    matchImageReferences: [{ glob: '*' }],
    variables: [{ name: 'a', expression: '1' }],
    images: [{ name: 'a', expression: '["x"]' }],
    auditAnnotations: [{ key: 'a', valueExpression: '"x"' }],
    validationConfigurations: { required: true },
    evaluation: { background: { enabled: true } },
  }
  const document = { ...policyDocument(), spec }
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('*', '', ' ', 'true', '(', [], {}, [{}], [null], { key: {} }, { name: 'a' }),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...pathsOf(document)), value, async (path, replacement) => {
      const { policies, faults } = await load([replaced(document, path, replacement) as object])
      expect(policies.length === 1).toBe(faults.length === 0)
    }),
    { numRuns: 400 },
  )
})

/** The path of every value below the root. */
function pathsOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const below = Object.entries(value).flatMap(([key, child]) => pathsOf(child, [...path, key]))
  return path.length === 0 ? below : [path, ...below]
}

function replaced(value: unknown, [step, ...rest]: string[], by: unknown): unknown {
  if (step === undefined) return by
  const child = replaced((value as Record<string, unknown>)[step], rest, by)
  return Array.isArray(value)
    ? value.map((item, index) => (String(index) === step ? child : item))
    : { ...(value as object), [step]: child }
}

describe('a document that is right', () => {
  test('with certificates of the Notary Project says what is not looked up', async () => {
    const attestors = [{ name: 'a', notary: { certs: CERTS, tsaCerts: CERTS } }]
    const { policies, faults, warnings } = await load([policyDocument({ attestors })])
    expect(faults).toEqual([])
    expect(policies[0]!.attestors).toEqual([
      {
        kind: 'notary',
        name: 'a',
        certs: CERTS.value,
        tsaCerts: CERTS.value,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ])
    expect(warnings.map(({ path, code }) => [path, code])).toEqual([
      ['spec.attestors[0].notary', 'POLICY_NOTE'],
    ])
  })

  test('has its defaults', async () => {
    const { policies, faults, warnings } = await load([policyDocument()])
    expect(faults).toEqual([])
    expect(warnings).toEqual([])
    const { hash, ...policy } = policies[0]!
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(policy).toMatchObject({
      kind: 'ImageValidatingPolicy',
      apiVersion: 'policies.kyverno.io/v1',
      name: 'must-sign',
      source: '0.json:1',
      failurePolicy: 'Fail',
      validationActions: ['Deny'],
      matchConstraints: { resourceRules: [POD_RULE], excludeResourceRules: [] },
      matchConditions: [],
      matchImageReferences: [],
      images: [],
      variables: [],
      validations: [{ expression: { source: 'true', type: 'bool' } }],
      auditAnnotations: [],
      mutateDigest: true,
      verifyDigest: true,
      required: true,
    })
    expect(policy.attestors).toEqual([
      {
        kind: 'cosign-key',
        name: 'release',
        key: { data: PEM },
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ])
  })

  test('with an attestor of identities', async () => {
    const { policies, faults } = await load([
      policyDocument(keyless({ identities: [{ ...IDENTITY, subjectRegExp: '' }] })),
    ])
    expect(faults).toEqual([])
    expect(policies[0]?.attestors).toEqual([
      {
        kind: 'cosign-keyless',
        name: 'a',
        identities: [IDENTITY],
        trust: { root: ROOT },
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ])
    const [other] = (
      await load([policyDocument(keyless({ identities: [{ ...IDENTITY, issuer: 'x' }] }))])
    ).policies
    expect(other?.attestors[0]?.hash).not.toBe(policies[0]?.attestors[0]?.hash)
    expect(other?.hash).not.toBe(policies[0]?.hash)
  })

  test.each(['v1', 'v1beta1', 'v1alpha1'])('of version %s', async (version) => {
    const { policies } = await load([
      { ...policyDocument(), apiVersion: `policies.kyverno.io/${version}` },
    ])
    expect(policies.map(({ apiVersion }) => apiVersion)).toEqual([`policies.kyverno.io/${version}`])
  })

  test('null and empty say the same as nothing', async () => {
    const { policies, faults } = await load([
      policyDocument({
        attestations: [],
        auditAnnotations: null,
        autogen: { podControllers: { controllers: [] } },
        evaluation: { mode: '', admission: null },
        images: null,
        validationActions: [],
        validationConfigurations: { mutateDigest: null, required: false },
        attestors: [
          {
            name: 'a',
            cosign: {
              key: { data: PEM, kms: '', hashAlgorithm: '' },
              annotations: {},
              source: null,
              ctlog: { insecureIgnoreTlog: true, insecureIgnoreSCT: true, url: '' },
            },
          },
        ],
      }),
    ])
    expect(faults).toEqual([])
    expect(policies[0]).toMatchObject({
      validationActions: ['Deny'],
      mutateDigest: true,
      verifyDigest: true,
      required: false,
    })
  })

  test('keeps what was written', async () => {
    const matchConstraints = {
      resourceRules: [{ ...POD_RULE, scope: 'Namespaced', resourceNames: ['a'] }],
      excludeResourceRules: [{ ...POD_RULE, operations: ['UPDATE'] }],
      objectSelector: {
        matchLabels: { 'app.test/x': 'y' },
        matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }],
      },
      namespaceSelector: {
        matchExpressions: [
          { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system'] },
        ],
      },
      matchPolicy: 'Exact',
    }
    const { policies, faults } = await load([
      policyDocument({
        matchConstraints,
        failurePolicy: 'Ignore',
        validationActions: ['Deny', 'Warn'],
        webhookConfiguration: { timeoutSeconds: 20 },
        matchImageReferences: [{ glob: 'a/*' }, { expression: 'ref.startsWith("b/")' }],
        validations: [
          { expression: 'true', message: 'm', messageExpression: '"n"', reason: 'Forbidden' },
        ],
        auditAnnotations: [{ key: 'k', valueExpression: '"v"' }],
      }),
    ])
    expect(faults).toEqual([])
    expect(policies[0]).toMatchObject({
      matchConstraints,
      failurePolicy: 'Ignore',
      validationActions: ['Deny', 'Warn'],
      timeoutSeconds: 20,
      matchImageReferences: [
        { glob: 'a/*' },
        { expression: { source: 'ref.startsWith("b/")', type: 'bool' } },
      ],
      validations: [{ message: 'm', messageExpression: { source: '"n"', type: 'string' } }],
      auditAnnotations: [{ key: 'k', valueExpression: { source: '"v"', type: 'string' } }],
    })
  })
})
