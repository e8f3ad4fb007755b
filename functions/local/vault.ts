import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { bodyOf, closeServer, listenLocally } from './loopback.ts'
import { type TransitCall, TransitKey, VaultError } from './vault-store.ts'

/** Something that goes wrong on purpose. */
export type VaultFault =
  | { kind: 'status'; status: number; times: number; location?: string }
  | { kind: 'body'; body: string }
  | { kind: 'slow'; ms: number }
  | { kind: 'down' }
  | { kind: 'sealed' }

export interface VaultEmulatorOptions {
  /** Path of the transit engine. */
  mount?: string
  /** When set, requests need this X-Vault-Namespace. */
  namespace?: string
  token?: string
  /** PEM; plain http without it. */
  tls?: { cert: string; key: string }
}

/** What a request of the emulator was. */
export interface VaultRequest {
  method: string
  path: string
  /** JSON, where there was one. */
  body: unknown
}

/** A local Vault: real keys in a transit engine behind the real API, for tests. */
export interface VaultEmulator {
  /** `http://127.0.0.1:<port>` or `https://…`. */
  readonly url: string
  readonly mount: string
  readonly token: string
  /** Requests so far, those that were refused included. */
  readonly requests: readonly VaultRequest[]
  /** A key made without a request. */
  createKey(name: string, type: string, options?: { derived?: boolean }): Promise<TransitKey>
  deleteKey(name: string): void
  /** Injects a fault, or removes it with undefined. */
  fail(fault: VaultFault | undefined): void
  close(): Promise<void>
}

interface State {
  options: Required<Pick<VaultEmulatorOptions, 'mount' | 'token'>> & VaultEmulatorOptions
  keys: Map<string, TransitKey>
  requests: VaultRequest[]
  fault: VaultFault | undefined
}

/** Starts a local Vault on the loopback interface. */
export async function startVault(options: VaultEmulatorOptions = {}): Promise<VaultEmulator> {
  const { mount = 'transit', token = `hvs.${randomUUID()}`, tls } = options
  const state: State = {
    options: { ...options, mount, token },
    keys: new Map(),
    requests: [],
    fault: undefined,
  }
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handle(request, response, state)
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  const port = await listenLocally(server)
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    mount,
    token,
    get requests() {
      return [...state.requests]
    },
    async createKey(name, type, { derived = false } = {}) {
      const key = await TransitKey.create(name, type, derived)
      state.keys.set(name, key)
      return key
    },
    deleteKey: (name) => void state.keys.delete(name),
    fail(fault) {
      state.fault = fault === undefined ? undefined : { ...fault }
    },
    close: () => closeServer(server),
  }
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  state: State,
): Promise<void> {
  try {
    const text = (await bodyOf(request)).toString('utf8')
    const { method = '', url: path = '' } = request
    const body = text === '' ? undefined : parseBody(text)
    state.requests.push({ method, path, body })
    if (await misbehave(response, state)) return
    authorize(request, state)
    answer(response, 200, envelope(await route(method, path, body, state)))
  } catch (thrown) {
    const error = thrown instanceof VaultError ? thrown : new VaultError(500, String(thrown))
    answer(response, error.status, { errors: error.errors })
  }
}

/** Waits, throws, or says true when the response is over. */
async function misbehave(response: ServerResponse, { fault }: State): Promise<boolean> {
  switch (fault?.kind) {
    case undefined:
      return false
    case 'down':
      response.destroy()
      return true
    case 'slow':
      await new Promise((resolve) => setTimeout(resolve, fault.ms).unref())
      return false
    case 'sealed':
      throw new VaultError(503, 'Vault is sealed')
    case 'body':
      response.writeHead(200, { 'content-type': 'application/json' }).end(fault.body)
      return true
    case 'status':
      if (fault.times-- <= 0) return false
      if (fault.location !== undefined) response.setHeader('location', fault.location)
      throw new VaultError(fault.status, 'an injected fault')
  }
}

function authorize({ headers }: IncomingMessage, { options: { token, namespace } }: State): void {
  if (headers['x-vault-request'] !== 'true') {
    throw new VaultError(412, 'missing "X-Vault-Request" header')
  }
  if (headers['x-vault-token'] !== token) {
    throw new VaultError(403, '2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n')
  }
  if (namespace !== undefined && headers['x-vault-namespace'] !== namespace) {
    throw new VaultError(403, '1 error occurred:\n\t* permission denied\n\n')
  }
}

