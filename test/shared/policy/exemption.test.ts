import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Host } from '#shared/cel/types.ts'
import { type PartialExemption, prepareExceptions } from '#shared/policy/exemption.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import type { CompiledException } from '#shared/policy/types.ts'
import { review } from './review.ts'

const DIGEST = `sha256:3${'a'.repeat(63)}`

function exception(changes: Partial<CompiledException> = {}): CompiledException {
  return {
    name: 'shop/let',
    source: 'e.yaml:1',
    matchConditions: [],
    reportResult: 'skip',
    ...changes,
  }
}

function about(exceptions: readonly CompiledException[], now = 0) {
  const policy = { failurePolicy: 'Fail' as const, exceptions }
  const plan = () => {
    throw new TypeError('there is no expression')
  }
  return prepareExceptions(policy, plan).about(subjectOf(review()), now)
}

/** Says that every tag means what its image is pinned to, or that none does, and what it was asked. */
function registry(answer: 'same' | 'other' | 'unknown' | 'pending') {
  const asked: unknown[] = []
  const host: Host = ({ name, args }) => {
    asked.push([name, ...args])
    if (answer === 'pending') return { kind: 'pending' }
    if (answer === 'unknown') return { kind: 'error', message: 'registry down' }
    return { kind: 'value', value: answer === 'same' }
  }
  return { host, asked }
}

function judge(images: readonly string[], globs: readonly string[], host: Host) {
  const exemption = about([exception({ images: globs })]) as PartialExemption
  return exemption.judge({ status: 'ok', map: { containers: images }, all: images }, host)
}

