import { describe, expect, test } from 'vitest'
import { parseCertificate } from '#shared/signature/x509/certificate.ts'
import { areValidAt, buildChain, isSelfIssued, keyOf } from '#shared/signature/x509/chain.ts'
import {
  CODE_SIGNING,
  type Minted,
  mint,
  mintIntermediate,
  mintRoot,
  NOTARY_NAME,
  VALID,
} from '#test/fakes/pki.ts'

const root = mintRoot()
const middle = mintIntermediate(root)
const leaf = mint({ issuer: middle })
const read = ({ der }: Minted) => parseCertificate(der)

async function build(
  intermediates: readonly Minted[],
  anchors: readonly Minted[],
  of: Minted = leaf,
): Promise<number | undefined> {
  const chain = await buildChain(read(of), {
    intermediates: intermediates.map(read),
    anchors: anchors.map(read),
    purpose: CODE_SIGNING,
  })
  return chain?.length
}

describe('buildChain', () => {
  test.each<{
    name: string
    given: readonly Minted[]
    anchors: readonly Minted[]
    length?: number
  }>([
    { name: 'through an intermediate', given: [middle], anchors: [root], length: 3 },
    {
      name: 'among others in any order',
      given: [leaf, root, mintRoot({ keyName: 'x' }), middle],
      anchors: [root],
      length: 3,
    },
    { name: 'to an intermediate that is trusted itself', given: [], anchors: [middle], length: 2 },
    { name: 'to a leaf that is trusted itself', given: [], anchors: [leaf], length: 1 },
    { name: 'not without the intermediate', given: [], anchors: [root] },
    { name: 'not to nobody', given: [middle, root], anchors: [] },
    {
      name: 'not to another key of the name',
      given: [middle],
      anchors: [mintRoot({ keyName: 'x' })],
    },
    {
      name: 'not through an intermediate for other purposes',
      given: [mintIntermediate(root, { purposes: ['1.2.3'] })],
      anchors: [root],
    },
    {
      name: 'through an intermediate for all purposes',
      given: [mintIntermediate(root, { purposes: ['2.5.29.37.0'] })],
      anchors: [root],
      length: 3,
    },
    {
      name: 'not through an intermediate that is no authority',
      given: [mintIntermediate(root, { ca: null })],
      anchors: [root],
    },
    {
      name: 'not to a root whose path length it exceeds',
      given: [middle],
      anchors: [mintRoot({ ca: { pathLength: 0 } })],
    },
  ])('$name', async ({ given, anchors, length }) => {
    expect(await build(given, anchors)).toBe(length)
  })

  test('stops at ten certificates', async () => {
    const names = Array.from({ length: 9 }, (_, i) => i)
    const authorities = [root]
    for (const i of names) {
      const [tip] = authorities.slice(-1)
      authorities.push(
        mintIntermediate(tip!, { subject: NOTARY_NAME(`ca ${i}`), keyName: `ca ${i}` }),
      )
    }
    const deep = mint({ issuer: authorities[8]! })
    expect(await build(authorities.slice(1), [root], deep)).toBe(10)
    const deeper = mint({ issuer: authorities[9]! })
    expect(await build(authorities.slice(1), [root], deeper)).toBeUndefined()
  })

  test('gives up on certificates that all claim to be each other’s issuer', async () => {
    const subject = NOTARY_NAME('loop')
    const tangle = Array.from({ length: 40 }, (_, i) =>
      mint({
        ...loop,
        subject,
        keyName: `loop ${i}`,
        issuer: mintRoot({ subject, keyName: 'hub' }),
      }),
    )
    await expect(build(tangle, [root], mint({ issuer: tangle[0]! }))).rejects.toMatchObject({
      code: 'SIGNATURE_MALFORMED',
    })
  })
})

const loop = { usages: [5], purposes: null, ca: {} }

describe('areValidAt', () => {
  const chain = [leaf, root].map(read)
  const [from, to] = VALID.map((date) => date.getTime()) as [number, number]
  test.each([
    [from - 1, false],
    [from, true],
    [to, true],
    [to + 1, false],
  ])('%d: %s', (at, expected) => {
    expect(areValidAt(chain, at)).toBe(expected)
  })
})

test('a certificate is self-issued when it names itself as its issuer', () => {
  expect([root, middle, leaf].map((each) => isSelfIssued(read(each)))).toEqual([true, false, false])
})

describe('the key of a certificate', () => {
  const { spki } = read(mint({ spec: 'RSA 2048' }))

  test('is imported once for each way to sign', async () => {
    const key = await keyOf(spki)
    expect(await keyOf(spki)).toBe(key)
    expect(await keyOf(spki, 'RSASSA_PSS')).not.toBe(key)
  })

  test('is refused outside the algorithm table, every time', async () => {
    const weak = read(mint({ spec: 'RSA 1024' })).spki
    await expect(keyOf(weak)).rejects.toMatchObject({ code: 'KEY_INVALID' })
    await expect(keyOf(weak)).rejects.toMatchObject({ code: 'KEY_INVALID' })
  })
})
