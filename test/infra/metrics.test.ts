import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compose } from '#functions/compose.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { jsonLog } from '#functions/log.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { ENV, TOKEN } from '../contract/deploy.ts'
import { hashOf, pod, review } from '../contract/review.ts'
import { createWorld, type World } from '../contract/world.ts'
import type { Json, Template } from './template.ts'

const { Resources }: Template = createRequire(import.meta.url)(
  '../../infra/serverless/alarms.cjs',
).phases

/** The names of the metrics that a line of validate's log counts in. */
function countedIn(line: Json): string[] {
  return Object.values(Resources)
    .filter(({ Properties }) => Properties.LogGroupName?.Ref === 'ValidateLogGroup')
    .filter(({ Properties }) => matches(Properties.FilterPattern, line))
    .flatMap(({ Properties: { MetricTransformations } }) =>
      MetricTransformations.filter(({ Dimensions = [] }: Json) =>
        Dimensions.every(({ Value }: Json) => at(line, Value) !== undefined),
      ).map(({ MetricName }: Json) => MetricName),
    )
    .sort()
}

/** As CloudWatch reads these patterns, as far as they go: comparisons in parentheses, all of them or any. */
function matches(pattern: string, line: Json): boolean {
  const inner = pattern.slice(1, -1).trim()
  const parts = inner
    .split(/ (?:&&|\|\|) /)
    .map((part) => isMet(part.replace(/^\(|\)$/g, ''), line))
  return inner.includes('||') ? parts.some(Boolean) : parts.every(Boolean)
}

function isMet(comparison: string, line: Json): boolean {
  const [, field = '', wanted = ''] = /^(\$\.[\w.]+) = "([^"]*)"$/.exec(comparison) ?? []
  const value = at(line, field)
  if (typeof value !== 'string') return false
  return wanted.endsWith('*') ? value.startsWith(wanted.slice(0, -1)) : value === wanted
}

function at(line: Json, selector: string): unknown {
  return selector
    .split('.')
    .slice(1)
    .reduce((value, name) => value?.[name], line)
}

describe('what is counted in the log', () => {
  let world: World
  beforeAll(async () => {
    world = await createWorld()
  }, 120_000)
  afterAll(() => world?.close())

  const lineOf = async (
    image: string,
    { token = TOKEN, seal = '', env = ENV, timeout = '10s' } = {},
  ) => {
    const lines: string[] = []
    const log = jsonLog((line) => lines.push(line))
    const platform = { env, log, hash: nodeHash, maxBodyBytes: MAX_BODY_BYTES, metrics: true }
    const app = compose(world.deployment, platform, ALL_FLOWS)
    const object: Json = pod(image)
    if (seal !== '') object.metadata.annotations = { 'countersign.dev/seal': seal }
    await app.request(`/v1/prod/${token}/ivpol/validate?timeout=${timeout}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(review({ object })),
    })
    return lines.map((line) => JSON.parse(line)).filter(({ event }) => event !== 'policy')
  }
  const counted = async (...args: Parameters<typeof lineOf>) =>
    (await lineOf(...args)).map(countedIn)

  test('what was verified live has no seal', async () => {
    expect(await counted(world.images.signed)).toEqual([['SealsAbsent']])
  })

  test('a policy that says no is no alarm', async () => {
    expect(await counted(world.images.unsigned)).toEqual([['SealsAbsent']])
  })

  test('a registry that does not answer is one', async () => {
    expect(await counted(world.images.stalled, { timeout: '2s' })).toEqual([
      expect.arrayContaining(['Inconclusive']),
    ])
  })

  test('a seal that nobody of us made', async () => {
    const seal = 'v1.x.e30.AAAA'
    expect(await counted(world.images.signed, { seal })).toEqual([['SealsRefused']])
  })

  test('a caller that is not let in', async () => {
    expect(await counted(world.images.signed, { token: hashOf('another') })).toEqual([
      ['RefusedCallers'],
    ])
  })

  test('a variable that nobody has set', async () => {
    const lines = await counted(world.images.signed, { env: {} as typeof ENV })
    expect(lines[0]).toEqual(['Faults'])
  })

  test('the rest is in the line itself', async () => {
    const [{ _aws, ...line }] = await lineOf(world.images.signed)
    const [{ Metrics, Dimensions, Namespace }] = _aws.CloudWatchMetrics
    expect(Namespace).toBe('Countersign')
    expect(Dimensions).toEqual([['cluster', 'phase', 'verdict']])
    expect(Metrics.map(({ Name }: Json) => Name)).toEqual([
      'reviews',
      'ms',
      'registryCalls',
      'kmsCalls',
      'sealUsed',
      'faults',
    ])
    expect(line).toMatchObject({ reviews: 1, verdict: 'allow', phase: 'validate' })
  })
})
