import type { Duration } from 'aws-cdk-lib'
import { Metric } from 'aws-cdk-lib/aws-cloudwatch'

export const PHASES = ['mutate', 'validate'] as const
export type Phase = (typeof PHASES)[number]

/** What `infra/serverless/alarms.cjs` counts in the log of the functions, by phase. */
export type MetricName =
  | 'Inconclusive'
  | 'Duration'
  | 'SealsOpened'
  | 'SealsAbsent'
  | 'SealsRefused'
  | 'RegistryCalls'
  | 'KmsCalls'
  | 'RefusedCallers'

/** One of these metrics; the sum of it unless another statistic is wanted. */
export function measured(
  stage: string,
  metricName: MetricName,
  options: { phase: Phase; period: Duration; statistic?: string; label?: string },
): Metric {
  const { phase, period, statistic = 'Sum', label } = options
  return new Metric({
    namespace: namespaceOf(stage),
    metricName,
    dimensionsMap: { Phase: phase },
    period,
    statistic,
    ...(label !== undefined && { label }),
  })
}

/** The namespace of a stage's metrics. */
export function namespaceOf(stage: string): string {
  return `Countersign/${stage}`
}
