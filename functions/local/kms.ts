import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { KmsError } from './kms-error.ts'
import { type Input, OPERATIONS } from './kms-operations.ts'
import { type KeyRequest, KeyStore, type LocalKey } from './kms-store.ts'
import { bodyOf, closeServer, listenLocally } from './loopback.ts'

/** Something that goes wrong on purpose, for one operation or for all. */
export type KmsFault = { operation?: string } & (
  | { kind: 'throttle'; times: number }
  | { kind: 'error'; type: string; times: number }
  | { kind: 'slow'; ms: number }
  | { kind: 'down' }
)

export interface KmsEmulatorOptions {
  region?: string
  account?: string
  /** 0 picks a free one. */
  port?: number
}

/** A local KMS: real key material behind the real wire format (AWS JSON 1.1), for the demo and the tests. */
export interface KmsEmulator {
  /** `http://127.0.0.1:<port>`, what the operator's endpoint list has to hold. */
  readonly url: string
  readonly region: string
  /** Requests so far, by operation. */
  readonly calls: Readonly<Record<string, number>>
  /** A key made without a request, in the caller's account unless another is given. */
  createKey(request: KeyRequest & { alias?: string; account?: string }): Promise<LocalKey>
  /** The replica in this region of a multi-region key of another emulator. */
  replicate(primary: LocalKey): LocalKey
  /** Injects a fault, or removes all with undefined. */
  fail(fault: KmsFault | undefined): void
  close(): Promise<void>
}

/** Starts a local KMS on the loopback interface. */
export async function startKms(options: KmsEmulatorOptions = {}): Promise<KmsEmulator> {
  const { region = 'eu-central-1', account = '111122223333', port = 0 } = options
  const store = new KeyStore(region, account)
  const state: State = { store, calls: {}, fault: undefined }
  const server = createServer((request, response) => void handle(request, response, state))
  return {
    url: `http://127.0.0.1:${await listenLocally(server, port)}`,
    region,
    get calls() {
      return { ...state.calls }
    },
    async createKey({ alias, account: owner = account, ...request }) {
      const keys = owner === account ? store : store.other(owner)
      const key = await keys.create(request)
      if (alias !== undefined) keys.createAlias(alias, key.id)
      return key
    },
    replicate: (primary) => store.replicate(primary),
    fail(fault) {
      state.fault = fault === undefined ? undefined : { ...fault }
    },
    close: () => closeServer(server),
  }
}

interface State {
  store: KeyStore
  calls: Record<string, number>
  fault: KmsFault | undefined
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  state: State,
): Promise<void> {
  try {
    const body = (await bodyOf(request)).toString('utf8')
    const operation = operationOf(request)
    state.calls[operation] = (state.calls[operation] ?? 0) + 1
    if (await misbehave(operation, state)) {
      response.destroy()
      return
    }
    checkAuthorization(request, state.store.region)
    answer(response, 200, await run(operation, body, state.store))
  } catch (thrown) {
    const error =
      thrown instanceof KmsError ? thrown : new KmsError('KMSInternalException', String(thrown))
    answer(response, error.status, { __type: error.type, message: error.message })
  }
}

function operationOf({ method, headers }: IncomingMessage): string {
  const target = headers['x-amz-target']
  const [, operation] = /^TrentService\.([A-Za-z]+)$/.exec(String(target)) ?? []
  if (method !== 'POST' || operation === undefined) {
    throw new KmsError(
      'UnknownOperationException',
      'expected POST with X-Amz-Target: TrentService.*',
    )
  }
  return operation
}

async function run(operation: string, body: string, store: KeyStore): Promise<object> {
  const implementation = Object.hasOwn(OPERATIONS, operation) ? OPERATIONS[operation] : undefined
  if (implementation === undefined) {
    throw new KmsError('UnknownOperationException', `${operation} is not emulated`)
  }
  return implementation(store, parseInput(body))
}

function parseInput(body: string): Input {
  let input: unknown
  try {
    input = JSON.parse(body === '' ? '{}' : body)
  } catch {
    throw new KmsError('SerializationException', 'the body is not JSON')
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new KmsError('SerializationException', 'the body is not a JSON object')
  }
  // Checked just above; the members are checked where they are used.
  return input as Input
}

/** Throws, waits, or says true when the connection is to be cut. */
async function misbehave(operation: string, state: State): Promise<boolean> {
  const { fault } = state
  if (fault === undefined || (fault.operation ?? operation) !== operation) return false
  switch (fault.kind) {
    case 'down':
      return true
    case 'slow':
      await new Promise((resolve) => setTimeout(resolve, fault.ms).unref())
      return false
    case 'throttle':
      if (fault.times-- > 0) {
        throw new KmsError(
          'ThrottlingException',
          'You have exceeded the rate at which you may call KMS.',
        )
      }
      return false
    case 'error':
      if (fault.times-- > 0) throw new KmsError(fault.type, 'an injected fault')
      return false
  }
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=[A-Za-z0-9]{3,128}\/\d{8}\/([a-z0-9-]+)\/kms\/aws4_request, ?SignedHeaders=[a-z0-9;-]+, ?Signature=[0-9a-f]{64}$/

/** The shape of a Signature Version 4 header: unsigned callers fail here as they would on AWS. */
function checkAuthorization({ headers }: IncomingMessage, region: string): void {
  const { authorization } = headers
  if (authorization === undefined) {
    throw new KmsError('MissingAuthenticationTokenException', 'Missing Authentication Token')
  }
  const scope = AUTHORIZATION.exec(authorization)?.[1]
  if (scope === undefined || headers['x-amz-date'] === undefined) {
    throw new KmsError('IncompleteSignatureException', 'Authorization is not AWS4-HMAC-SHA256')
  }
  if (scope !== region) {
    throw new KmsError('InvalidSignatureException', `Credential should be scoped to ${region}.`)
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' })
  response.end(JSON.stringify(body))
}
