import type { Duration } from 'aws-cdk-lib'
import { MathExpression, Metric } from 'aws-cdk-lib/aws-cloudwatch'

export const PHASES = ['mutate', 'validate', 'image-review'] as const
export type Phase = (typeof PHASES)[number]

/** What `infra/serverless/alarms.cjs` counts in the log of the functions, by stage and phase. */
export type Counted = 'Inconclusive' | 'SealsAbsent' | 'SealsRefused' | 'RefusedCallers'

/** What every decision's line carries (`functions/metrics.ts`), by stage, cluster, phase and verdict. */
export type Embedded = 'reviews' | 'ms' | 'registryCalls' | 'kmsCalls' | 'sealUsed' | 'faults'

/** The sum of what is counted. */
export function counted(
  stage: string,
  metricName: Counted,
  { phase, period, label }: { phase: Phase; period: Duration; label?: string },
): Metric {
  return new Metric({
    namespace: `Countersign/${stage}`,
    metricName,
    dimensionsMap: { Phase: phase },
    period,
    statistic: 'Sum',
    ...(label !== undefined && { label }),
  })
}

/** What the line of each look for a policy bundle carries (`functions/policy-bundle/report.ts`), by stage and phase. */
export function ofBundles(
  stage: string,
  metricName: 'policyBundleAge' | 'policyBundleFaults',
  { phase, period, statistic }: { phase: Phase; period: Duration; statistic: string },
): Metric {
  return new Metric({
    namespace: `Countersign/${stage}`,
    metricName,
    dimensionsMap: { phase },
    period,
    statistic,
    label: phase,
  })
}

/** One line for every combination of cluster, phase and verdict there is, or of those with these dimensions. */
export function embedded(
  stage: string,
  metricName: Embedded,
  { period, statistic = 'Sum', of = {} }: EmbeddedOptions,
): MathExpression {
  const conditions = Object.entries({ MetricName: metricName, ...of })
  const terms = conditions.map(([name, value]) => `${name}="${value}"`)
  const search = `{"Countersign/${stage}",cluster,phase,verdict} ${terms.join(' ')}`
  return new MathExpression({
    expression: `SEARCH('${search}', '${statistic}', ${period.toSeconds()})`,
    label: '',
    period,
    usingMetrics: {},
  })
}

interface EmbeddedOptions {
  period: Duration
  statistic?: string
  of?: { phase?: Phase; verdict?: 'allow' | 'deny' }
}
