import type { LogPort } from '#shared/ports.ts'
import type { ReviewAnswer } from './review.ts'

/** CloudWatch's namespace of the metrics, unless they are of a stage. */
export const METRICS_NAMESPACE = 'Countersign'

/** Names the stage of a deployment, in the environment of its functions. */
export const STAGE_VARIABLE = 'COUNTERSIGN_STAGE'

/** Members of a decision's log record that tell what its metrics count; only `calls` and `seal` are read. */
type Measured = Pick<ReviewAnswer, 'decision' | 'error'>

/** The same for every record but for its time: names of members of the record, which have to stand at its top. */
const DEFINITION = [
  {
    Namespace: METRICS_NAMESPACE,
    Dimensions: [['cluster', 'phase', 'verdict']],
    Metrics: [
      { Name: 'reviews', Unit: 'Count' },
      { Name: 'ms', Unit: 'Milliseconds' },
      { Name: 'registryCalls', Unit: 'Count' },
      { Name: 'kmsCalls', Unit: 'Count' },
      { Name: 'sealUsed', Unit: 'Count' },
      { Name: 'faults', Unit: 'Count' },
    ],
  },
]

/**
 * What makes the log record of a decision carry metrics in CloudWatch's embedded metric format, by cluster, phase and verdict. It is part of
 * that line: a line of its own would be written, billed and kept a second time, and would repeat all dimensions.
 *
 * @param time epoch milliseconds
 */
export function embeddedMetrics(
  { decision, error }: Measured,
  time: number,
): Record<string, unknown> {
  const { calls, seal } = decision?.record ?? {}
  // The engine writes numbers; a decision that it did not make has no calls.
  const { registry = 0, kms = 0 } = (calls ?? {}) as { registry?: number; kms?: number }
  return {
    reviews: 1,
    registryCalls: registry,
    kmsCalls: kms,
    sealUsed: seal === 'open' ? 1 : 0,
    faults: error === undefined ? 0 : 1,
    _aws: { Timestamp: time, CloudWatchMetrics: DEFINITION },
  }
}

/**
 * The log with the metrics of its records in a namespace of the stage: those of two stages in one account are not to be counted together,
 * nor to raise each other's alarms. The same log when there is no stage.
 */
export function stagedLog(log: LogPort, stage: unknown): LogPort {
  if (typeof stage !== 'string' || stage === '') return log
  const Namespace = `${METRICS_NAMESPACE}/${stage}`
  return (record) => {
    // Records have it from definitions such as the one above, or not at all.
    const embedded = record._aws as { CloudWatchMetrics: readonly object[] } | undefined
    if (embedded === undefined) return log(record)
    const CloudWatchMetrics = embedded.CloudWatchMetrics.map((each) => ({ ...each, Namespace }))
    log({ ...record, _aws: { ...embedded, CloudWatchMetrics } })
  }
}
