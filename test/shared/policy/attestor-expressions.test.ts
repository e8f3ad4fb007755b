import { describe, expect, test } from 'vitest'
import type { HostCall } from '#shared/cel/types.ts'
import { evaluate } from '#shared/policy/evaluate.ts'
import { loadRuntime, preparePolicy } from '#shared/policy/prepare.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import type { UnresolvedAttestor } from '#shared/policy/types.ts'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { ISSUER, SigstoreWorld } from '#test/fakes/sigstore.ts'
import { compiledPolicy, load, PEM, POD_RULE, policyDocument, said } from './documents.ts'
import { pod, review } from './review.ts'

const ROOT = JSON.stringify(new SigstoreWorld().trustedRoot())
const ca = mintRoot({ keyName: 'expressions ca' })
const CA = pemOf(ca)
const IGNORE = { insecureIgnoreTlog: true, insecureIgnoreSCT: true }
/** Of no variable, so that nothing is noted about it. */
const TEXT = '"a" + "b"'
const IDENTITY = { issuer: ISSUER, subjectExpression: TEXT }

const attestors = (...cosign: object[]) => ({
  attestors: cosign.map((each, index) => ({ name: `a${index}`, cosign: each })),
})
const at = (field: string) => `spec.attestors[0].cosign.${field}`

/** The only attestor of a policy that must load, and its notes. */
async function unresolved(entry: object, spec: object = {}) {
  const document = policyDocument({ attestors: [{ name: 'a', ...entry }], ...spec })
  const { policies, faults, warnings } = await load([document], { trustedRoot: () => ROOT })
  expect(said(faults)).toEqual([])
  const attestor = policies[0]?.attestors[0]
  if (attestor?.kind !== 'unresolved') throw new Error('it is no unresolved attestor')
  return { attestor, warnings: said(warnings), hash: policies[0]?.hash }
}

const summary = ({ draft, expressions }: UnresolvedAttestor) => ({
  draft,
  expressions: expressions.map(({ gives, at: where, expression }) => [
    gives,
    where,
    expression.source,
  ]),
})

describe('every field that may be an expression', () => {
  test.each<{ name: string; entry: object; draft: object; expressions: unknown[] }>([
    {
      name: 'cosign.key.expression gives the key',
      entry: { cosign: { key: { expression: TEXT, hashAlgorithm: 'sha384' }, ctlog: IGNORE } },
      draft: { kind: 'cosign-key', key: { data: '' }, hashAlgorithm: 'sha384' },
      expressions: [['key', ['key', 'data'], TEXT]],
    },
    {
      name: 'certificate.cert.expression stands beside the chain',
      entry: {
        cosign: {
          certificate: { cert: { expression: TEXT }, certChain: { value: CA } },
          ctlog: IGNORE,
        },
      },
      draft: {
        kind: 'cosign-certificate',
        chain: CA,
        trust: { ignoreTlog: true, ignoreSct: true },
      },
      expressions: [['cert', ['certificate'], TEXT]],
    },
    {
      name: 'certificate.certChain.expression asks for a chain before there is one',
      entry: { cosign: { certificate: { certChain: { expression: TEXT } }, ctlog: IGNORE } },
      draft: { kind: 'cosign-certificate', trust: { ignoreTlog: true, ignoreSct: true } },
      expressions: [['cert chain', ['chain'], TEXT]],
    },
    {
      name: 'trustedRoot.expression takes the place of the usual root',
      entry: { cosign: { key: { data: PEM }, trustedRoot: { expression: TEXT } } },
      draft: { kind: 'cosign-key', key: { data: PEM }, trust: {} },
      expressions: [['trustedRoot', ['trust', 'root'], TEXT]],
    },
    {
      name: 'trustedRoot.expression is not passed over where a key needs no root',
      entry: { cosign: { key: { data: PEM }, ctlog: IGNORE, trustedRoot: { expression: TEXT } } },
      draft: {
        kind: 'cosign-key',
        key: { data: PEM },
        trust: { ignoreTlog: true, ignoreSct: true },
      },
      expressions: [['trustedRoot', ['trust', 'root'], TEXT]],
    },
    {
      name: 'subjectExpression of one identity among others',
      entry: {
        cosign: {
          keyless: { identities: [{ issuer: ISSUER, subject: 'me' }, IDENTITY] },
          trustedRoot: { value: ROOT },
        },
      },
      draft: {
        kind: 'cosign-keyless',
        identities: [{ issuer: ISSUER, subject: 'me' }, { issuer: ISSUER }],
        trust: { root: ROOT },
      },
      expressions: [['subject', ['identities', 1, 'subject'], TEXT]],
    },
    {
      name: 'notary.certs.expression and tsaCerts.expression',
      entry: { notary: { certs: { expression: TEXT }, tsaCerts: { expression: '"c"' } } },
      draft: { kind: 'notary', certs: '' },
      expressions: [
        ['notary cert', ['certs'], TEXT],
        ['notary tsa cert', ['tsaCerts'], '"c"'],
      ],
    },
  ])('$name', async ({ entry, draft, expressions }) => {
    const { attestor } = await unresolved(entry)
    expect(summary(attestor)).toEqual({ draft: { name: 'a', ...draft }, expressions })
  })

  test('an empty expression is none', async () => {
    const key = { data: PEM, expression: '' }
    const policy = await compiledPolicy(attestors({ key, ctlog: IGNORE }))
    expect(policy.attestors[0]?.kind).toBe('cosign-key')
  })
})

