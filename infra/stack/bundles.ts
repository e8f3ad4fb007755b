import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import { AnyPrincipal, Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam'
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3'
import { Construct } from 'constructs'

/** Days that a replaced bundle or truststore can still be had back. */
const OLD_VERSIONS_DAYS = 90

/** The bucket of policy bundles and truststores: private, encrypted, over TLS only, with old versions, and it stays when the stack goes. */
export class Bundles extends Construct {
  readonly bucket: Bucket

  constructor(scope: Construct, id: string) {
    super(scope, id)
    this.bucket = new Bucket(this, 'Bucket', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      encryption: BucketEncryption.S3_MANAGED,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      versioned: true,
      removalPolicy: RemovalPolicy.RETAIN,
      lifecycleRules: [
        {
          noncurrentVersionExpiration: Duration.days(OLD_VERSIONS_DAYS),
          abortIncompleteMultipartUploadAfter: Duration.days(1),
        },
      ],
    })
    // Written out, because what the CDK would grant with `enforceSSL` has no lower bound of the TLS version.
    const { bucketArn } = this.bucket
    const everything = {
      principals: [new AnyPrincipal()],
      actions: ['s3:*'],
      resources: [bucketArn, `${bucketArn}/*`],
    }
    this.bucket.addToResourcePolicy(
      new PolicyStatement({
        sid: 'TlsOnly',
        effect: Effect.DENY,
        ...everything,
        conditions: { Bool: { 'aws:SecureTransport': 'false' } },
      }),
    )
    this.bucket.addToResourcePolicy(
      new PolicyStatement({
        sid: 'NoOldTls',
        effect: Effect.DENY,
        ...everything,
        conditions: { NumericLessThan: { 's3:TlsVersion': '1.2' } },
      }),
    )
  }
}
