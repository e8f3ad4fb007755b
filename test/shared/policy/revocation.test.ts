import { describe, expect, test } from 'vitest'
import type { LoadOptions } from '#shared/policy/load.ts'
import { NOTARY_REVOCATION } from '#shared/policy/revocation.ts'
import { mintRoot, pemOf } from '#test/fakes/pki.ts'
import { load, policyDocument, said } from './documents.ts'

const notary = { certs: { value: pemOf(mintRoot()) } }
const NOTE = 'spec.attestors[0].notary'

function document(annotation?: string) {
  const policy = policyDocument({ attestors: [{ name: 'a', notary }] })
  const annotations = annotation === undefined ? {} : { [NOTARY_REVOCATION]: annotation }
  return { ...policy, metadata: { ...policy.metadata, annotations } }
}

async function loaded(annotation?: string, notaryRevocation?: LoadOptions['notaryRevocation']) {
  const options = notaryRevocation === undefined ? {} : { notaryRevocation }
  const { policies, faults, warnings } = await load([document(annotation)], options)
  expect(faults).toEqual([])
  const [policy] = policies
  const attestor = policy?.attestors[0]
  return {
    hash: policy?.hash,
    mode: attestor?.kind === 'notary' ? (attestor.revocation ?? 'skip') : undefined,
    notes: warnings.map(({ path }) => path),
  }
}

describe('how a notary attestor looks up revocation', () => {
  test.each<{
    annotation?: string
    config?: LoadOptions['notaryRevocation']
    mode: string
    notes: string[]
  }>([
    { mode: 'skip', notes: [NOTE] },
    { config: 'softfail', mode: 'softfail', notes: [] },
    { config: 'strict', mode: 'strict', notes: [] },
    { annotation: 'softfail', mode: 'softfail', notes: [] },
    { annotation: 'strict', config: 'skip', mode: 'strict', notes: [] },
    { annotation: 'skip', config: 'strict', mode: 'skip', notes: [NOTE] },
  ])('is $mode with annotation $annotation and config $config', async (row) => {
    const { annotation, config, mode, notes } = row
    expect(await loaded(annotation, config)).toMatchObject({ mode, notes })
  })

  test('is part of the hash of the policy, so that what is sealed under one mode counts for no other', async () => {
    const modes = ['skip', 'softfail', 'strict'] as const
    const byAnnotation = await Promise.all(modes.map((mode) => loaded(mode)))
    const byConfig = await Promise.all(modes.map((mode) => loaded(undefined, mode)))
    expect(new Set(byAnnotation.map(({ hash }) => hash)).size).toBe(3)
    expect(byConfig.map(({ hash }) => hash)).toEqual(byAnnotation.map(({ hash }) => hash))
  })

  test.each(['', 'Strict', 'strict ', 'enforce'])(
    'is no other word, such as %j',
    async (annotation) => {
      const { policies, faults } = await load([document(annotation)])
      expect(policies).toEqual([])
      expect(said(faults)).toEqual([
        {
          code: 'POLICY_INVALID',
          path: expect.stringContaining(NOTARY_REVOCATION),
          message: expect.stringContaining('"skip", "softfail", "strict"'),
        },
      ])
    },
  )
})
