/** What a new project is made of. */
export interface Project {
  cluster: string
  /** SHA-256 of the first token, hex. */
  tokenHash: string
  endpoint: string
  region: string
  /** PEM public key of a local pair; a key of KMS signs without. */
  publicKey?: string
}

/** Names of what `init` writes, relative to the project. */
export const CONFIG_FILE = 'countersign.yaml'
export const POLICY_FILE = 'policies/signed-images.yaml'
export const GUIDE_FILE = 'README.md'
export const IGNORE_FILE = '.gitignore'
export const PRIVATE_KEY_FILE = 'image-signing.key'
export const PUBLIC_KEY_FILE = 'image-signing.pub'

const SIGNING_KEY = 'awskms:///alias/image-signing'

/** The config: one cluster with one token, and a sealing key from a variable or from KMS. */
export function configText({ cluster, tokenHash, endpoint, region, publicKey }: Project): string {
  const key =
    publicKey === undefined
      ? `  key:
    kms: awskms:///alias/countersign-seal
kms:
  region: ${region}`
      : `  key:
    secrets:
      # 32 random bytes in base64, as \`openssl rand -base64 32\` prints them; never in this file.
      - id: '1'
        env: COUNTERSIGN_SEAL`
  return `# Countersign's configuration: no secret stands in it. \`countersign lint\` says what is wrong with it.
policies: policies
# Where the clusters reach the functions: set it once they are deployed.
endpoint: ${endpoint}
outcomes:
  # What mutate proved travels to validate under a seal; this is where its key comes from.
${key}
clusters:
  - name: ${JSON.stringify(cluster)}
    # The SHA-256 of its token, which \`countersign init\` printed once. \`countersign tokens rotate\` makes the next one.
    tokens:
      - "${tokenHash}"
    timeouts:
      mutateSeconds: 10
      validateSeconds: 5
`
}

/** The first policy: it tells of images without a signature, and lets them in until its action is Deny. */
export function policyText({ publicKey }: Pick<Project, 'publicKey'>): string {
  const key =
    publicKey === undefined
      ? `          kms: ${SIGNING_KEY}`
      : `          data: |\n${publicKey
          .trimEnd()
          .split('\n')
          .map((line) => `            ${line}`)
          .join('\n')}`
  return `# Every image of a Pod carries a signature by this project's key. To begin with that is only found out: results are in audit
# annotations, the log and \`countersign report\`. With [Deny] in place of [Audit], whatever is not signed stays out.
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: signed-images
spec:
  validationActions: [Audit]
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        # Ephemeral containers are added through a subresource of their own.
        resources: [pods, pods/ephemeralcontainers]
  matchConditions:
    # Updates that leave the spec alone run nothing new.
    - name: something-new-runs
      expression: oldObject == null || object.spec != oldObject.spec
  # Narrow this to your own registry: ghcr.io/your-org/*
  matchImageReferences:
    - glob: "*"
  attestors:
    - name: project
      cosign:
        key:
${key}
        ctlog:
          # Signatures are checked against the key alone; nothing is looked up in a transparency log.
          insecureIgnoreTlog: true
  variables:
    - name: unsigned
      expression: >-
        (images.containers + images.initContainers + images.ephemeralContainers)
          .filter(image, verifyImageSignatures(image, [attestors.project]) == 0)
  validations:
    - expression: variables.unsigned.size() == 0
      message: an image is not signed by the key of this project
      messageExpression: '"not signed by the key of this project: " + variables.unsigned.join(", ")'
`
}

/** What must never be committed. */
export const IGNORE_TEXT = `# Certificate and token of \`countersign dev\`, bundles, private keys and tokens.
.countersign/
dist/
*.key
*.token
`

/** The next steps, for whoever opens the folder. */
export function guideText(project: Project): string {
  return `# Image verification

\`countersign.yaml\` says which clusters may call and where keys are, \`policies/\` what they are told.

1. Look at what is here: \`countersign lint --config countersign.yaml\`
2. Try it on this machine: \`countersign dev --config countersign.yaml\`
3. ${project.publicKey === undefined ? kmsSteps(project) : localSteps()}
4. Build the functions: \`countersign build --config countersign.yaml --out dist\`. Deploy them, and set \`endpoint\` to where they are.
5. Put the token of the cluster, which was printed once, into \`${project.cluster}.token\`, which git ignores, or give \`--token-file -\` and type it. See what
   a cluster will meet: \`countersign doctor --config countersign.yaml --cluster ${project.cluster} --token-file ${project.cluster}.token\`
6. Register the webhooks: \`countersign webhooks --config countersign.yaml --cluster ${project.cluster} --token-file ${project.cluster}.token | kubectl apply -f -\`
7. When \`countersign report\` shows nothing that should be let in, set \`validationActions: [Deny]\` in \`${POLICY_FILE}\`, build and deploy.

The token of a cluster is in its webhook URLs: keep it in a secret store. Was it lost? \`countersign tokens rotate --config countersign.yaml --cluster ${project.cluster}\`
makes another one.
`
}

function localSteps(): string {
  return `Sign an image with the local key, which is for trying things out: \`cosign import-key-pair --key ${PRIVATE_KEY_FILE}\`, then
   \`cosign sign --tlog-upload=false --key import-cosign.key IMAGE@DIGEST\`. See that it counts: \`countersign verify --key ${PUBLIC_KEY_FILE} IMAGE\`.
   The functions need \`COUNTERSIGN_SEAL\`, 32 random bytes in base64: \`openssl rand -base64 32\`. For production, move the key to KMS.`
}

function kmsSteps({ region }: Project): string {
  return `Make the keys in AWS KMS: one that signs images and one that seals what the mutate phase proved.

   \`\`\`sh
   aws kms create-key --region ${region} --key-spec ECC_NIST_P256 --key-usage SIGN_VERIFY --query KeyMetadata.KeyId --output text
   aws kms create-alias --region ${region} --alias-name alias/image-signing --target-key-id KEY_ID
   aws kms create-key --region ${region} --key-spec HMAC_256 --key-usage GENERATE_VERIFY_MAC --query KeyMetadata.KeyId --output text
   aws kms create-alias --region ${region} --alias-name alias/countersign-seal --target-key-id KEY_ID
   \`\`\`

   The functions need \`kms:GetPublicKey\` of the first and \`kms:GenerateMac\` of the second. Sign with \`cosign sign --tlog-upload=false --key ${SIGNING_KEY} IMAGE@DIGEST\`.`
}
