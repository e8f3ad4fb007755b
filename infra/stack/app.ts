import { App } from 'aws-cdk-lib'
import { CountersignStack } from './stack.ts'

/**
 * The stack of one stage. Settings are context of the CDK, from the command line or `infra/cdk.json`: `cdk deploy -c stage=prod
 * -c signingKey=true -c certificateArn=…`. What is not set is left out or has the value that CountersignStackProps names.
 */
const app = new App()

function setting(name: string): string | undefined {
  const value: unknown = app.node.tryGetContext(name)
  return value === undefined || value === '' ? undefined : String(value)
}

const stage = setting('stage') ?? 'prod'
const [account, region] = [setting('account'), setting('region')]
const [certificateArn, alarmEmail] = [setting('certificateArn'), setting('alarmEmail')]
const readers = setting('keyReaders')

new CountersignStack(app, `countersign-infra-${stage}`, {
  description: `Countersign ${stage}: what outlives deployments of the functions`,
  ...(account !== undefined && region !== undefined && { env: { account, region } }),
  stage,
  hasSigningKey: setting('signingKey') === 'true',
  hasPolicyKey: setting('policyKey') === 'true',
  ...(certificateArn !== undefined && { certificateArn }),
  ...(alarmEmail !== undefined && { alarmEmail }),
  ...(readers !== undefined && { keyReaders: readers.split(',') }),
})

app.synth()
