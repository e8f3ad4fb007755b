// What is measured of both functions, and what raises an alarm. The numbers come from the log, one line per review (functions/log.ts): nothing
// is sent anywhere by a function. Dashboard and further alarms on the same metrics: infra/stack.

const NAMESPACE = `Countersign/\${sls:stage}`
const TOPIC = `\${param:alarmTopicArn}`

/** By metric: which lines count, and as how much. Dimensions are members of the line. */
const METRICS = {
  Decisions: { of: review(), by: ['Phase', 'Cluster'] },
  Denials: { of: review('$.verdict = "deny"'), by: ['Phase', 'Cluster'] },
  // Denied because nobody could tell: a registry, a key service or a cluster did not answer, or not in time.
  Inconclusive: { of: review('$.cause = "inconclusive"') },
  Duration: { of: review('$.ms = *'), value: '$.ms', unit: 'Milliseconds' },
  SealsOpened: { of: review('$.seal = "open"') },
  SealsAbsent: { of: review('$.seal = "absent"') },
  SealsRefused: { of: review('$.seal = "refused*"') },
  RegistryCalls: { of: review('$.calls.registry = *'), value: '$.calls.registry' },
  KmsCalls: { of: review('$.calls.kms = *'), value: '$.calls.kms' },
  RefusedCallers: { of: '$.event = "refused"' },
  // What the config names and nobody has set, and faults that no review is told of.
  Faults: { of: '($.event = "start") || ($.event = "fault")', by: [] },
}

/** The pattern for reviews of which this is true as well: events, which share members with them, have lines of their own. */
function review(condition) {
  const isReview = '$.event = "decision"'
  return condition === undefined ? isReview : `(${isReview}) && (${condition})`
}

const FIELDS = { Phase: '$.phase', Cluster: '$.cluster' }

function filters(name) {
  return Object.fromEntries(
    Object.entries(METRICS).map(([metric, { of, value = '1', unit = 'Count', by = ['Phase'] }]) => [
      `${name}${metric}Filter`,
      {
        Type: 'AWS::Logs::MetricFilter',
        Properties: {
          LogGroupName: { Ref: `${name}LogGroup` },
          FilterPattern: `{ ${of} }`,
          MetricTransformations: [
            {
              MetricNamespace: NAMESPACE,
              MetricName: metric,
              MetricValue: value,
              Unit: unit,
              ...(by.length > 0 && {
                Dimensions: by.map((field) => ({ Key: field, Value: FIELDS[field] })),
              }),
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
