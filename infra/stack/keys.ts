import { Aws, RemovalPolicy } from 'aws-cdk-lib'
import {
  AccountPrincipal,
  AccountRootPrincipal,
  Effect,
  PolicyDocument,
  PolicyStatement,
} from 'aws-cdk-lib/aws-iam'
import { Alias, Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms'
import { Construct } from 'constructs'

export interface KeysProps {
  stage: string
  hasSigningKey: boolean
  hasPolicyKey?: boolean
  keyReaders?: readonly string[]
}

/** What manages a key; nothing of it uses one. */
const ADMINISTRATION = [
  'kms:CancelKeyDeletion',
  'kms:CreateAlias',
  'kms:DeleteAlias',
  'kms:DescribeKey',
  'kms:DisableKey',
  'kms:EnableKey',
  'kms:GetKeyPolicy',
  'kms:GetKeyRotationStatus',
  'kms:ListAliases',
  'kms:ListGrants',
  'kms:ListKeyPolicies',
  'kms:ListResourceTags',
  'kms:PutKeyPolicy',
  'kms:RevokeGrant',
  'kms:ScheduleKeyDeletion',
  'kms:TagResource',
  'kms:UntagResource',
  'kms:UpdateAlias',
  'kms:UpdateKeyDescription',
]

/** The sealing key, and keys that sign images and policy bundles for who has none. All of them stay when the stack goes. */
export class Keys extends Construct {
  readonly sealing: Key
  readonly sealingAlias: string
  readonly signingAlias: string
  readonly signing: Key | undefined
  readonly policyAlias: string
  readonly policies: Key | undefined
  readonly #aliases: Alias[] = []

  constructor(
    scope: Construct,
    id: string,
    { stage, hasSigningKey, hasPolicyKey, keyReaders = [] }: KeysProps,
  ) {
    super(scope, id)
    this.sealingAlias = `alias/countersign-seal-${stage}`
    this.sealing = this.#key('Sealing', {
      alias: this.sealingAlias,
      description: `Countersign ${stage}: seals what mutate hands to validate`,
      spec: KeySpec.HMAC_256,
      usage: KeyUsage.GENERATE_VERIFY_MAC,
      statements: [ofAccount(['kms:GenerateMac'], { 'kms:MacAlgorithm': 'HMAC_SHA_256' })],
    })
    this.signingAlias = `alias/countersign-release-${stage}`
    this.policyAlias = `alias/countersign-policies-${stage}`
    if (hasSigningKey) this.signing = this.#signing(stage, keyReaders)
    if (hasPolicyKey) this.policies = this.#policies(stage)
  }

  #signing(stage: string, keyReaders: readonly string[]): Key {
    return this.#key('Signing', {
      alias: this.signingAlias,
      description: `Countersign ${stage}: signs images`,
      spec: KeySpec.ECC_NIST_P256,
      usage: KeyUsage.SIGN_VERIFY,
      statements: [
        // Who of the account may sign is for the policies of its roles to say: a release job, and no function.
        ofAccount(['kms:GetPublicKey', 'kms:Verify', 'kms:Sign']),
        ...keyReaders.map(ofReader),
      ],
    })
  }

  #policies(stage: string): Key {
    return this.#key('Policies', {
      alias: this.policyAlias,
      description: `Countersign ${stage}: signs policy bundles`,
      spec: KeySpec.ECC_NIST_P256,
      usage: KeyUsage.SIGN_VERIFY,
      // Who may sign decides what is let in: a role of its own, and no function.
      statements: [ofAccount(['kms:GetPublicKey', 'kms:Verify', 'kms:Sign'])],
    })
  }

  /** ARNs of the keys and of their aliases: what moves an alias away names the alias and the key that it is moved to. */
  get arns(): readonly string[] {
    const keys = [this.sealing, this.signing, this.policies].filter((key) => key !== undefined)
    return [...keys.map(({ keyArn }) => keyArn), ...this.#aliases.map(({ aliasArn }) => aliasArn)]
  }

  #key(
    id: string,
    {
      alias,
      description,
      spec,
      usage,
      statements,
    }: {
      alias: string
      description: string
      spec: KeySpec
      usage: KeyUsage
      statements: readonly PolicyStatement[]
    },
  ): Key {
    const key = new Key(this, id, {
      description,
      keySpec: spec,
      keyUsage: usage,
      removalPolicy: RemovalPolicy.RETAIN,
      policy: new PolicyDocument({
        statements: [
          new PolicyStatement({
            sid: 'Administration',
            effect: Effect.ALLOW,
            principals: [new AccountRootPrincipal()],
            actions: ADMINISTRATION,
            resources: ['*'],
          }),
          ...statements,
        ],
      }),
    })
    this.#aliases.push(new Alias(this, `${id}Alias`, { aliasName: alias, targetKey: key }))
    return key
  }
}

/** Lets roles of this account do this where their own policies say so, too. */
function ofAccount(actions: string[], equals: Record<string, string> = {}): PolicyStatement {
  return new PolicyStatement({
    sid: 'Use',
    effect: Effect.ALLOW,
    principals: [new AccountRootPrincipal()],
    actions,
    resources: ['*'],
    conditions: {
      StringEquals: { 'kms:CallerAccount': Aws.ACCOUNT_ID, ...equals },
    },
  })
}

/** A public key is no secret, but only who is named may ask KMS for it. */
function ofReader(account: string, index: number): PolicyStatement {
  return new PolicyStatement({
    sid: `Read${index}`,
    effect: Effect.ALLOW,
    principals: [new AccountPrincipal(account)],
    actions: ['kms:GetPublicKey', 'kms:Verify'],
    resources: ['*'],
  })
}