describe('what cannot be meant is refused when the policy loads', () => {
  test.each<{ name: string; cosign: object; is: object | object[] }>([
    {
      name: 'a key and an expression for it',
      cosign: { key: { data: PEM, expression: TEXT }, ctlog: IGNORE },
      is: {
        path: at('key'),
        message: 'Invalid value: data and expression are set, only one may be',
      },
    },
    {
      name: 'a value and an expression for it',
      cosign: {
        certificate: { certChain: { value: CA, expression: TEXT } },
        ctlog: IGNORE,
      },
      is: {
        path: at('certificate.certChain'),
        message: 'Invalid value: value and expression are set, only one may be',
      },
    },
    {
      name: 'a subject and an expression for it: upstream would ignore the expression',
      cosign: {
        keyless: { identities: [{ ...IDENTITY, subject: 'me' }] },
        trustedRoot: { value: ROOT },
      },
      is: {
        path: at('keyless.identities[0]'),
        message:
          'Invalid value: exactly one of subject, subjectRegExp and subjectExpression must be set',
      },
    },
    {
      name: 'a subject of any issuer',
      cosign: {
        keyless: { identities: [{ subjectExpression: TEXT }] },
        trustedRoot: { value: ROOT },
      },
      is: {
        path: at('keyless.identities[0]'),
        message: 'Invalid value: exactly one of issuer and issuerRegExp must be set',
      },
    },
    {
      name: 'a blank expression',
      cosign: { key: { expression: ' ' }, ctlog: IGNORE },
      is: {
        path: at('key.expression'),
        message: 'Required value: expression is not specified',
      },
    },
    {
      name: 'an expression that never is a text',
      cosign: { key: { expression: '1 + 1' }, ctlog: IGNORE },
      is: {
        code: 'CEL_CHECK',
        path: at('key.expression'),
        message: 'must evaluate to one of [string dyn] but got int (at 1:1 of the expression)',
      },
    },
    {
      name: 'a misspelt variable',
      cosign: { keyless: { identities: [{ ...IDENTITY, subjectExpression: 'varables.x' }] } },
      is: {
        code: 'CEL_CHECK',
        path: at('keyless.identities[0].subjectExpression'),
        message: expect.stringContaining("undeclared reference to 'varables'"),
      },
    },
    {
      name: 'an attestor that depends on itself',
      cosign: {
        key: { expression: 'verifyImageSignatures("a", [attestors.a0]) > 0 ? "x" : "y"' },
        ctlog: IGNORE,
      },
      is: {
        code: 'POLICY_UNSUPPORTED',
        path: at('key.expression'),
        message:
          'what an attestor is may not depend on attestors, neither here nor in a variable that this reads',
      },
    },
    {
      name: 'what is written out beside an expression is checked: a pattern',
      cosign: {
        keyless: { identities: [IDENTITY, { issuer: ISSUER, subjectRegExp: '(' }] },
        trustedRoot: { expression: TEXT },
      },
      is: { path: at('keyless.identities'), message: 'identity: subjectRegExp is not RE2' },
    },
    {
      name: 'the key of a log',
      cosign: {
        key: { expression: TEXT },
        ctlog: { rekorPubKey: 'no key' },
        trustedRoot: { expression: TEXT },
      },
      is: {
        path: at('ctlog.rekorPubKey'),
        message: expect.stringMatching(/^ctlog\.rekorPubKey: /),
      },
    },
    {
      name: 'a key below a root to come',
      cosign: { key: { data: 'no key' }, trustedRoot: { expression: TEXT } },
      is: { path: at('key.data'), message: expect.stringMatching(/PEM/) },
    },
    {
      name: 'a chain without an authority for a certificate to come',
      cosign: {
        certificate: { cert: { expression: TEXT }, certChain: { value: 'no chain' } },
        ctlog: IGNORE,
      },
      is: {
        path: at('certificate.certChain.value'),
        message: 'found neither PEM nor base64 of PEM',
      },
    },
  ])('$name', async ({ cosign, is }) => {
    const { policies, faults } = await load([policyDocument(attestors(cosign))], {
      trustedRoot: () => ROOT,
    })
    expect(policies).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', ...is }])
  })

  test('an attestor that depends on others through a variable of a variable', async () => {
    const { faults } = await load([
      policyDocument({
        variables: [
          { name: 'count', expression: 'verifyImageSignatures("a", [attestors.a0])' },
          { name: 'text', expression: 'string(variables.count)' },
          { name: 'harmless', expression: '"x"' },
        ],
        ...attestors(
          { key: { data: PEM }, ctlog: IGNORE },
          { key: { expression: 'variables.text' }, ctlog: IGNORE },
          { key: { expression: 'variables.harmless' }, ctlog: IGNORE },
        ),
      }),
    ])
    expect(said(faults).map(({ code, path }) => [code, path])).toEqual([
      ['POLICY_UNSUPPORTED', 'spec.attestors[1].cosign.key.expression'],
    ])
  })

  test.each([
    { notary: { certs: { value: 'no certificate' }, tsaCerts: { expression: TEXT } }, of: 'certs' },
    {
      notary: { certs: { expression: TEXT }, tsaCerts: { value: 'no certificate' } },
      of: 'tsaCerts',
    },
  ])('notary.$of beside an expression', async ({ notary, of }) => {
    const { faults } = await load([policyDocument({ attestors: [{ name: 'a', notary }] })])
    expect(said(faults)).toEqual([
      {
        code: 'POLICY_INVALID',
        path: 'spec.attestors[0].notary',
        message: `notary.${of}: found no certificate in PEM`,
      },
    ])
  })
})

