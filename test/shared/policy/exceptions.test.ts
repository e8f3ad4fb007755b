import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LoadOptions } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { load, policyDocument, said } from './documents.ts'

const NOW = Date.UTC(2026, 10, 30)
const SKIPPED = { name: 'name', expression: 'object.metadata.name == "skipped"' }

function exceptionDocument(spec: object = {}, metadata: object = {}) {
  return {
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'PolicyException',
    metadata: { name: 'excuse', namespace: 'shop', ...metadata },
    spec: {
      policyRefs: [{ kind: 'ImageValidatingPolicy', name: 'must-sign' }],
      matchConditions: [SKIPPED],
      ...spec,
    },
  }
}

const inNamespace = (namespace: string, spec: object = {}) => ({
  ...policyDocument(spec),
  kind: 'NamespacedImageValidatingPolicy',
  metadata: { name: 'must-sign', namespace },
})
const NAMESPACED_REF = [{ kind: 'NamespacedImageValidatingPolicy', name: 'must-sign' }]

/** Silences the note that is about all exceptions. */
const QUIET: LoadOptions = { now: NOW, exceptions: { namespaces: ['*'] } }

async function attached(documents: object[], options: LoadOptions = QUIET) {
  const { policies, faults, warnings } = await load(documents, options)
  expect(said(faults)).toEqual([])
  const names = (policy: CompiledPolicy) => policy.exceptions.map(({ name }) => name)
  return { policies, names: policies.map(names), warnings: said(warnings) }
}

const note = (path: string, message: string) => ({ code: 'POLICY_NOTE', path, message })

describe('an exception', () => {
  test('is attached with its conditions checked', async () => {
    const { policies, warnings } = await attached([
      exceptionDocument({
        images: ['registry.test/tools/*'],
        allowedValues: ['x', ''],
        reportResult: 'pass',
        expiresAt: '2027-01-31T00:00:00+01:00',
        evaluationMode: 'Kubernetes',
        properties: { ticket: 'SHOP-1' },
      }),
      policyDocument(),
    ])
    expect(warnings).toEqual([])
    expect(policies[0]?.exceptions).toEqual([
      {
        name: 'shop/excuse',
        source: '0.json:1',
        matchConditions: [
          { name: 'name', expression: expect.objectContaining({ source: SKIPPED.expression }) },
        ],
        images: ['registry.test/tools/*'],
        allowedValues: ['x', ''],
        reportResult: 'pass',
        expiresAt: Date.UTC(2027, 0, 30, 23),
      },
    ])
  })

  test('says nothing about images with an empty list, as upstream', async () => {
    const { policies } = await attached([
      exceptionDocument({ images: [], allowedValues: [] }),
      policyDocument(),
    ])
    expect(policies[0]?.exceptions).toMatchObject([{ reportResult: 'skip' }])
    expect(Object.keys(policies[0]!.exceptions[0]!)).not.toContain('images')
    expect(Object.keys(policies[0]!.exceptions[0]!)).not.toContain('allowedValues')
  })

  test('goes with the variants for Pod controllers, its expressions as they are', async () => {
    const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'] }
    const pods = policyDocument({
      matchConstraints: { resourceRules: [{ ...rule, resources: ['pods'] }] },
    })
    const { policies, names } = await attached([exceptionDocument(), pods])
    expect(policies.map(({ autogen }) => autogen)).toEqual([undefined, 'defaults', 'cronjobs'])
    expect(names).toEqual([['shop/excuse'], ['shop/excuse'], ['shop/excuse']])
    for (const { exceptions } of policies) {
      expect(exceptions[0]?.matchConditions[0]?.expression.source).toBe(SKIPPED.expression)
    }
  })

  test('changes the hash of its policies, by all that it says', async () => {
    const hashOf = async (...documents: object[]) =>
      (await attached([...documents, policyDocument()])).policies[0]!.hash
    const hashes = [
      await hashOf(),
      await hashOf(exceptionDocument()),
      await hashOf(exceptionDocument({}, { name: 'other' })),
      await hashOf(exceptionDocument({ images: ['a'] })),
      await hashOf(exceptionDocument({ expiresAt: '2027-01-01T00:00:00Z' })),
      await hashOf(exceptionDocument({ matchConditions: [] })),
    ]
    expect(new Set(hashes).size).toBe(hashes.length)
    expect(await hashOf(exceptionDocument())).toBe(hashes[1])
  })

  test('comes in the order of names, whatever the files are called', async () => {
    const { names } = await attached([
      exceptionDocument({}, { name: 'b' }),
      policyDocument(),
      exceptionDocument({}, { name: 'a' }),
      exceptionDocument({}, { name: 'c', namespace: 'a' }),
    ])
    expect(names).toEqual([['a/c', 'shop/a', 'shop/b']])
  })

  test('that says when, and nothing else, is told what it exempts', async () => {
    const { names, warnings } = await attached([
      exceptionDocument({ matchConditions: [] }),
      policyDocument(),
    ])
    expect(names).toEqual([['shop/excuse']])
    expect(warnings).toEqual([
      note(
        'spec',
        'without matchConditions, images and allowedValues it exempts every request from the policies it names',
      ),
    ])
  })

  test.each([
    { name: 'ended', expiresAt: '2026-11-29T23:59:59Z', left: [] },
    {
      name: 'ends at this moment, which still counts',
      expiresAt: '2026-11-30T00:00:00Z',
      left: ['shop/excuse'],
    },
    { name: 'ends later', expiresAt: '2026-11-30T00:00:00.001Z', left: ['shop/excuse'] },
  ])('that $name', async ({ expiresAt, left }) => {
    const { names, warnings } = await attached([exceptionDocument({ expiresAt }), policyDocument()])
    expect(names).toEqual([left])
    const expired = note('spec.expiresAt', 'the exception has expired, so it is left out')
    expect(warnings).toEqual(left.length === 0 ? [expired] : [])
  })

  test('that has ended stays where nobody says what time it is: the engine looks again', async () => {
    const { names } = await attached(
      [exceptionDocument({ expiresAt: '2020-01-01T00:00:00Z' }), policyDocument()],
      {},
    )
    expect(names).toEqual([['shop/excuse']])
  })
})

