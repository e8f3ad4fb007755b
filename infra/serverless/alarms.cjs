// What is counted in the log of each function, and what raises an alarm. Most numbers are in the lines of decisions as embedded metrics
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
  const metrics = Object.entries(METRICS).filter(([metric]) => hasSeals(name) || !isOfSeals(metric))
  return Object.fromEntries(
    metrics.map(([metric, condition]) => [
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

/** A review of images carries none. */
function hasSeals(name) {
  return name !== 'ImageReview'
}

function isOfSeals(metric) {
  return metric.startsWith('Seals')
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
  const phase = name.replace(/[a-z](?=[A-Z])/g, '$&-').toLowerCase()
  const parameter = name[0].toLowerCase() + name.slice(1)
  const ofFunction = {
    Namespace: 'AWS/Lambda',
    Dimensions: [{ Name: 'FunctionName', Value: { Ref: `${name}LambdaFunction` } }],
  }
  return {
    [`${name}ErrorsAlarm`]: alarm(
      `${phase} ended without an answer. For the API server that is a failed call, and ${DECIDES[name]} decides.`,
      { ...ofFunction, MetricName: 'Errors', Statistic: 'Sum' },
    ),
    [`${name}ThrottlesAlarm`]: alarm(
      `${phase} was called more often at once than its reserved concurrency allows.`,
      { ...ofFunction, MetricName: 'Throttles', Statistic: 'Sum' },
    ),
    [`${name}DurationAlarm`]: alarm(
      `${phase} takes so long that half of what ${name === 'ImageReview' ? 'its callers wait' : 'a webhook waits'} is used up.`,
      {
        ...ofFunction,
        MetricName: 'Duration',
        ExtendedStatistic: 'p99',
        EvaluationPeriods: 3,
        Threshold: `\${param:${parameter}P99}`,
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
    ...bundleAlarms(name, phase),
  }
}

/** Both are in the line of each look for a bundle as embedded metrics (functions/policy-bundle/report.ts). */
function bundleAlarms(name, phase) {
  const ofBundles = { Namespace: NAMESPACE, Dimensions: [{ Name: 'phase', Value: phase }] }
  const alarms = {
    Age: alarm(
      `${phase} goes by policies that nobody has confirmed for longer than policyBundle.maxAgeSeconds: look for "event":"policy-bundle".`,
      {
        ...ofBundles,
        MetricName: 'policyBundleAge',
        Statistic: 'Maximum',
        Period: 300,
        Threshold: `\${self:custom.checked.policyMaxAge}`,
      },
    ),
    Faults: alarm(
      `${phase} finds no policy bundle, or one that does not count. It goes by what it has: look for "event":"policy-bundle".`,
      {
        ...ofBundles,
        MetricName: 'policyBundleFaults',
        Statistic: 'Sum',
        Period: 900,
        Threshold: 3,
      },
    ),
  }
  return Object.fromEntries(
    Object.entries(alarms).map(([kind, each]) => [
      `${name}PolicyBundle${kind}Alarm`,
      { ...each, Condition: 'HasBundle' },
    ]),
  )
}

const NAMES = ['Mutate', 'Validate']
/** By function: what the API server goes by where nobody answers. */
const DECIDES = {
  Mutate: "the webhook's failurePolicy",
  Validate: "the webhook's failurePolicy",
  ImageReview: 'defaultAllow of ImagePolicyWebhook',
}

module.exports.phases = {
  Resources: {
    ...Object.assign({}, ...NAMES.map(filters)),
    ...Object.assign({}, ...NAMES.map(alarms)),
    FaultsAlarm: alarm(
      'A variable that the config names is not set, or something failed that no review tells of: look for "event":"start" and "event":"fault".',
      { Namespace: NAMESPACE, MetricName: 'Faults', Statistic: 'Sum' },
    ),
  },
}

module.exports.imageReview = {
  Resources: { ...filters('ImageReview'), ...alarms('ImageReview') },
}
