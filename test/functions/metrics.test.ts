import { describe, expect, test } from 'vitest'
import { embeddedMetrics, METRICS_NAMESPACE, stagedLog } from '#functions/metrics.ts'

const NOW = Date.parse('2026-11-30T12:00:00Z')

/** What a log of this stage makes of a record, and the record itself afterwards. */
function logged(record: Record<string, unknown>, stage: unknown) {
  const records: Record<string, unknown>[] = []
  stagedLog((each) => records.push(each), stage)(record)
  return records
}

const record = (): Record<string, unknown> => ({
  event: 'decision',
  cluster: 'prod',
  ...embeddedMetrics({}, NOW),
})

describe('metrics in the log of a stage', () => {
  test.each([
    { name: 'are in the namespace of the stage', stage: 'prod', namespace: 'Countersign/prod' },
    {
      name: 'are in the plain one without a stage',
      stage: undefined,
      namespace: METRICS_NAMESPACE,
    },
    { name: 'and where it is empty', stage: '', namespace: METRICS_NAMESPACE },
    { name: 'and where it is no text', stage: 7, namespace: METRICS_NAMESPACE },
  ])('$name', ({ stage, namespace }) => {
    const [{ _aws, ...rest } = { _aws: undefined }] = logged(record(), stage)
    const { _aws: own, ...others } = record()
    expect(rest).toEqual(others)
    const { CloudWatchMetrics } = own as { CloudWatchMetrics: object[] }
    expect(_aws).toEqual({
      Timestamp: NOW,
      CloudWatchMetrics: [{ ...CloudWatchMetrics[0], Namespace: namespace }],
    })
  })

  test('of one stage do not change those of another, which share their definition', () => {
    logged(record(), 'dev')
    const [line] = logged(record(), 'prod')
    expect(line).toMatchObject({ _aws: { CloudWatchMetrics: [{ Namespace: 'Countersign/prod' }] } })
    expect(record()).toMatchObject({ _aws: { CloudWatchMetrics: [{ Namespace: 'Countersign' }] } })
  })

  test('a record without any is the record', () => {
    const plain = { event: 'start' }
    expect(logged(plain, 'prod')[0]).toBe(plain)
  })
})