describe('whom an exception reaches', () => {
  const NOTHING = 'spec.policyRefs[0]'

  test('a cluster policy from every namespace, which is said once', async () => {
    const { names, warnings } = await attached(
      [
        exceptionDocument({}, { name: 'a' }),
        exceptionDocument({}, { name: 'b' }),
        policyDocument(),
      ],
      {},
    )
    expect(names).toEqual([['shop/a', 'shop/b']])
    expect(warnings).toEqual([
      note(
        'metadata',
        'exceptions of every namespace count, as in Kyverno; exceptions.namespaces of the config says which do',
      ),
    ])
  })

  test('nobody from a namespace that may hold none', async () => {
    const { names, warnings } = await attached([exceptionDocument(), policyDocument()], {
      exceptions: { namespaces: ['ops'] },
    })
    expect(names).toEqual([[]])
    expect(warnings).toEqual([
      note(
        'metadata',
        'exceptions of namespace shop do not count: it is not among exceptions.namespaces of the config',
      ),
    ])
  })

  test('a namespaced policy from its own namespace only', async () => {
    const { names, warnings } = await attached([
      exceptionDocument({ policyRefs: NAMESPACED_REF }),
      inNamespace('bank'),
      inNamespace('shop'),
      policyDocument(),
    ])
    expect(names).toEqual([[], [], ['shop/excuse']])
    expect(warnings).toEqual([])
  })

  test('no namespaced policy from elsewhere, and that is said', async () => {
    const { names, warnings } = await attached([
      exceptionDocument({ policyRefs: NAMESPACED_REF }),
      inNamespace('bank'),
    ])
    expect(names).toEqual([[]])
    expect(warnings).toEqual([
      note(
        NOTHING,
        'it exempts nothing: NamespacedImageValidatingPolicy "must-sign" is in namespace bank, and an exception of shop reaches no other unless exceptions.crossNamespace of the config says so',
      ),
    ])
  })

  test('namespaced policies everywhere where the config says so', async () => {
    const { names, warnings } = await attached(
      [exceptionDocument({ policyRefs: NAMESPACED_REF }), inNamespace('bank'), inNamespace('shop')],
      { exceptions: { namespaces: ['shop'], crossNamespace: true } },
    )
    expect(names).toEqual([['shop/excuse'], ['shop/excuse']])
    expect(warnings).toEqual([])
  })

  test.each([
    {
      name: 'a policy that is not there',
      ref: { kind: 'ImageValidatingPolicy', name: 'nobody' },
      why: 'there is no ImageValidatingPolicy "nobody"',
    },
    {
      name: 'a policy of another kind',
      ref: { kind: 'NamespacedImageValidatingPolicy', name: 'must-sign' },
      why: 'there is no NamespacedImageValidatingPolicy "must-sign"',
    },
    {
      name: 'what is no image policy',
      ref: { kind: 'ValidatingPolicy', name: 'must-sign' },
      why: '"ValidatingPolicy" is no kind of image policy',
    },
  ])('not $name, and that is said', async ({ ref, why }) => {
    const { names, warnings } = await attached([
      exceptionDocument({ policyRefs: [ref] }),
      policyDocument(),
    ])
    expect(names).toEqual([[]])
    expect(warnings).toEqual([note(NOTHING, `it exempts nothing: ${why}`)])
  })

  test('nothing is said of a policy that has a fault of its own', async () => {
    const { faults, warnings } = await load(
      [exceptionDocument(), policyDocument({ validations: 7 })],
      QUIET,
    )
    expect(faults).toHaveLength(1)
    expect(warnings).toEqual([])
  })
})

