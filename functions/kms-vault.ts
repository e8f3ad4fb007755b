import { toBase64 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { decodeJson, getOwn, isJsonObject, type JsonValue } from '#shared/json.ts'
import {
  KMS_CALL_TIMEOUT_MS,
  MAX_DOCUMENT_VALUES,
  MAX_VAULT_ANSWER_BYTES,
  MAX_VAULT_DEPTH,
} from '#shared/limits.ts'
import type {
  FetchPort,
  VaultKey,
  VaultPort,
  VaultPublicKey,
  VaultVerification,
} from '#shared/ports.ts'
import { discard, readBody } from '#shared/registry/body.ts'
import { callKms } from './kms-call.ts'
import { describeVaultError, VaultAnswerError, VaultStatusError } from './kms-vault-error.ts'

export interface VaultOptions {
  fetch: FetchPort
  /** The token, asked for with every call; what it throws is passed on. */
  token: () => string
  /** One call without an answer, milliseconds; `KMS_CALL_TIMEOUT_MS` unless a test needs less. */
  callTimeoutMs?: number
}

type Data = { [key: string]: JsonValue }

/**
 * A VaultPort over the HTTP API of Vault and OpenBao. The token goes to the address of the key, which is the operator's, and
 * nowhere else: redirects are not followed.
 */
export function createVault(options: VaultOptions): VaultPort {
  return {
    async getPublicKey(key, signal) {
      const call = { action: 'keys', key, signal } as const
      const { deleted, ...found } = await request(options, call, toPublicKey)
      if (!deleted) return found
      throw new AdmissionError('KMS_REFUSED', `${doing(call)}: the key is deleted`)
    },
    verify: async (key, call, signal) =>
      request(options, { action: 'verify', key, signal, body: verifyBody(call) }, toVerdict),
  }
}

interface VaultCall {
  action: 'keys' | 'verify'
  key: VaultKey
  signal: AbortSignal
  body?: object
}

function doing({ action, key }: Pick<VaultCall, 'action' | 'key'>): string {
  const what = action === 'keys' ? 'key' : 'verify with key'
  return `Vault: ${what} ${key.name} in ${key.mount}`
}

async function request<T>(
  { fetch, token, callTimeoutMs = KMS_CALL_TIMEOUT_MS }: VaultOptions,
  call: VaultCall,
  read: (data: Data) => T,
): Promise<T> {
  const { action, key, signal, body } = call
  const init: RequestInit = {
    redirect: 'manual',
    headers: {
      'x-vault-token': checkedToken(token()),
      'x-vault-request': 'true',
      ...(key.namespace === undefined ? {} : { 'x-vault-namespace': key.namespace }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? { method: 'GET' } : { method: 'POST', body: JSON.stringify(body) }),
  }
  return callKms({
    doing: doing(call),
    signal,
    timeoutMs: callTimeoutMs,
    describe: describeVaultError,
    async send(either) {
      const url = `${key.address}/v1/${key.mount}/${action}/${key.name}`
      const response = await fetch(url, { ...init, signal: either })
      if (response.status !== 200) {
        discard(response)
        throw new VaultStatusError(response.status)
      }
      return read(await readData(response, either))
    },
  })
}

/** The token. Platforms repeat a header they do not take in their errors, so one that no header takes never gets there. */
function checkedToken(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new AdmissionError('CONFIG_INVALID', 'the token of Vault has characters that no token has')
}

/** The `data` of an answer. */
async function readData(response: Response, signal: AbortSignal): Promise<Data> {
  const reader = { signal, onBytes: () => {} }
  try {
    const bytes = await readBody(response, MAX_VAULT_ANSWER_BYTES, reader, 'answer')
    const bounds = { maxDepth: MAX_VAULT_DEPTH, maxValues: MAX_DOCUMENT_VALUES }
    const answer = decodeJson(bytes, bounds)
    const data = isJsonObject(answer) ? getOwn(answer, 'data') : undefined
    if (isJsonObject(data)) return data
  } catch (thrown) {
    // Anything but what it holds is a matter of the connection.
    if (!(thrown instanceof AdmissionError)) throw thrown
    const reason = thrown.code === 'JSON_INVALID' ? 'it is not JSON' : 'it is too large'
    throw new VaultAnswerError(reason, { cause: thrown })
  }
  throw new VaultAnswerError('it has no data')
}

/** The latest version of a key, where others are listed beside it. */
function toPublicKey(data: Data): VaultPublicKey & { deleted: boolean } {
  const type = getOwn(data, 'type')
  const version = getOwn(data, 'latest_version')
  const keys = getOwn(data, 'keys')
  if (typeof type !== 'string' || typeof version !== 'number' || !isJsonObject(keys)) {
    throw new VaultAnswerError('it describes no transit key')
  }
  const latest = getOwn(keys, String(version))
  const publicKey = isJsonObject(latest) ? getOwn(latest, 'public_key') : ''
  if (latest === undefined || typeof publicKey !== 'string') {
    throw new VaultAnswerError('it lacks the latest version of the key')
  }
  // A secret key has no public half; its type tells why it is refused.
  return { type, version, publicKey, deleted: getOwn(data, 'soft_deleted') === true }
}

function verifyBody({ input, hash, signature, version }: VaultVerification): object {
  return {
    input: toBase64(input),
    signature: `vault:v${version}:${toBase64(signature)}`,
    // Without it Vault takes every RSA signature for PSS, which cosign does not make.
    ...(hash === undefined
      ? {}
      : { prehashed: true, hash_algorithm: hash, signature_algorithm: 'pkcs1v15' }),
  }
}

function toVerdict(data: Data): boolean {
  const valid = getOwn(data, 'valid')
  if (typeof valid === 'boolean') return valid
  throw new VaultAnswerError('it does not say whether the signature is valid')
}
