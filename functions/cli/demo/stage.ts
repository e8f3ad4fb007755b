import { type Admission, createApiServer, type OtherWebhook } from '#functions/local/apiserver.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { kmsSigner } from '#functions/local/signer.ts'
import { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import { createDevCertificates } from '#functions/local/tls.ts'
import type { Webhook } from '#functions/local/webhook.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import type { JsonValue } from '#shared/json.ts'
import { newToken } from '../token.ts'
import {
  type ClusterName,
  demoDeployment,
  type PolicyName,
  RELEASE_KEY,
  SEAL_KEY,
} from './deployment.ts'
import { type RunningFunctions, startFunctions } from './functions.ts'
import { createImages, type DemoImage, type Signature } from './images.ts'
import { POLICY_FILE } from './policy.ts'

/** How a submission reaches the functions. */
export interface Route {
  cluster?: ClusterName
  policy?: PolicyName
  /** False: the mutating webhook is not registered. */
  mutating?: boolean
  /** The API server asks with ImagePolicyWebhook, and with no validating webhook. */
  imageReview?: true
  reinvocation?: 'Never' | 'IfNeeded'
  timeoutSeconds?: number
  /** Functions that were just started and have nothing in memory, instead of those that have been running all along. */
  cold?: boolean
  /** Other mutating webhooks, after ours. */
  later?: readonly OtherWebhook[]
}

/** The embedded parts that scenarios play on. */
export interface Stage {
  /** What is running where, a line each. */
  readonly description: readonly string[]
  readonly registry: LocalRegistry
  readonly kms: KmsEmulator
  /** The clock of functions and API server. */
  readonly clock: { shift(ms: number): void }
  image(name: string, by: Signature): Promise<DemoImage>
  /** Attaches what the release workflow attests about an image. */
  attest(image: DemoImage, predicateType: string, predicate: JsonValue): Promise<void>
  withdraw(image: DemoImage): void
  /** Submits an object to the API server as CREATE. */
  create(object: JsonObject, route?: Route): Promise<Staged>
  close(): Promise<void>
}

/** An admission, and what validate made of the seal by its own log: `open`, `absent`, `refused: …`. */
export type Staged = Admission & { readonly seal: string | undefined }

export const MUTATING = 'mutate.countersign.dev'
export const VALIDATING = 'validate.countersign.dev'

/** The local KMS wants requests to be signed, and does not care by whom. */
const CREDENTIALS = { accessKeyId: 'DEMO', secretAccessKey: 'demo' }
const ENV = { AWS_ACCESS_KEY_ID: 'DEMO', AWS_SECRET_ACCESS_KEY: 'demo' }

/** Starts registry, KMS, keys and functions. */
export async function openStage(): Promise<Stage> {
  const registry = await startRegistry()
  const kms = await startKms()
  const closeServices = async () => {
    await Promise.all([registry.close(), kms.close()])
  }
  try {
    return await openOn(registry, kms, closeServices)
  } catch (thrown) {
    // What listens would keep the process alive.
    await closeServices()
    throw thrown
  }
}

async function openOn(
  registry: LocalRegistry,
  kms: KmsEmulator,
  closeServices: () => Promise<void>,
): Promise<Stage> {
  await kms.createKey({ spec: 'ECC_NIST_P256', usage: 'SIGN_VERIFY', alias: RELEASE_KEY })
  await kms.createKey({ spec: 'HMAC_256', usage: 'GENERATE_VERIFY_MAC', alias: SEAL_KEY })
  const { url: endpoint, region } = kms
  const release = await kmsSigner({
    keyId: RELEASE_KEY,
    region,
    endpoint,
    credentials: CREDENTIALS,
  })
  const sigstore = new LocalSigstore(Math.floor(Date.now() / 1000))
  const images = createImages(registry, release, sigstore)
  const tokens = { 'prod-eu': newToken(), 'prod-us': newToken() }
  const deployment = await demoDeployment({ registryHost: registry.host, kms, sigstore, tokens })
  const certificates = await createDevCertificates({ hosts: ['127.0.0.1'] })
  let offsetMs = 0
  const now = () => Date.now() + offsetMs
  const start = () => startFunctions(deployment, { certificates, env: ENV, now })
  const warm = await start()
  const meter = () => ({ registry: registry.requests.length, KMS: total(kms.calls) })

  async function create(object: JsonObject, route: Route = {}): Promise<Staged> {
    const functions = route.cold ? await start() : warm
    const webhooks = webhooksOf(functions, tokens[route.cluster ?? 'prod-eu'], route)
    const server = createApiServer({ ca: certificates.ca, ...webhooks, now, meter })
    try {
      const later = route.later ?? []
      const admission = await server.admit({ operation: 'CREATE', object }, { later })
      return { ...admission, seal: sealUse(admission, functions) }
    } finally {
      server.close()
      if (route.cold) await functions.close()
    }
  }

  return {
    description: describe(registry, kms, warm),
    registry,
    kms,
    clock: {
      shift(ms) {
        offsetMs += ms
      },
    },
    image: images.push,
    attest: images.attest,
    withdraw: images.withdraw,
    create,
    async close() {
      await warm.close()
      await closeServices()
    },
  }
}

/** What a cluster would register for one policy: both webhooks, or one and ImagePolicyWebhook. */
function webhooksOf(functions: RunningFunctions, token: string, route: Route) {
  const { cluster = 'prod-eu', policy = 'signed-images', timeoutSeconds = 10 } = route
  const at = (verb: 'mutate' | 'validate') =>
    `${functions[verb]}/v1/${cluster}/${token}/ivpol/${verb}/${policy}`
  const common = { failurePolicy: 'Fail', timeoutSeconds } as const
  const mutating: Webhook = {
    ...common,
    name: MUTATING,
    url: at('mutate'),
    reinvocationPolicy: route.reinvocation ?? 'Never',
  }
  const validating: Webhook = { ...common, name: VALIDATING, url: at('validate') }
  const imagePolicy = { url: `${functions.imageReview}/v1/${cluster}/${token}/image-review` }
  return {
    ...(route.imageReview ? { imagePolicy } : { validating }),
    ...(route.mutating === false ? {} : { mutating }),
  }
}

function sealUse(admission: Admission, functions: RunningFunctions): string | undefined {
  const call = admission.calls.find(({ phase }) => phase === 'validate')
  const use = call && functions.record(call.request.uid)?.seal
  return typeof use === 'string' ? use : undefined
}

function total(calls: Readonly<Record<string, number>>): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0)
}

function describe(
  registry: LocalRegistry,
  kms: KmsEmulator,
  functions: RunningFunctions,
): string[] {
  return [
    `registry   ${registry.url}`,
    `KMS        ${kms.url}, ${RELEASE_KEY} signs, ${SEAL_KEY} seals`,
    'Sigstore   certificate authority, logs and timestamps in this process',
    `functions  ${functions.mutate} mutate, ${functions.validate} validate,`,
    `           ${functions.imageReview} image-review`,
    `policy     ${POLICY_FILE}, its key reference pointed at this KMS`,
  ]
}