describe('an exception that is wrong', () => {
  const REFS = 'spec.policyRefs'

  test.each<{ spec?: object; metadata?: object; path: string; message: string }>([
    {
      spec: { policyRefs: [] },
      path: REFS,
      message: 'Invalid value: []: must specify at least one policy ref',
    },
    {
      spec: { policyRefs: undefined },
      path: REFS,
      message: 'Required value: must specify at least one policy ref',
    },
    {
      spec: { policyRefs: [{ kind: 'ImageValidatingPolicy', name: '' }] },
      path: `${REFS}[0].name`,
      message: 'Invalid value: "": must specify policy name',
    },
    {
      spec: { policyRefs: [{ kind: '', name: 'a' }] },
      path: `${REFS}[0].kind`,
      message: 'Invalid value: "": must specify policy kind',
    },
    {
      spec: { policyRefs: [{ name: 'a' }] },
      path: `${REFS}[0].kind`,
      message: 'Required value: must specify policy kind',
    },
    {
      spec: { reportResult: 'fail' },
      path: 'spec.reportResult',
      message: 'Unsupported value: "fail": supported values: "skip", "pass"',
    },
    {
      spec: { images: ['a[b'] },
      path: 'spec.images[0]',
      message: 'glob "a[b" at character 2: "[" is never closed',
    },
    { spec: { images: [''] }, path: 'spec.images[0]', message: 'Required value' },
    {
      spec: { image: ['a'] },
      path: 'spec.image',
      message: 'unknown field "image"',
    },
    ...[
      '2026-02-30T00:00:00Z',
      '2026-12-01',
      '2026-12-01 00:00:00Z',
      '2026-12-01T24:00:00Z',
      'x',
    ].map((expiresAt) => ({
      spec: { expiresAt },
      path: 'spec.expiresAt',
      message: `Invalid value: "${expiresAt}": must be a time such as 2027-01-31T00:00:00Z`,
    })),
    {
      metadata: { namespace: undefined },
      path: 'metadata.namespace',
      message: 'Required value: a PolicyException belongs to a namespace',
    },
  ])('$path: $message', async ({ spec, metadata, path, message }) => {
    const { policies, faults } = await load([exceptionDocument(spec, metadata), policyDocument()])
    expect(policies.flatMap(({ exceptions }) => exceptions)).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path, message }])
  })

  test.each([
    ['variables.a', "undeclared reference to 'variables'"],
    ['images.containers.size() == 0', "undeclared reference to 'images'"],
    ['exceptions.allowedImages.size() == 0', "undeclared reference to 'exceptions'"],
    ['1', 'must evaluate to bool but got int'],
  ])('sees what the request has, and is a condition: %s', async (expression, message) => {
    const conditions = { matchConditions: [{ name: 'a', expression }] }
    const { faults } = await load([exceptionDocument(conditions), policyDocument()])
    expect(faults).toMatchObject([
      {
        code: 'CEL_CHECK',
        path: 'spec.matchConditions[0].expression',
        message: expect.stringContaining(message),
      },
    ])
  })

  test('is refused when it is about files, where none are evaluated', async () => {
    const document = exceptionDocument({ evaluationMode: 'JSON' })
    expect(said((await load([document, policyDocument()])).faults)).toMatchObject([
      { code: 'POLICY_UNSUPPORTED', path: 'spec.evaluationMode' },
    ])
    expect((await load([document, policyDocument()], { jsonMode: true })).faults).toEqual([])
  })

  test('twice in one namespace names both places', async () => {
    const documents = [
      exceptionDocument(),
      exceptionDocument({}, { namespace: 'bank' }),
      exceptionDocument(),
      policyDocument(),
    ]
    expect(said((await load(documents)).faults)).toEqual([
      {
        code: 'POLICY_INVALID',
        path: 'metadata.name',
        message: 'Duplicate value: "shop/excuse": 2.json:1 and 0.json:1 define the same exception',
      },
    ])
  })
})

test('no value in an exception makes loading throw, and what has a fault exempts nothing', async () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('*', '', 'true', '(', [], {}, [null], [{}], [''], 'x'.repeat(300)),
  )
  const fields = ['policyRefs', 'matchConditions', 'images', 'allowedValues', 'reportResult']
  const field = fc.constantFrom(...fields, 'expiresAt', 'evaluationMode', 'properties', 'other')
  await fc.assert(
    fc.asyncProperty(field, value, async (name, odd) => {
      const { policies, faults } = await load([
        exceptionDocument({ [name]: odd }),
        policyDocument(),
      ])
      if (faults.length > 0) expect(policies[0]?.exceptions).toEqual([])
    }),
    { numRuns: 300 },
  )
})
