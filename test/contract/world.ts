import { generateKeyPairSync } from 'node:crypto'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { pushImage } from '#functions/local/image.ts'
import type { KmsEmulator } from '#functions/local/kms.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { attest, signImage } from '#functions/local/sign.ts'
import { kmsSigner, localSigner, type Signer } from '#functions/local/signer.ts'
import type { VaultEmulator } from '#functions/local/vault.ts'
import { vaultSigner } from '#functions/local/vault-signer.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { type Served, serve, TOKEN } from './deploy.ts'
import { hashOf } from './review.ts'

export const BEARER = 'bearer-of-the-cluster'

/** Everything the contract suite runs against: a deployment, its bundles, and a registry with images. */
export interface World extends Served {
  registry: LocalRegistry
  /** References of images, all but the first pinned. The registry never answers for the stalled one. */
  images: {
    tagged: string
    signed: string
    unsigned: string
    stalled: string
    /** Attested to be built where they should, and elsewhere. */
    built: string
    homemade: string
  }
}

/** A World whose keys are PEM and secrets, or all in this KMS, or the one that signs in this Vault. */
export async function createWorld(service?: KmsEmulator | VaultEmulator): Promise<World> {
  const registry = await startRegistry()
  const { attestor, signer, outcomeKey, config } = await keysIn(service)
  const files = [
    { name: 'signed.yaml', text: policyText(attestor) },
    { name: 'built.yaml', text: builtText(attestor) },
  ]
  const policies = await loadPolicies(files, {
    kmsEndpoints: config.endpoints ?? [],
    kmsRegion: 'eu-central-1',
    ...(config.vault && { kmsVault: config.vault }),
  })
  if (policies.faults.length > 0) throw new TypeError(JSON.stringify(policies.faults))
  const deployment = await createDeployment(
    configOf(registry.host, outcomeKey, config),
    policies.policies,
  )
  const [served, signed, unsigned] = await Promise.all([
    serve(deployment),
    pushImage({ url: registry.url, repository: 'signed' }, { text: 'signed', tag: '1' }),
    pushImage({ url: registry.url, repository: 'unsigned' }, { text: 'unsigned', tag: '1' }),
  ])
  const image = { descriptor: signed, reference: `${registry.host}/signed` }
  await signImage({ url: registry.url, repository: 'signed' }, image, [signer], 'tag')
  const built = await pushBuilt(registry, signer, 'built', 'tag')
  const homemade = await pushBuilt(registry, signer, 'homemade', 'dsse')
  registry.faults.add({ kind: 'stall' }, { on: /\/v2\/stalled\// })
  return {
    ...served,
    registry,
    images: {
      tagged: `${registry.host}/signed:1`,
      signed: `${registry.host}/signed:1@${signed.digest}`,
      unsigned: `${registry.host}/unsigned:1@${unsigned.digest}`,
      stalled: `${registry.host}/stalled:1@${signed.digest}`,
      built,
      homemade,
    },
    close: async () => {
      await registry.close()
      await served.close()
    },
  }
}

/** A new image, pinned, whose provenance says that it was built in the place of its name. */
async function pushBuilt(
  registry: LocalRegistry,
  signer: Signer,
  repository: string,
  layout: 'tag' | 'dsse',
): Promise<string> {
  const target = { url: registry.url, repository }
  const descriptor = await pushImage(target, { text: repository, tag: '1' })
  const reference = `${registry.host}/${repository}`
  const attested = { predicateType: PROVENANCE, predicate: { builder: repository }, layout }
  await attest(target, { descriptor, reference }, signer, attested)
  return `${reference}:1@${descriptor.digest}`
}

const PROVENANCE = 'https://slsa.dev/provenance/v1'

interface Keys {
  /** The policy's `cosign.key`. */
  attestor: { data: string } | { kms: string }
  signer: Signer
  /** The config's `outcomes.key` and `kms`. */
  outcomeKey: object
  config: {
    region?: string
    endpoints?: string[]
    vault?: { address: string; tokenEnv: string }
  }
}

function keysIn(service: KmsEmulator | VaultEmulator | undefined): Promise<Keys> {
  if (service === undefined) return localKeys()
  return 'region' in service ? keysInKms(service) : keysInVault(service)
}

async function keysInVault(vault: VaultEmulator): Promise<Keys> {
  const { url, token } = vault
  await vault.createKey('release', 'ecdsa-p384')
  return {
    attestor: { kms: 'hashivault://release' },
    signer: await vaultSigner({ url, token, name: 'release' }),
    outcomeKey: { secrets: [{ id: 'a', env: 'SEAL' }] },
    config: { vault: { address: url, tokenEnv: 'VAULT_TOKEN' } },
  }
}

async function localKeys(): Promise<Keys> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    attestor: { data: publicKey.export({ type: 'spki', format: 'pem' }).toString() },
    signer: localSigner(privateKey),
    outcomeKey: { secrets: [{ id: 'a', env: 'SEAL' }] },
    config: {},
  }
}

async function keysInKms(kms: KmsEmulator): Promise<Keys> {
  const { host } = new URL(kms.url)
  await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', alias: 'alias/release' })
  await kms.createKey({ spec: 'HMAC_256', usage: 'GENERATE_VERIFY_MAC', alias: 'alias/seal' })
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'example' }
  return {
    attestor: { kms: `awskms://${host}/alias/release` },
    signer: await kmsSigner({
      keyId: 'alias/release',
      region: kms.region,
      endpoint: kms.url,
      credentials,
    }),
    outcomeKey: { kms: `awskms://${host}/alias/seal` },
    config: { region: kms.region, endpoints: [kms.url] },
  }
}

function configOf(host: string, key: object, kms: object) {
  const tokens = [hashOf(TOKEN)]
  return parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key },
    kms,
    registries: { plainHttp: [host] },
    clusters: [
      { name: 'prod', tokens, imageReview: true },
      { name: 'bearer', tokens, bearer: [hashOf(BEARER)] },
      { name: 'local', tokens, cidrs: ['127.0.0.0/8', '::1/128'] },
      { name: 'elsewhere', tokens, cidrs: ['203.0.113.0/24'] },
      { name: 'expired', tokens, notAfter: '2020-01-01T00:00:00Z' },
    ],
  })
}

function policyText(key: Keys['attestor']): string {
  return `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: signed
spec:
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [pods]
  matchImageReferences:
    - glob: "*"
  attestors:
    - name: release
      cosign:
        key: ${JSON.stringify(key)}
        ctlog:
          insecureIgnoreTlog: true
  validations:
    - expression: images.containers.all(image, verifyImageSignatures(image, [attestors.release]) > 0)
      message: not signed by the release key
`
}

/** Images of two names carry a provenance by the key, which has to name the right builder. */
function builtText(key: Keys['attestor']): string {
  return `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: built
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences:
    - glob: "*/built*"
    - glob: "*/homemade*"
  attestors:
    - name: release
      cosign:
        key: ${JSON.stringify(key)}
        ctlog:
          insecureIgnoreTlog: true
  attestations:
    - name: provenance
      intoto:
        type: slsaprovenance1
  validations:
    - expression: images.containers.all(image, verifyAttestationSignatures(image, attestations.provenance, [attestors.release]) > 0)
      message: no provenance
    - expression: images.containers.all(image, extractPayload(image, attestations.provenance).predicate.builder == "built")
      messageExpression: '"it is " + string(extractPayload(images.containers[0], attestations.provenance).predicate.builder)'
`
}