type Body = Readonly<Record<string, unknown>>

async function route(
  method: string,
  path: string,
  body: Body | undefined,
  state: State,
): Promise<object> {
  const prefix = `/v1/${state.options.mount}/`
  const [action = '', name = '', extra, ...rest] = path.startsWith(prefix)
    ? path.slice(prefix.length).split('/')
    : []
  const isKnown = /^\w(?:[\w.-]*\w)?$/.test(name) && rest.length === 0
  switch (isKnown ? `${method} ${action}` : '') {
    case 'GET keys':
      if (extra === undefined) return found(state, name, new VaultError(404)).describe()
      break
    case 'POST keys':
      return changeKey(name, extra, body ?? {}, state)
    case 'DELETE keys':
      return deleteKey(name, state)
    case 'POST sign': {
      const key = found(state, name, new VaultError(400, 'signing key not found'))
      return key.sign(toCall(body ?? {}, extra))
    }
    case 'POST verify': {
      const absent = new VaultError(400, 'signature verification key not found')
      const signature = text(body ?? {}, 'signature', '')
      return found(state, name, absent).verify(signature, toCall(body ?? {}, extra))
    }
  }
  const what = path.replace('/v1/', '')
  throw new VaultError(404, `no handler for route "${what}". route entry not found.`)
}

async function changeKey(
  name: string,
  extra: string | undefined,
  body: Body,
  { keys }: State,
): Promise<object> {
  const known = keys.get(name)
  if (extra === undefined) {
    const key = known ?? (await TransitKey.create(name, text(body, 'type', 'aes256-gcm96')))
    keys.set(name, key)
    return key.describe()
  }
  if (known === undefined) throw new VaultError(400, `no existing key named ${name} could be found`)
  if (extra === 'rotate') await known.rotate()
  else if (extra === 'config') {
    const { min_decryption_version: min, deletion_allowed: deletable } = body
    if (typeof min === 'number') known.minDecryptionVersion = min
    if (typeof deletable === 'boolean') known.deletionAllowed = deletable
  } else throw new VaultError(404, `no handler for route "keys/${name}/${extra}"`)
  return known.describe()
}

function deleteKey(name: string, { keys }: State): object {
  if (keys.get(name)?.deletionAllowed !== true) {
    throw new VaultError(400, `error deleting policy ${name}: deletion is not allowed`)
  }
  keys.delete(name)
  return {}
}

function found({ keys }: State, name: string, absent: VaultError): TransitKey {
  const key = keys.get(name)
  if (key === undefined) throw absent
  return key
}

/** As the API reads it: the hash in the path counts before that in the body. */
function toCall(body: Body, urlAlgorithm: string | undefined): TransitCall {
  const input = Buffer.from(text(body, 'input', ''), 'base64')
  if (body.prehashed !== undefined && typeof body.prehashed !== 'boolean') {
    throw new VaultError(400, 'error converting input for field "prehashed"')
  }
  return {
    input,
    prehashed: body.prehashed === true,
    hashAlgorithm: urlAlgorithm ?? text(body, 'hash_algorithm', 'sha2-256'),
    signatureAlgorithm: text(body, 'signature_algorithm', 'pss'),
  }
}

function text(body: Body, name: string, fallback: string): string {
  const value = body[name] ?? fallback
  if (typeof value === 'string') return value
  throw new VaultError(400, `error converting input for field "${name}"`)
}

function envelope(data: object): object {
  return {
    request_id: randomUUID(),
    lease_id: '',
    renewable: false,
    lease_duration: 0,
    data,
    wrap_info: null,
    warnings: null,
    auth: null,
    mount_type: 'transit',
  }
}

function parseBody(body: string): Body {
  try {
    const value: unknown = JSON.parse(body)
    // Members are checked where they are used.
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body
  } catch (cause) {
    throw Object.assign(new VaultError(400, 'failed to parse JSON input'), { cause })
  }
  throw new VaultError(400, 'failed to parse JSON input')
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}
