// What is counted in the log of both functions, and what raises an alarm. Most numbers are in the lines of decisions as embedded metrics
// (functions/metrics.ts); what these have no place for is counted here. Dashboard and alarms about more than one function: infra/stack.

const NAMESPACE = `Countersign/\${sls:stage}`
const TOPIC = `\${param:alarmTopicArn}`

/** By metric: which lines count. */
const METRICS = {
  // Denied because nobody could tell: a registry, a key service or a cluster did not answer, or not in time.
  Inconclusive: '($.event = "decision") && ($.cause = "inconclusive")',
  SealsAbsent: '($.event = "decision") && ($.seal = "absent")',
  SealsRefused: '($.event = "decision") && ($.seal = "refused*")',
  RefusedCallers: '$.event = "refused"',
  // What the config names and nobody has set, and faults that no review is told of. They have no phase.
  Faults: '($.event = "start") || ($.event = "fault")',
}

function filters(name) {
  return Object.fromEntries(
    Object.entries(METRICS).map(([metric, condition]) => [
      `${name}${metric}Filter`,
      {
        Type: 'AWS::Logs::MetricFilter',
        Properties: {
          LogGroupName: { Ref: `${name}LogGroup` },
          FilterPattern: `{ ${condition} }`,
          MetricTransformations: [
            {
              MetricNamespace: NAMESPACE,
              MetricName: metric,
              MetricValue: '1',
              Unit: 'Count',
              ...(metric !== 'Faults' && { Dimensions: [{ Key: 'Phase', Value: '$.phase' }] }),
            },
          ],
        },
      },
    ]),
  )
}

function alarm(description, properties) {
  return {
    Type: 'AWS::CloudWatch::Alarm',
    Properties: {
      AlarmDescription: description,
      Period: 60,
      EvaluationPeriods: 1,
      Threshold: 1,
      ComparisonOperator: 'GreaterThanOrEqualToThreshold',
      TreatMissingData: 'notBreaching',
      AlarmActions: [TOPIC],
      ...properties,
    },
  }
}

function alarms(name) {
  const phase = name.toLowerCase()
  const ofFunction = {
    Namespace: 'AWS/Lambda',
    Dimensions: [{ Name: 'FunctionName', Value: { Ref: `${name}LambdaFunction` } }],
  }
  return {
    [`${name}ErrorsAlarm`]: alarm(
      `${phase} ended without an answer. For the API server that is a failed call, and the webhook's failurePolicy decides.`,
      { ...ofFunction, MetricName: 'Errors', Statistic: 'Sum' },
    ),
    [`${name}ThrottlesAlarm`]: alarm(
      `${phase} was called more often at once than its reserved concurrency allows.`,
      { ...ofFunction, MetricName: 'Throttles', Statistic: 'Sum' },
    ),
    [`${name}DurationAlarm`]: alarm(
      `${phase} takes so long that half of what a webhook waits is used up.`,
      {
        ...ofFunction,
        MetricName: 'Duration',
        ExtendedStatistic: 'p99',
        EvaluationPeriods: 3,
        Threshold: `\${param:${phase}P99}`,
      },
    ),
    [`${name}InconclusiveAlarm`]: alarm(
      `${phase} denied because it could not tell: a registry, a key service or a cluster does not answer.`,
      {
        Namespace: NAMESPACE,
        MetricName: 'Inconclusive',
        Dimensions: [{ Name: 'Phase', Value: phase }],
        Statistic: 'Sum',
        Period: 300,
        Threshold: 3,
      },
    ),
  }
}

const NAMES = ['Mutate', 'Validate']

module.exports = {
  Resources: {
    ...Object.assign({}, ...NAMES.map(filters)),
    ...Object.assign({}, ...NAMES.map(alarms)),
    FaultsAlarm: alarm(
      'A variable that the config names is not set, or something failed that no review tells of: look for "event":"start" and "event":"fault".',
      { Namespace: NAMESPACE, MetricName: 'Faults', Statistic: 'Sum' },
    ),
  },
}
