import { Duration } from 'aws-cdk-lib'
import {
  Dashboard,
  GraphWidget,
  type IWidget,
  MathExpression,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch'
import type { Construct } from 'constructs'
import { type MetricName, measured, namespaceOf, PHASES } from './metrics.ts'

const PERIOD = Duration.minutes(5)
/** Columns of a dashboard are 24. */
const THIRD = 8

/** Adds the dashboard of a stage: what was decided for whom, how long it took, and what it asked of others. */
export function addDashboard(scope: Construct, stage: string): Dashboard {
  const dashboard = new Dashboard(scope, 'Dashboard', { dashboardName: `countersign-${stage}` })
  const sums = (title: string, ...names: MetricName[]) => graph(title, sumsOf(stage, names))
  dashboard.addWidgets(
    new TextWidget({
      markdown: `# Countersign ${stage}\nDenied is what a policy said; inconclusive is what nobody could tell, and it is denied, too.`,
      width: 24,
      height: 2,
    }),
  )
  dashboard.addWidgets(
    graph('Decisions by cluster', [byCluster(stage, 'Decisions')]),
    graph('Denials by cluster', [byCluster(stage, 'Denials')]),
    sums('Inconclusive', 'Inconclusive'),
  )
  dashboard.addWidgets(
    graph('Milliseconds', durationsOf(stage)),
    graph('Use of seals', sealsOf(stage)),
    sums('Callers not let in', 'RefusedCallers'),
  )
  dashboard.addWidgets(
    sums('Calls to registries', 'RegistryCalls'),
    sums('Calls to KMS', 'KmsCalls'),
  )
  return dashboard
}

type Lines = NonNullable<ConstructorParameters<typeof GraphWidget>[0]['left']>

function graph(title: string, left: Lines): IWidget {
  return new GraphWidget({ title, left, width: THIRD, leftYAxis: { min: 0 } })
}

function sumsOf(stage: string, names: readonly MetricName[]): Lines {
  return names.flatMap((name) =>
    PHASES.map((phase) => measured(stage, name, { phase, period: PERIOD, label: phase })),
  )
}

function durationsOf(stage: string): Lines {
  return PHASES.flatMap((phase) =>
    ['p50', 'p99'].map((statistic) =>
      measured(stage, 'Duration', {
        phase,
        period: PERIOD,
        statistic,
        label: `${phase} ${statistic}`,
      }),
    ),
  )
}

/** Only validate opens any. */
function sealsOf(stage: string): Lines {
  const labels = { SealsOpened: 'opened', SealsAbsent: 'absent', SealsRefused: 'refused' } as const
  return (['SealsOpened', 'SealsAbsent', 'SealsRefused'] as const).map((name) =>
    measured(stage, name, { phase: 'validate', period: PERIOD, label: labels[name] }),
  )
}

/** One line for each cluster there is. */
function byCluster(stage: string, metricName: string): MathExpression {
  const search = `{${namespaceOf(stage)},Cluster,Phase} MetricName="${metricName}"`
  return new MathExpression({
    expression: `SEARCH('${search}', 'Sum', ${PERIOD.toSeconds()})`,
    label: '',
    period: PERIOD,
    usingMetrics: {},
  })
}
