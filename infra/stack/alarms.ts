import { Aws, Duration } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import { Rule } from 'aws-cdk-lib/aws-events'
import { SnsTopic } from 'aws-cdk-lib/aws-events-targets'
import { Effect, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam'
import { Topic } from 'aws-cdk-lib/aws-sns'
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions'
import { Construct } from 'constructs'
import { counted, PHASES } from './metrics.ts'

export interface AlarmsProps {
  stage: string
  /** ARNs of the keys without which nobody can verify or seal, and of their aliases. */
  keys: readonly string[]
  certificateArn?: string
  alarmEmail?: string
}

/** Refused callers in five minutes: a token that was not moved along, or somebody who tries. */
const REFUSED_CALLERS = 20
/** Seals in five minutes that did not open. */
const REFUSED_SEALS = 5
/** A certificate is renewed 60 days before its end; at this many something is wrong. */
const CERTIFICATE_DAYS = 21

/** Calls that end or change what a key may do. */
const KEY_CHANGES = [
  'DisableKey',
  'ScheduleKeyDeletion',
  'PutKeyPolicy',
  'UpdateAlias',
  'DeleteAlias',
]

/**
 * The topic of all alarms, and those about more than one function. Those about a function (errors, throttles, duration, what nobody could
 * tell) come and go with it, in `serverless.yml`.
 */
export class Alarms extends Construct {
  readonly topic: Topic

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id)
    this.topic = topicOf(this, props)
    const { stage, certificateArn } = props
    for (const phase of PHASES) {
      this.#alarm(`RefusedCallers-${phase}`, {
        description: `Callers of ${phase} are not let in: a cluster with an old token or certificate, or somebody who tries. Its requests fail.`,
        metric: counted(stage, 'RefusedCallers', { phase, period: Duration.minutes(5) }),
        threshold: REFUSED_CALLERS,
      })
    }
    this.#alarm('RefusedSeals', {
      description:
        'Seals do not open: somebody writes or replays them, or the functions have different sealing keys. Nothing is admitted by one.',
      metric: counted(stage, 'SealsRefused', { phase: 'validate', period: Duration.minutes(5) }),
      threshold: REFUSED_SEALS,
    })
    if (certificateArn !== undefined) {
      this.#alarm('Certificate', {
        description:
          'The certificate of the domain ends soon. After that no API server gets an answer.',
        metric: new Metric({
          namespace: 'AWS/CertificateManager',
          metricName: 'DaysToExpiry',
          dimensionsMap: { CertificateArn: certificateArn },
          statistic: 'Minimum',
          period: Duration.days(1),
        }),
        threshold: CERTIFICATE_DAYS,
        comparison: ComparisonOperator.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
      })
    }
    this.#watchKeys(props.keys)
  }

  #alarm(
    id: string,
    {
      description,
      metric,
      threshold,
      comparison,
    }: {
      description: string
      metric: Metric
      threshold: number
      comparison?: ComparisonOperator
    },
  ): void {
    const alarm = new Alarm(this, id, {
      alarmDescription: description,
      metric,
      threshold,
      evaluationPeriods: 1,
      comparisonOperator: comparison ?? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    })
    alarm.addAlarmAction(new SnsAction(this.topic))
  }

  /** Says at once who changed a key; needs a trail of CloudTrail in the account. */
  #watchKeys(keys: readonly string[]): void {
    const rule = new Rule(this, 'KeyChanges', {
      description: 'Somebody disables, deletes or opens a key of Countersign',
      eventPattern: {
        source: ['aws.kms'],
        detailType: ['AWS API Call via CloudTrail'],
        detail: {
          eventName: KEY_CHANGES,
          resources: { ARN: [...keys] },
        },
      },
    })
    // Its permission has no condition: EventBridge shows topics none that one could be about.
    rule.addTarget(new SnsTopic(this.topic))
  }
}

/** Alarms of this account and these events write to it, and nobody else. */
function topicOf(scope: Construct, { stage, alarmEmail }: AlarmsProps): Topic {
  const topic = new Topic(scope, 'Topic', { displayName: `Countersign ${stage}`, enforceSSL: true })
  topic.addToResourcePolicy(
    new PolicyStatement({
      sid: 'Alarms',
      effect: Effect.ALLOW,
      principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
      actions: ['sns:Publish'],
      resources: [topic.topicArn],
      conditions: { StringEquals: { 'aws:SourceAccount': Aws.ACCOUNT_ID } },
    }),
  )
  if (alarmEmail !== undefined) topic.addSubscription(new EmailSubscription(alarmEmail))
  return topic
}
