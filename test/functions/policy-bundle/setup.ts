import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type BundleTimes, payloadOf, signedBundle } from '#functions/cli/policy-bundle/write.ts'
import { type Config, parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { localSigner } from '#functions/local/signer.ts'
import { type Bytes, fromUtf8, toBase64, utf8 } from '#shared/bytes.ts'
import { preAuthenticationEncoding } from '#shared/signature/dsse.ts'
import { load, policyDocument } from '#test/shared/policy/documents.ts'
import { hashOf } from '../../contract/review.ts'

export const TOKEN = 'tokentokentokentokentokentoken22'
export const SEAL = Buffer.alloc(32, 7).toString('base64')
export const NOW = Date.parse('2027-01-01T00:00:00Z')
export const ISSUED = NOW - 60_000

/** A key pair as bundles are signed with, and its public half as configs have it. */
export interface TestKey {
  privateKey: KeyObject
  pem: string
}

export function newKey(): TestKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { privateKey, pem: publicKey.export({ type: 'spki', format: 'pem' }).toString() }
}

/** A policy that needs nobody: no image may have this tag. */
export function forbids(tag: string, spec: object = {}, name = 'tags') {
  return policyDocument(
    {
      validationConfigurations: { mutateDigest: false, verifyDigest: false, required: false },
      validations: [
        {
          expression: `images.containers.all(image, !image.endsWith(':${tag}'))`,
          message: `no ${tag}`,
        },
      ],
      ...spec,
    },
    name,
  )
}

/** A config of one cluster whose bundles are at this address, signed with this key. */
export function configWith(
  source: object,
  key: TestKey,
  bundle: object = {},
  members: object = {},
): Config {
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)] }],
    policyBundle: { ...source, key: { file: 'policies.pub' }, ...bundle },
    ...members,
  })
  const { policyBundle } = config
  if (policyBundle === undefined || 'kms' in policyBundle.key) return config
  return {
    ...config,
    policyBundle: { ...policyBundle, key: { file: 'policies.pub', pem: key.pem } },
  }
}

export async function deploymentOf(
  documents: readonly object[],
  config: Config,
): Promise<Deployment> {
  const { policies, faults } = await load(documents)
  if (faults.length > 0) throw new TypeError(JSON.stringify(faults))
  return createDeployment(config, policies)
}

export interface SigningOptions extends Partial<BundleTimes> {
  /** Changes what is signed. */
  change?: (payload: Record<string, unknown>) => void
  payloadType?: string
}

/** A signed bundle of a deployment, as the command makes it. */
export async function bundleOf(
  deployment: Deployment,
  key: TestKey,
  { change, payloadType, sequence = 1, issuedAt = ISSUED, ...times }: SigningOptions = {},
): Promise<string> {
  const payload = payloadOf(deployment, { sequence, issuedAt, ...times })
  return signPayload(change === undefined ? payload : changed(payload, change), key, payloadType)
}

function changed(payload: Bytes, change: (payload: Record<string, unknown>) => void): Bytes {
  const value = JSON.parse(fromUtf8(payload))
  change(value)
  return utf8(JSON.stringify(value))
}

/** An envelope of any payload. */
export async function signPayload(
  payload: Bytes,
  { privateKey }: TestKey,
  payloadType?: string,
): Promise<string> {
  const signer = localSigner(privateKey)
  if (payloadType === undefined) {
    return signedBundle(payload, { keyId: '', sign: (message) => signer.sign(message) })
  }
  const sig = toBase64(await signer.sign(preAuthenticationEncoding(payloadType, payload)))
  return JSON.stringify({ payloadType, payload: toBase64(payload), signatures: [{ sig }] })
}
