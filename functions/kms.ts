import type { KMSClient, SigningAlgorithmSpec } from '@aws-sdk/client-kms'
import type { Bytes } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { KMS_CALL_TIMEOUT_MS } from '#shared/limits.ts'
import type { KmsKey, KmsPort, KmsPublicKey, KmsVerification } from '#shared/ports.ts'
import { callKms } from './kms-call.ts'
import { describeKmsError } from './kms-error.ts'

/** Long-lived or session credentials of AWS. */
export interface AwsCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

export interface AwsKmsOptions {
  /** Explicit credentials, for Workers; without them the SDK's default provider chain, for Lambda and Node. */
  credentials?: AwsCredentials | (() => Promise<AwsCredentials>)
  /** The endpoint of keys that name none, by region, such as a VPC endpoint; undefined means AWS's public one. */
  endpointFor?: (region: string) => string | undefined
  /** One call without an answer, milliseconds; `KMS_CALL_TIMEOUT_MS` unless a test needs less. */
  callTimeoutMs?: number
}

type Sdk = typeof import('@aws-sdk/client-kms')

/** One operation: how it is sent and what comes of it. */
interface Call<T> {
  operation: string
  key: KmsKey
  signal: AbortSignal
  send: (client: KMSClient, sdk: Sdk, abortSignal: AbortSignal) => Promise<T>
}

/**
 * A KmsPort over AWS KMS. The SDK is loaded with the first call, since it is larger than everything else together. Keys go
 * to the region and endpoint they carry; a throttled, failed or refused connection is tried once more, a call that
 * takes too long is not. Errors are split as specs/signatures.md 4.1 says.
 */
export function createAwsKms(options: AwsKmsOptions = {}): KmsPort {
  return new AwsKms(options)
}

/**
 * What the SDK's default chain finds on this machine: a profile, single sign-on, the role of an instance. Throws `CONFIG_INVALID` when
 * that is nothing. Everywhere but on the command line credentials stand in the environment.
 */
export async function defaultAwsCredentials(): Promise<AwsCredentials> {
  const { KMSClient } = await import('@aws-sdk/client-kms')
  try {
    // The chain is no package of ours, but every client has one.
    const found = await new KMSClient({ region: 'us-east-1' }).config.credentials()
    const { accessKeyId, secretAccessKey, sessionToken } = found
    return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
  } catch (cause) {
    throw new AdmissionError('CONFIG_INVALID', 'no AWS credentials on this machine', { cause })
  }
}

class AwsKms implements KmsPort {
  readonly #options: AwsKmsOptions
  /** By region and endpoint. */
  readonly #clients = new Map<string, KMSClient>()

  constructor(options: AwsKmsOptions) {
    this.#options = options
  }

  getPublicKey(key: KmsKey, signal: AbortSignal): Promise<KmsPublicKey> {
    return this.#run({
      operation: 'GetPublicKey',
      key,
      signal,
      async send(client, sdk, abortSignal) {
        const command = new sdk.GetPublicKeyCommand({ KeyId: key.keyId })
        const answer = await client.send(command, { abortSignal })
        return {
          spki: present(answer.PublicKey, 'PublicKey').slice(),
          keySpec: answer.KeySpec ?? '',
          keyUsage: answer.KeyUsage ?? '',
          signingAlgorithms: answer.SigningAlgorithms ?? [],
          ...(answer.KeyId === undefined ? {} : { keyArn: answer.KeyId }),
        }
      },
    })
  }

  verify(key: KmsKey, call: KmsVerification, signal: AbortSignal): Promise<boolean> {
    const input =
      'digest' in call
        ? ({ MessageType: 'DIGEST', Message: call.digest } as const)
        : ({ MessageType: 'RAW', Message: call.message } as const)
    return this.#run({
      operation: 'Verify',
      key,
      signal,
      async send(client, sdk, abortSignal) {
        const command = new sdk.VerifyCommand({
          KeyId: key.keyId,
          ...input,
          Signature: call.signature,
          // The SDK's type is a closed union; KMS itself refuses a name it does not know.
          SigningAlgorithm: call.algorithm as SigningAlgorithmSpec,
        })
        try {
          return (await client.send(command, { abortSignal })).SignatureValid === true
        } catch (thrown) {
          if (thrown instanceof sdk.KMSInvalidSignatureException) return false
          throw thrown
        }
      },
    })
  }

  generateMac(key: KmsKey, message: Bytes, signal: AbortSignal): Promise<Bytes> {
    return this.#run({
      operation: 'GenerateMac',
      key,
      signal,
      async send(client, sdk, abortSignal) {
        const command = new sdk.GenerateMacCommand({
          KeyId: key.keyId,
          Message: message,
          MacAlgorithm: 'HMAC_SHA_256',
        })
        return present((await client.send(command, { abortSignal })).Mac, 'Mac').slice()
      },
    })
  }

  #run<T>({ operation, key, signal, send }: Call<T>): Promise<T> {
    return callKms({
      doing: `KMS ${operation} of ${key.keyId} in ${key.region}`,
      signal,
      timeoutMs: this.#options.callTimeoutMs ?? KMS_CALL_TIMEOUT_MS,
      describe: describeKmsError,
      send: async (either) => {
        const sdk = await import('@aws-sdk/client-kms')
        return send(this.#clientFor(sdk, key), sdk, either)
      },
    })
  }

  #clientFor(sdk: Sdk, { region, endpoint }: KmsKey): KMSClient {
    const url = endpoint ?? this.#options.endpointFor?.(region)
    const id = `${region} ${url ?? ''}`
    const client = this.#clients.get(id) ?? createClient(sdk, this.#options, region, url)
    this.#clients.set(id, client)
    return client
  }
}

function createClient(
  sdk: Sdk,
  { credentials }: AwsKmsOptions,
  region: string,
  endpoint: string | undefined,
): KMSClient {
  return new sdk.KMSClient({
    region,
    // One try each: the SDK's own backoff after throttling is longer than a webhook can wait.
    maxAttempts: 1,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  })
}

/** A member KMS always sends. Its absence means something else answered. */
function present<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the answer has no ${name}`)
  return value
}
