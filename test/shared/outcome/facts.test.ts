import { describe, expect, test } from 'vitest'
import { FactSet } from '#shared/outcome/facts.ts'
import type { Fact } from '#shared/outcome/types.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const IMAGE = `web:1@${DIGEST}`
const FACT: Fact = {
  policy: 'release',
  policyHash: 'hash',
  function: 'verifyImageSignatures',
  image: IMAGE,
  digest: DIGEST,
  attestor: 'key',
}

describe('FactSet', () => {
  const set = FactSet.of({ policies: [{ policy: 'release', policyHash: 'hash' }], facts: [FACT] })

  test.each([
    { name: 'the fact itself', key: ['hash', 'verifyImageSignatures', IMAGE, 'key'], known: true },
    {
      name: 'another policy hash: the policy, its keys or its trust changed',
      key: ['hash2', 'verifyImageSignatures', IMAGE, 'key'],
      known: false,
    },
    {
      name: 'another function',
      key: ['hash', 'verifyAttestationSignatures', IMAGE, 'key'],
      known: false,
    },
    {
      name: 'another attestor',
      key: ['hash', 'verifyImageSignatures', IMAGE, 'key2'],
      known: false,
    },
    {
      name: 'the image without its digest',
      key: ['hash', 'verifyImageSignatures', 'web:1', 'key'],
      known: false,
    },
    {
      name: 'the image with another tag',
      key: ['hash', 'verifyImageSignatures', `web:2@${DIGEST}`, 'key'],
      known: false,
    },
    {
      name: 'the image with another digest',
      key: ['hash', 'verifyImageSignatures', `web:1@sha256:${'b'.repeat(64)}`, 'key'],
      known: false,
    },
    {
      name: 'text moved from one part to the next',
      key: ['has', 'hverifyImageSignatures', IMAGE, 'key'],
      known: false,
    },
  ])('knows $name: $known', ({ key, known }) => {
    const [policyHash = '', name = '', image = '', attestor = ''] = key
    const found = set.find({ policyHash, function: name, image, attestor })
    expect(found).toEqual(known ? FACT : undefined)
  })

  test.each([
    { name: 'its texts', material: 'hash of the texts', known: true },
    { name: 'other texts', material: 'hash of others', known: false },
    { name: 'none', material: undefined, known: false },
  ])('knows a fact about an attestor with texts by $name: $known', ({ material, known }) => {
    const fact: Fact = { ...FACT, material: 'hash of the texts' }
    const facts = FactSet.of({ policies: [], facts: [fact] })
    const found = facts.find({ ...FACT, material })
    expect(found).toEqual(known ? fact : undefined)
    const plain = FactSet.of({ policies: [], facts: [FACT] })
    expect(plain.find({ ...FACT, material })).toEqual(material === undefined ? FACT : undefined)
  })

  test.each([
    { name: 'the attestation', attestation: 'slsa', known: true },
    { name: 'another attestation', attestation: 'sbom', known: false },
    { name: 'no attestation', attestation: undefined, known: false },
  ])('knows a fact about an attestation by $name: $known', ({ attestation, known }) => {
    const fact: Fact = {
      ...FACT,
      function: 'verifyAttestationSignatures',
      attestation: 'slsa',
      payload: { digest: DIGEST, size: 1 },
    }
    const facts = FactSet.of({ policies: [], facts: [FACT, fact] })
    const found = facts.find({ ...fact, attestation })
    expect(found).toEqual(known ? fact : undefined)
    expect(facts.find({ ...FACT, attestation })).toEqual(
      attestation === undefined ? FACT : undefined,
    )
  })

  test.each([
    { policy: 'release', hash: 'hash', covered: true },
    { policy: 'release', hash: 'hash2', covered: false },
    { policy: 'other', hash: 'hash', covered: false },
  ])('covers $policy with $hash: $covered', ({ policy, hash, covered }) => {
    expect(set.covers(policy, hash)).toBe(covered)
  })

  test('a fact alone does not say that its policy was evaluated', () => {
    expect(FactSet.of({ policies: [], facts: [FACT] }).covers('release', 'hash')).toBe(false)
  })

  test.each([
    { name: 'a tag', image: 'web:1' },
    { name: 'another digest', image: `web@sha256:${'b'.repeat(64)}` },
  ])('opened facts about $name prove nothing', ({ image }) => {
    const opened = FactSet.of({ policies: [], facts: [{ ...FACT, image }] })
    expect(opened.size).toBe(0)
  })

  test('gives its outcomes, each fact and policy once', () => {
    const grown = new FactSet()
    for (let i = 0; i < 2; i++) {
      grown.add(FACT)
      grown.addPolicy('release', 'hash')
    }
    expect(grown.outcomes()).toEqual({
      policies: [{ policy: 'release', policyHash: 'hash' }],
      facts: [FACT],
    })
  })

  test('does not see later changes of a fact', () => {
    const fact = { ...FACT }
    const grown = new FactSet()
    grown.add(fact)
    fact.digest = 'x'
    expect(grown.outcomes().facts).toEqual([FACT])
  })
})