describe('what depends on the request', () => {
  const key = (expression: string) => ({ cosign: { key: { expression }, ctlog: IGNORE } })
  const note = (names: string) => ({
    code: 'POLICY_NOTE',
    path: at('key.expression'),
    message: `this reads ${names}: whoever makes the request has a say in whose signature counts, and may make it their own`,
  })
  const variables = [
    { name: 'chosen', expression: 'object.metadata.annotations' },
    { name: 'through', expression: 'string(variables.chosen["key"])' },
    { name: 'fixed', expression: '{"object": "request"}' },
  ]

  test.each([
    { expression: 'object.metadata.annotations.key', is: [note('object')] },
    {
      expression: 'string(oldObject.x) + request.namespace',
      is: [note('oldObject and request')],
    },
    { expression: 'images.containers[0]', is: [note('images')] },
    { expression: 'variables.through', is: [note('object')] },
    { expression: 'variables.fixed["object"]', is: [] },
    { expression: '["x"].map(object, object)[0] + "object.metadata"', is: [] },
  ])('is told of: $expression', async ({ expression, is }) => {
    const { warnings } = await unresolved(key(expression), { variables })
    expect(warnings).toEqual(is)
  })
})

describe('the hash of a policy', () => {
  const hashOf = async (expression: string, root: string) => {
    const document = policyDocument(
      attestors({ key: { expression }, tuf: {}, ctlog: { insecureIgnoreTlog: false } }),
    )
    const { policies, faults } = await load([document], { trustedRoot: () => root })
    expect(faults).toEqual([])
    return policies[0]?.hash
  }
  const OTHER = JSON.stringify(new SigstoreWorld().trustedRoot())

  test('depends on the source of the expression and on everything beside it', async () => {
    const hashes = await Promise.all([
      hashOf('"a"', ROOT),
      hashOf('"b"', ROOT),
      hashOf('"a"', OTHER),
      hashOf('"a"', ROOT),
    ])
    expect(new Set(hashes.slice(0, 3)).size).toBe(3)
    expect(hashes[3]).toBe(hashes[0])
  })
})

