import { describe, expect, test } from 'vitest'
import { moreNeverHurts } from '#shared/policy/counts.ts'
import { compiledPolicy, keyAttestor } from './documents.ts'

const V = 'verifyImageSignatures(images.containers[0], [attestors.release, attestors.audit])'
const A =
  'verifyAttestationSignatures(images.containers[0], attestations.slsa, [attestors.release, attestors.audit])'
const P = 'extractPayload(images.containers[0], attestations.slsa)'
const I = 'verifyImageSignatures(i, [attestors.release, attestors.audit])'

async function verdict(
  expressions: readonly string[],
  variables: Record<string, string> = {},
): Promise<boolean> {
  const policy = await compiledPolicy({
    attestors: [keyAttestor('release'), keyAttestor('audit')],
    attestations: [{ name: 'slsa', intoto: { type: 'slsaprovenance1' } }],
    variables: Object.entries(variables).map(([name, expression]) => ({ name, expression })),
    validations: expressions.map((expression) => ({ expression })),
  })
  return moreNeverHurts(policy)
}

describe('more signatures never turn a pass into anything else', () => {
  test.each([
    `${V} > 0`,
    `${V} >= 2`,
    `0 < ${V}`,
    `2 <= ${V}`,
    `${V} + ${V} > 1`,
    `${V} > 0 && ${V} > 1 || object.kind == "Pod"`,
    `object.kind == "Job" ? ${V} > 0 : ${V} > 1`,
    `images.containers.all(i, ${I} > 0)`,
    `images.containers.exists(i, ${I} > 0)`,
    `images.containers.all(i, i.startsWith("a") || ${I} > 0)`,
    `images.containers.map(i, ${I}).all(e, e > 0)`,
    `images.containers.map(i, i.contains("x"), ${I}).all(e, e > 0)`,
    `[${V} > 0, ${V} > 1].all(e, e)`,
    `images.containers.filter(i, i.startsWith("a")).all(i, ${I} > 0)`,
    `images.all(name, list, list.all(i, ${I} > 0))`,
    `cel.bind(n, 2, ${V} >= n)`,
    `cel.bind(n, ${V}, n > 0 && n > 1)`,
    `!object.spec.containers.exists(c, has(c.securityContext)) && ${V} > 0`,
    `object.spec.containers.size() == 1`,
    `${A} > 0`,
    `${V} > 0 && ${A} > 1`,
    `${V} + ${A} > 2`,
    // Its value has nothing to do with counts: while an attestation is not known it is an error.
    `${A} > 0 && ${P}.predicate.runs == 3`,
    `${A} > 0 && !(${P}.predicate.runs < 3)`,
    `${P}.predicate.runs == 3 ? ${A} > 0 : ${A} > 1`,
  ])('%s', async (expression) => {
    expect(await verdict([expression])).toBe(true)
  })

  test('with variables that hold counts, and others', async () => {
    const variables = {
      count: V,
      least: '2',
      counts: `images.containers.map(i, ${I})`,
      enough: 'variables.count >= variables.least',
    }
    const expressions = ['variables.enough', 'variables.counts.all(e, e > 0)']
    expect(await verdict(expressions, variables)).toBe(true)
  })
})

describe('more signatures may, or nobody knows', () => {
  test.each([
    `${V} == 0`,
    `${V} == 2`,
    `${V} != 1`,
    `${V} < 1`,
    `${V} <= 1`,
    `1 > ${V}`,
    `1 >= ${V}`,
    `!(${V} > 0)`,
    `2 - ${V} > 0`,
    `-${V} > -2`,
    `${V} * -1 > -2`,
    `${V} > ${V}`,
    `${V} in [1]`,
    `${A} == 0`,
    `!(${A} > 0)`,
    `${V} > ${A}`,
    `${A} > ${P}.predicate.runs && ${A} < 2`,
    `extractPayload(string(${A}), attestations.slsa).predicate.runs == 3`,
    `${V} > 0 ? false : true`,
    `[true, false, true][${V}]`,
    `{1: true}[${V}]`,
    `string(${V}) == "1"`,
    `[${V}].size() == 1`,
    `[${V}] == [1]`,
    `{"n": ${V}}.n > 0`,
    `!images.containers.all(i, ${I} > 0)`,
    `images.containers.exists_one(i, ${I} > 0)`,
    `images.containers.filter(i, ${I} > 0).size() == 0`,
    `images.containers.map(i, ${I} > 0, i).size() == 0`,
    `images.containers.all(i, ${I} < 1)`,
    `images.containers.map(i, ${I}).all(e, e == 1)`,
    `cel.bind(n, ${V}, n < 1)`,
    `cel.bind(n, ${V}, 1 >= n)`,
    `${V} > 0 && ${V} < 2`,
    `optional.of(${V}).value() > 0`,
    `verifyImageSignatures(string(${V}), [attestors.release]) > 0`,
  ])('%s', async (expression) => {
    expect(await verdict([expression])).toBe(false)
  })

  test.each([
    { name: 'a variable compared the wrong way', expression: 'variables.count == 1' },
    { name: 'a variable of a variable', expression: '!variables.enough' },
    { name: 'a variable asked for', expression: 'has(variables.count)' },
  ])('$name', async ({ expression }) => {
    expect(await verdict([expression], { count: V, enough: 'variables.count > 0' })).toBe(false)
  })

  test('one validation of many is enough', async () => {
    expect(await verdict([`${V} > 0`, `${V} < 2`])).toBe(false)
  })
})
