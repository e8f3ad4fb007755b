import { Duration } from 'aws-cdk-lib'
import { Dashboard, GraphWidget, type IWidget, TextWidget } from 'aws-cdk-lib/aws-cloudwatch'
import type { Construct } from 'constructs'
import { type Counted, counted, type Embedded, embedded, ofBundles, PHASES } from './metrics.ts'

const period = Duration.minutes(5)
/** Columns; a dashboard has 24. */
const THIRD = 8

/** Adds the dashboard of a stage: what was decided for whom, how long it took, and what it asked of others. */
export function addDashboard(scope: Construct, stage: string): Dashboard {
  const dashboard = new Dashboard(scope, 'Dashboard', { dashboardName: `countersign-${stage}` })
  const heading = [
    `# Countersign ${stage}`,
    'Denied is what a policy said. Inconclusive is what nobody could tell, and that is denied, too.',
  ]
  dashboard.addWidgets(new TextWidget({ markdown: heading.join('\n'), width: 24, height: 2 }))
  dashboard.addWidgets(
    graph('Reviews', [embedded(stage, 'reviews', { period })]),
    graph('Denials', [embedded(stage, 'reviews', { period, of: { verdict: 'deny' } })]),
    graph('Inconclusive', byPhase(stage, 'Inconclusive')),
  )
  dashboard.addWidgets(
    ...PHASES.map((phase) => graph(`Milliseconds of ${phase}`, durations(stage, phase))),
  )
  dashboard.addWidgets(
    graph('Seals that opened', [
      embedded(stage, 'sealUsed', { period, of: { phase: 'validate' } }),
    ]),
    graph('Seals that did not', unopened(stage)),
    graph('Callers not let in', byPhase(stage, 'RefusedCallers')),
  )
  const calls: [string, Embedded][] = [
    ['Calls to registries', 'registryCalls'],
    ['Calls to KMS', 'kmsCalls'],
  ]
  dashboard.addWidgets(
    ...calls.map(([title, name]) => graph(title, [embedded(stage, name, { period })])),
    graph('Faults', [embedded(stage, 'faults', { period })]),
  )
  // Empty where the config has no policyBundle.
  dashboard.addWidgets(
    graph('Seconds since policies were confirmed', bundles(stage, 'policyBundleAge', 'Maximum')),
    graph('Policy bundles that do not count', bundles(stage, 'policyBundleFaults', 'Sum')),
  )
  return dashboard
}

type Lines = NonNullable<ConstructorParameters<typeof GraphWidget>[0]['left']>

function graph(title: string, left: Lines): IWidget {
  return new GraphWidget({ title, left, width: THIRD, leftYAxis: { min: 0 } })
}

function byPhase(stage: string, name: Counted): Lines {
  return PHASES.map((phase) => counted(stage, name, { phase, period, label: phase }))
}

function bundles(stage: string, name: Parameters<typeof ofBundles>[1], statistic: string): Lines {
  return PHASES.map((phase) => ofBundles(stage, name, { phase, period, statistic }))
}

function durations(stage: string, phase: (typeof PHASES)[number]): Lines {
  return ['p50', 'p99'].map((statistic) =>
    embedded(stage, 'ms', { period, statistic, of: { phase } }),
  )
}

/** Only validate opens any. */
function unopened(stage: string): Lines {
  return [
    counted(stage, 'SealsAbsent', { phase: 'validate', period, label: 'absent' }),
    counted(stage, 'SealsRefused', { phase: 'validate', period, label: 'refused' }),
  ]
}
