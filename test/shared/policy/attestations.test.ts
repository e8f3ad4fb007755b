import { describe, expect, test } from 'vitest'
import { compiledPolicy, load, policyDocument, said } from './documents.ts'

const SLSA = 'https://slsa.dev/provenance/v1'

describe('spec.attestations', () => {
  test.each([
    ['custom', 'https://cosign.sigstore.dev/attestation/v1'],
    ['slsaprovenance', 'https://slsa.dev/provenance/v0.2'],
    ['slsaprovenance02', 'https://slsa.dev/provenance/v0.2'],
    ['slsaprovenance1', SLSA],
    ['spdx', 'https://spdx.dev/Document'],
    ['spdxjson', 'https://spdx.dev/Document'],
    ['cyclonedx', 'https://cyclonedx.org/bom'],
    ['link', 'https://in-toto.io/Link/v1'],
    ['vuln', 'https://cosign.sigstore.dev/attestation/vuln/v1'],
    ['openvex', 'https://openvex.dev/ns'],
    [SLSA, SLSA],
    ['https://example.com/own/v1', 'https://example.com/own/v1'],
    ['urn:example:own', 'urn:example:own'],
  ])('%s means the predicate type %s', async (type, intoto) => {
    const policy = await compiledPolicy({ attestations: [{ name: 'a', intoto: { type } }] })
    expect(policy.attestations).toEqual([{ name: 'a', intoto }])
  })

  test('an artifact type is what it is, also one that is called like an alias', async () => {
    const attestations = ['sbom/cyclone-dx', 'vuln'].map((type) => ({
      name: type,
      referrer: { type },
    }))
    const policy = await compiledPolicy({ attestations })
    expect(policy.attestations).toEqual([
      { name: 'sbom/cyclone-dx', referrer: 'sbom/cyclone-dx' },
      { name: 'vuln', referrer: 'vuln' },
    ])
  })

  test('are part of the hash of the policy, which is the same without them as before', async () => {
    const hashOf = async (spec: object) => (await compiledPolicy(spec)).hash
    const [none, one, other] = [
      await hashOf({}),
      await hashOf({ attestations: [{ name: 'a', intoto: { type: 'vuln' } }] }),
      await hashOf({ attestations: [{ name: 'a', referrer: { type: 'vuln' } }] }),
    ]
    expect(new Set([none, one, other]).size).toBe(3)
    expect(await hashOf({ attestations: null })).toBe(none)
  })

  const at = (path: string) => `spec.attestations${path}`
  test.each<{ name: string; attestations: unknown; path: string; message: string }>([
    {
      name: 'neither kind',
      attestations: [{ name: 'a' }],
      path: at('[0]'),
      message: 'Required value: one of intoto, referrer must be set',
    },
    {
      name: 'both kinds',
      attestations: [{ name: 'a', intoto: { type: SLSA }, referrer: { type: 'x' } }],
      path: at('[0]'),
      message: 'Invalid value: only one of intoto, referrer may be set',
    },
    {
      name: 'no name',
      attestations: [{ intoto: { type: SLSA } }],
      path: at('[0].name'),
      message: 'Required value',
    },
    {
      name: 'an empty name',
      attestations: [{ name: ' ', intoto: { type: SLSA } }],
      path: at('[0].name'),
      message: 'Required value',
    },
    {
      name: 'a name twice',
      attestations: [
        { name: 'a', intoto: { type: SLSA } },
        { name: 'a', referrer: { type: 'x' } },
      ],
      path: at('[1].name'),
      message: 'Duplicate value: "a"',
    },
    {
      name: 'no type',
      attestations: [{ name: 'a', intoto: {} }],
      path: at('[0].intoto.type'),
      message: 'Required value',
    },
    {
      name: 'an empty artifact type',
      attestations: [{ name: 'a', referrer: { type: '' } }],
      path: at('[0].referrer.type'),
      message: 'Required value',
    },
    {
      name: 'a misspelt alias',
      attestations: [{ name: 'a', intoto: { type: 'slsa-provenance' } }],
      path: at('[0].intoto.type'),
      message:
        'Invalid value: "slsa-provenance": must be a URI or one of custom, slsaprovenance, slsaprovenance02, slsaprovenance1, spdx, spdxjson, cyclonedx, link, vuln, openvex',
    },
    {
      name: 'a name that every object has',
      attestations: [{ name: 'a', intoto: { type: 'constructor' } }],
      path: at('[0].intoto.type'),
      message: expect.stringContaining('must be a URI') as unknown as string,
    },
    {
      name: 'a field nobody knows',
      attestations: [{ name: 'a', intoto: { type: SLSA, attestors: [] } }],
      path: at('[0].intoto.attestors'),
      message: 'unknown field "attestors"',
    },
    {
      name: 'no list',
      attestations: { name: 'a' },
      path: at(''),
      message: 'Invalid value: "object": must be of type array',
    },
  ])('with $name is a fault', async ({ attestations, path, message }) => {
    const { policies, faults } = await load([policyDocument({ attestations })])
    expect(policies).toEqual([])
    expect(said(faults)).toEqual([{ code: 'POLICY_INVALID', path, message }])
  })
})

describe('the functions about attestations', () => {
  const spec = (expression: string) => ({
    attestations: [{ name: 'sbom', intoto: { type: 'spdx' } }],
    validations: [{ expression }],
  })
  const EXPRESSION = 'spec.validations[0].expression'

  test.each([
    'verifyAttestationSignatures("a", attestations.sbom, [attestors.release]) > 0',
    'verifyAttestationSignatures("a", "sbom", [attestors.release]) > 0',
    'extractPayload("a", attestations["sbom"]).predicate.name == "x"',
    'attestations.sbom == "sbom"',
    'images.containers.all(i, attestations.all(a, verifyAttestationSignatures(i, a, []) == 0))',
    'has(attestations.other)',
  ])('check: %s', async (expression) => {
    const { faults } = await load([policyDocument(spec(expression))])
    expect(faults).toEqual([])
  })

  test.each([
    {
      expression: 'verifyAttestationSignatures("a", [attestors.release]) > 0',
      message: /found no matching overload for 'verifyAttestationSignatures'/,
    },
    {
      expression: 'verifyAttestationSignatures("a", 1, [attestors.release]) > 0',
      message: /found no matching overload for 'verifyAttestationSignatures'/,
    },
    {
      expression: 'extractPayload("a", "sbom", 1) == null',
      message: /found no matching overload for 'extractPayload'/,
    },
    {
      expression: 'verifyAttestationSignatures("a", attestations.sbom, attestors.release)',
      message: /must evaluate to bool|got int/,
    },
  ])('do not check: $expression', async ({ expression, message }) => {
    const { faults } = await load([policyDocument(spec(expression))])
    expect(said(faults)).toEqual([
      { code: 'CEL_CHECK', path: EXPRESSION, message: expect.stringMatching(message) },
    ])
  })

  test('are not there for match conditions, where nothing can be waited for', async () => {
    const matchConditions = [
      { name: 'a', expression: 'verifyAttestationSignatures("a", "sbom", []) > 0' },
    ]
    const { faults } = await load([policyDocument({ ...spec('true'), matchConditions })])
    expect(said(faults)[0]).toMatchObject({
      code: 'CEL_CHECK',
      path: 'spec.matchConditions[0].expression',
    })
  })
})