describe('what an image is exempt by', () => {
  test.each([
    { glob: 'r.test/tools/pause:3', image: 'r.test/tools/pause:3' },
    { glob: 'r.test/tools/pause:3', image: 'R.TEST:443/tools/pause:3' },
    { glob: 'r.test/tools/pause', image: 'r.test/tools/pause:latest' },
    { glob: 'r.test/tools/pause:latest', image: 'r.test/tools/pause' },
    { glob: 'nginx:1', image: 'docker.io/library/nginx:1' },
    { glob: 'docker.io/library/*', image: 'nginx' },
    { glob: 'r.test/tools/*', image: 'r.test/tools/a/b:1' },
    { glob: 'r.test/tools/*', image: `r.test/tools/pause@${DIGEST}` },
    { glob: 'r.test/tools/*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/pause*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: `r.test/tools/pause@${DIGEST}`, image: `r.test/tools/pause@${DIGEST}` },
    { glob: `r.test/tools/pause@${DIGEST}`, image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: `r.test/tools/pause:3@${DIGEST}`, image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/*@sha256:3*', image: `r.test/tools/pause:3@${DIGEST}` },
  ])('$glob exempts $image, and nobody is asked', ({ glob, image }) => {
    const { host, asked } = registry('other')
    expect(judge([image], [glob], host)).toMatchObject({ all: [], map: { containers: [] } })
    expect(asked).toEqual([])
  })

  test.each([
    { glob: 'r.test/tools/pause:3', image: 'r.test/tools/pause:4' },
    { glob: 'r.test/tools/pause:3', image: 'evil.test/tools/pause:3' },
    { glob: 'r.test/tools/pause', image: 'r.test/tools/pause:3' },
    { glob: 'r.test/tools/pause', image: 'r.test/tools/pause-evil' },
    { glob: 'tools/pause:3', image: 'Tools/pause:3' },
    { glob: 'nginx:1', image: 'evil.test/nginx:1' },
    { glob: 'nginx:1', image: 'evil/nginx:1' },
    { glob: 'r.test/tools/pause:4', image: `r.test/tools/pause:3@${DIGEST}` },
    {
      glob: `r.test/tools/pause@sha256:${'b'.repeat(64)}`,
      image: `r.test/tools/pause:3@${DIGEST}`,
    },
    { glob: `r.test/tools/pause@${DIGEST}`, image: 'r.test/tools/pause:3' },
    { glob: 'r.test/tools/*3', image: `r.test/tools/evil@sha256:${'a'.repeat(63)}3` },
    { glob: 'r.test/tools/*:3*', image: `r.test/tools/evil@${DIGEST}` },
    { glob: 'r.test/tools/*:3*', image: `r.test/tools/evil:4@${DIGEST}` },
    { glob: '*@sha256:3*', image: 'r.test/tools/pause@sha256:3' },
    { glob: '*', image: 'not a reference' },
    { glob: '*', image: `r.test/aa@${DIGEST}@${DIGEST}` },
  ])('$glob is not about $image', ({ glob, image }) => {
    const { host } = registry('same')
    const isAsked = image.includes('evil:4')
    expect(judge([image], [glob], host)).toMatchObject({ all: [image] })
    expect(isAsked).toBe(image.includes('evil:4'))
  })

  test.each([
    { glob: 'r.test/tools/pause:3', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/pause:3*', image: `r.test/tools/pause:3.1@${DIGEST}` },
    { glob: 'r.test/tools/*:3*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/pause:*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/pause', image: `r.test/tools/pause@${DIGEST}` },
    { glob: 'r.test/tools/pause:latest', image: `r.test/tools/pause@${DIGEST}` },
    { glob: 'nginx', image: `docker.io/nginx@${DIGEST}` },
    { glob: 'r.test/tools/pause:3@*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/pause:3@sha256:3*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: 'r.test/tools/*:3@sha256:*', image: `r.test/tools/pause:3@${DIGEST}` },
    { glob: '{r.test/aa:3*,x@y}', image: `r.test/aa:3@${DIGEST}` },
  ])('$glob exempts $image only if its tag means that digest now', ({ glob, image }) => {
    for (const [answer, exempts] of [
      ['same', true],
      ['other', false],
    ] as const) {
      const { host, asked } = registry(answer)
      expect(judge([image], [glob], host)).toMatchObject({ all: exempts ? [] : [image] })
      expect(asked).toEqual([['resolveTag', image]])
    }
    expect(judge([image], [glob], registry('pending').host)).toEqual({ status: 'pending' })
    expect(judge([image], [glob], registry('unknown').host)).toEqual({
      status: 'error',
      message: 'registry down',
    })
  })

  test('no pattern about tags exempts a digest that its tag does not mean', () => {
    const part = fc.stringMatching(/^[a-z0-9]{1,3}$/)
    const pattern = fc
      .array(
        fc.constantFrom('*', '?', 'a', '3', '.', '-', ':', '[a-f]', '[0-9]', '{a,3}', 'sha256:'),
      )
      .map((pieces) => `r.test/aa:${pieces.join('')}`)
    fc.assert(
      fc.property(pattern, part, fc.stringMatching(/^[0-9a-f]{64}$/), (glob, tag, hex) => {
        const image = `r.test/aa:${tag}@sha256:${hex}`
        expect(judge([image], [glob], registry('other').host)).toMatchObject({ all: [image] })
      }),
    )
  })

  test('each image is told by the exception it is exempt by, and the others stay', () => {
    const exemption = about([
      exception({ name: 'shop/b', images: ['r.test/bb:*'] }),
      exception({ name: 'shop/a', images: ['r.test/aa:1'] }),
    ]) as PartialExemption
    const all = ['r.test/aa:1', 'r.test/bb:1', 'r.test/cc:1']
    const map = { containers: all, initContainers: ['r.test/bb:1'] }
    expect(exemption.judge({ status: 'ok', map, all }, registry('other').host)).toEqual({
      status: 'ok',
      map: { containers: ['r.test/cc:1'], initContainers: [] },
      all: ['r.test/cc:1'],
      exempted: new Map([
        ['r.test/aa:1', 'shop/a'],
        ['r.test/bb:1', 'shop/b'],
      ]),
    })
  })
})

describe('which exceptions apply', () => {
  const total = exception({ name: 'shop/total' })
  const partial = exception({ name: 'shop/partial', images: ['r.test/aa:1'] })
  const skipped = (result: 'skip' | 'pass', ...exceptions: string[]) => ({
    status: 'skipped',
    exceptions,
    message: `rule is skipped due to policy exception: ${exceptions.join(', ')}`,
    result,
  })

  test.each([
    { name: 'none', exceptions: [], is: { status: 'none' } },
    { name: 'a total one', exceptions: [total], is: skipped('skip', 'shop/total') },
    {
      name: 'a total one behind a partial one',
      exceptions: [partial, total],
      is: skipped('skip', 'shop/total'),
    },
    {
      name: 'a total one before a partial one',
      exceptions: [total, partial],
      is: skipped('skip', 'shop/total'),
    },
    {
      name: 'several, sorted',
      exceptions: [total, exception({ name: 'apps/all', reportResult: 'pass' })],
      is: skipped('skip', 'apps/all', 'shop/total'),
    },
    {
      name: 'all of which report a pass',
      exceptions: [exception({ reportResult: 'pass' })],
      is: skipped('pass', 'shop/let'),
    },
    {
      name: 'one with images and one with values',
      exceptions: [partial, exception({ name: 'shop/values', allowedValues: ['x', 'y', 'x'] })],
      is: {
        status: 'partial',
        exceptions: ['shop/partial', 'shop/values'],
        variable: { allowedImages: ['r.test/aa:1'], allowedValues: ['x', 'y'] },
      },
    },
  ])('$name', ({ exceptions, is }) => {
    expect(about(exceptions)).toMatchObject(is)
  })

  test.each([
    { now: 999, status: 'skipped' },
    { now: 1000, status: 'skipped' },
    { now: 1001, status: 'none' },
  ])('at $now one that expires at 1000: $status', ({ now, status }) => {
    expect(about([exception({ expiresAt: 1000 })], now).status).toBe(status)
  })
})