describe('policies that are made of it', () => {
  test('expressions are those of the Pod in a controller', async () => {
    const { policies, faults } = await load([
      policyDocument({
        matchConstraints: { resourceRules: [{ ...POD_RULE, resources: ['pods'] }] },
        ...attestors(
          { key: { expression: 'object.metadata.annotations.key' }, ctlog: IGNORE },
          {
            keyless: {
              identities: [
                { issuer: ISSUER, subject: 'me' },
                { issuer: ISSUER, subjectExpression: 'string(object.spec.x)' },
              ],
            },
            trustedRoot: { value: ROOT },
          },
        ),
      }),
    ])
    expect(faults).toEqual([])
    const sources = policies.map(({ autogen, attestors: all }) => [
      autogen,
      ...all.flatMap((each) =>
        each.kind === 'unresolved' ? each.expressions.map((e) => e.expression.source) : [],
      ),
    ])
    expect(sources).toEqual([
      [undefined, 'object.metadata.annotations.key', 'string(object.spec.x)'],
      [
        'defaults',
        'object.spec.template.metadata.annotations.key',
        'string(object.spec.template.spec.x)',
      ],
      [
        'cronjobs',
        'object.spec.jobTemplate.spec.template.metadata.annotations.key',
        'string(object.spec.jobTemplate.spec.template.spec.x)',
      ],
    ])
  })

  test.each([
    {
      expression:
        'images.containers.all(i, verifyImageSignatures(i, [attestors.a0, attestors.a1]) > 0)',
      is: true,
    },
    {
      expression: 'attestors.all(name, verifyImageSignatures("a", [attestors[name]]) > 0)',
      is: true,
    },
    {
      expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.a1]) == 0)',
      is: false,
    },
  ])('more signatures can only help: $is for $expression', async ({ expression, is }) => {
    const policy = await compiledPolicy({
      ...attestors(
        { key: { data: PEM }, ctlog: IGNORE },
        { key: { expression: TEXT }, ctlog: IGNORE },
      ),
      validations: [{ expression }],
    })
    expect(policy.moreNeverHurts).toBe(is)
  })
})

describe('in one evaluation', () => {
  const SPEC = {
    validationConfigurations: { verifyDigest: false },
    ...attestors(
      { key: { expression: 'string(getImageData("key").pem)' }, ctlog: IGNORE },
      { key: { expression: 'string(getImageData("other").pem)' }, ctlog: IGNORE },
    ),
    validations: [
      {
        expression:
          'images.containers.all(i, verifyImageSignatures(i, [attestors.a0, attestors.a1]) > 0)',
      },
      { expression: 'verifyImageSignatures("a", [attestors.a0]) >= 0' },
    ],
  }

  async function calls(known: boolean) {
    const shipped = JSON.parse(JSON.stringify(await compiledPolicy(SPEC)))
    const prepared = preparePolicy(shipped, await loadRuntime(shipped))
    const made: HostCall[] = []
    const subject = subjectOf(review({ object: pod('r.test/a', 'r.test/b') }))
    const { status } = evaluate(prepared, subject, (call) => {
      made.push(call)
      if (call.name !== 'getImageData') return { kind: 'value', value: 1 }
      return known ? { kind: 'value', value: { pem: `${call.args[0]} PEM` } } : { kind: 'pending' }
    })
    return { status, made: made.map(({ name, args }) => [name, ...args]) }
  }

  test('expressions run once, and their texts go out with the calls', async () => {
    expect(await calls(true)).toEqual({
      status: 'pass',
      made: [
        ['getImageData', 'key'],
        ['getImageData', 'other'],
        [
          'verifyImageSignatures',
          'r.test/a',
          [
            ['a0', 'key PEM'],
            ['a1', 'other PEM'],
          ],
        ],
        [
          'verifyImageSignatures',
          'r.test/b',
          [
            ['a0', 'key PEM'],
            ['a1', 'other PEM'],
          ],
        ],
        ['verifyImageSignatures', 'a', [['a0', 'key PEM']]],
      ],
    })
  })

  test('what they wait for is asked for in one pass, and nobody is asked with less', async () => {
    expect(await calls(false)).toEqual({
      status: 'pending',
      made: [
        ['getImageData', 'key'],
        ['getImageData', 'other'],
      ],
    })
  })

  test('a policy without the part of the runtime that it needs does not run', async () => {
    const policy = await compiledPolicy(SPEC)
    expect(() => preparePolicy(policy)).toThrow(
      'policy must-sign has attestors with expressions and no runtime for them',
    )
  })
})
