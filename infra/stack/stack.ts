import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib'
import { StringParameter } from 'aws-cdk-lib/aws-ssm'
import type { Construct } from 'constructs'
import { Alarms } from './alarms.ts'
import { Bundles } from './bundles.ts'
import { addDashboard } from './dashboard.ts'
import { Keys } from './keys.ts'

/** What a stage can have of its own. */
export interface CountersignStackProps extends StackProps {
  /** As in `osls deploy --stage`: names the parameters that `serverless.yml` reads. */
  stage: string
  /** Makes a key that signs images, for who has none. */
  hasSigningKey: boolean
  /** Makes a key that signs policy bundles. */
  hasPolicyKey?: boolean
  /** ACM certificate of the API's domains; its expiry is watched. */
  certificateArn?: string
  /** Who is mailed about alarms, after confirming it. */
  alarmEmail?: string
  /** Accounts whose functions, such as those of another region or stage, may read the signing key too. */
  keyReaders?: readonly string[]
}

/**
 * What outlives deployments of the functions: keys, the bucket of policy bundles and truststores, alarms, dashboard. `serverless.yml` finds
 * them by the parameters under `/countersign/<stage>/`, which hold names and never secrets.
 */
export class CountersignStack extends Stack {
  constructor(scope: Construct, id: string, props: CountersignStackProps) {
    super(scope, id, { terminationProtection: true, ...props })
    const { stage, certificateArn } = props
    const keys = new Keys(this, 'Keys', props)
    const { bucket } = new Bundles(this, 'Bundles')
    const { topic } = new Alarms(this, 'Alarms', { ...props, keys: keys.arns })
    addDashboard(this, stage)

    const parameters = {
      'sealing-key-arn': keys.sealing.keyArn,
      'signing-key-arn': keys.signing?.keyArn,
      'bundle-bucket': bucket.bucketName,
      'policy-bundles-arn': bucket.arnForObjects('bundles/*'),
      'policy-key-arn': keys.policies?.keyArn,
      'truststore-uri': `s3://${bucket.bucketName}/truststore/clients.pem`,
      'certificate-arn': certificateArn,
      'alarm-topic-arn': topic.topicArn,
    }
    for (const [name, stringValue] of Object.entries(parameters)) {
      if (stringValue === undefined) continue
      const parameterName = `/countersign/${stage}/${name}`
      new StringParameter(this, `Parameter-${name}`, { parameterName, stringValue })
    }
    new CfnOutput(this, 'SealingKey', {
      description: 'outcomes.key.kms of the config',
      value: `awskms:///${keys.sealingAlias}`,
    })
    if (keys.signing !== undefined) {
      new CfnOutput(this, 'SigningKey', {
        description: 'cosign.key.kms of policies',
        value: `awskms:///${keys.signingAlias}`,
      })
    }
    if (keys.policies !== undefined) {
      new CfnOutput(this, 'PolicyKey', {
        description: 'policyBundle.key.kms of the config',
        value: `awskms:///${keys.policyAlias}`,
      })
    }
    new CfnOutput(this, 'BundleBucket', {
      description:
        'Policy bundles go under bundles/, authorities of client certificates to truststore/clients.pem',
      value: bucket.bucketName,
    })
  }
}
