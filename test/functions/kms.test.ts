import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AwsKmsOptions, createAwsKms } from '#functions/kms.ts'
import { describeKmsError } from '#functions/kms-error.ts'
import { type KmsEmulator, startKms } from '#functions/local/kms.ts'
import { utf8 } from '#shared/bytes.ts'
import type { AdmissionError } from '#shared/errors.ts'
import type { KmsKey } from '#shared/ports.ts'

const SECRET = 'correct-horse-battery-staple'
const CREDENTIALS = {
  accessKeyId: 'AKIALOCAL',
  secretAccessKey: SECRET,
  sessionToken: `${SECRET}-token`,
}
const SIGNAL = () => new AbortController().signal

let kms: KmsEmulator
beforeAll(async () => {
  kms = await startKms()
})
afterEach(() => kms.fail(undefined))
afterAll(() => kms.close())

const portOf = (options: AwsKmsOptions = {}) =>
  createAwsKms({ credentials: CREDENTIALS, ...options })
const keyOf = (keyId: string): KmsKey => ({ keyId, region: kms.region, endpoint: kms.url })
const made = (spec: string, usage: string) => kms.createKey({ spec, usage })

/** `CODE message` of a failure. */
async function faultOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: AdmissionError) => `${error.code} ${error.message}`,
  )
}

describe('createAwsKms', () => {
  test('gets a public key', async () => {
    const { id, arn } = await made('ECC_NIST_P384', 'SIGN_VERIFY')
    expect(await portOf().getPublicKey(keyOf(id), SIGNAL())).toEqual({
      spki: expect.any(Uint8Array),
      keySpec: 'ECC_NIST_P384',
      keyUsage: 'SIGN_VERIFY',
      signingAlgorithms: ['ECDSA_SHA_384'],
      keyArn: arn,
    })
  })

  test('makes the same MAC for the same message, and another for another', async () => {
    const { id } = await made('HMAC_256', 'GENERATE_VERIFY_MAC')
    const port = portOf()
    const macs = await Promise.all(
      ['a', 'a', 'b'].map((text) => port.generateMac(keyOf(id), utf8(text), SIGNAL())),
    )
    expect(macs[0]).toHaveLength(32)
    expect(macs[0]).toEqual(macs[1])
    expect(macs[0]).not.toEqual(macs[2])
  })

  test('tells a right signature from a wrong one', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const { KMS } = await import('@aws-sdk/client-kms')
    const client = new KMS({ region: kms.region, endpoint: kms.url, credentials: CREDENTIALS })
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', utf8('a')))
    const { Signature } = await client.sign({
      KeyId: id,
      Message: digest,
      MessageType: 'DIGEST',
      SigningAlgorithm: 'ECDSA_SHA_256',
    })
    client.destroy()
    const signature = new Uint8Array(Signature ?? [])
    const call = { digest, signature, algorithm: 'ECDSA_SHA_256' }
    const port = portOf()
    expect(await port.verify(keyOf(id), call, SIGNAL())).toBe(true)
    const wrong = { ...call, digest: digest.toReversed() }
    expect(await port.verify(keyOf(id), wrong, SIGNAL())).toBe(false)
  })

  test('takes credentials from a function, and the endpoint of a region from the operator', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const port = createAwsKms({
      credentials: async () => CREDENTIALS,
      endpointFor: (region) => (region === kms.region ? kms.url : undefined),
    })
    const key = { keyId: id, region: kms.region }
    expect((await port.getPublicKey(key, SIGNAL())).keySpec).toBe('ECC_NIST_P256')
  })

  test.each([
    { name: 'one throttled call', fault: { kind: 'throttle', times: 1 } },
    {
      name: 'one internal error',
      fault: { kind: 'error', type: 'KMSInternalException', times: 1 },
    },
    {
      name: 'one timeout of a dependency',
      fault: { kind: 'error', type: 'DependencyTimeoutException', times: 1 },
    },
    {
      name: 'one unavailable key',
      fault: { kind: 'error', type: 'KeyUnavailableException', times: 1 },
    },
  ] as const)('gets over $name', async ({ fault }) => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const before = kms.calls.GetPublicKey ?? 0
    kms.fail(fault)
    expect((await portOf().getPublicKey(keyOf(id), SIGNAL())).keySpec).toBe('ECC_NIST_P256')
    expect(kms.calls.GetPublicKey).toBe(before + 2)
  })

  test.each([
    {
      name: 'throttling',
      fault: { kind: 'throttle', times: 9 },
      reason: 'KMS throttles (ThrottlingException)',
      tries: 2,
    },
    {
      name: 'an internal error',
      fault: { kind: 'error', type: 'KMSInternalException', times: 9 },
      reason: 'KMS failed (KMSInternalException)',
      tries: 2,
    },
    {
      name: 'no connection',
      fault: { kind: 'down' },
      reason: 'the connection failed (ECONNRESET)',
      tries: 2,
    },
  ] as const)('says KMS_UNAVAILABLE after two tries of $name', async ({ fault, reason, tries }) => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const before = kms.calls.GetPublicKey ?? 0
    kms.fail(fault)
    const message = await faultOf(portOf().getPublicKey(keyOf(id), SIGNAL()))
    const prefix = `KMS_UNAVAILABLE KMS GetPublicKey of ${id} in eu-central-1: `
    expect(message.slice(0, prefix.length)).toBe(prefix)
    expect(message.slice(prefix.length)).toEqual(reason)
    expect(kms.calls.GetPublicKey).toBe(before + tries)
  })

  test('says KMS_UNAVAILABLE after one try when no answer comes in time', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const before = kms.calls.GetPublicKey ?? 0
    kms.fail({ kind: 'slow', ms: 60_000 })
    const message = await faultOf(portOf({ callTimeoutMs: 50 }).getPublicKey(keyOf(id), SIGNAL()))
    expect(message).toBe(
      `KMS_UNAVAILABLE KMS GetPublicKey of ${id} in eu-central-1: no answer in time`,
    )
    expect(kms.calls.GetPublicKey).toBe(before + 1)
  })

  test('says DEADLINE_EXCEEDED when the request ends, before or during the call', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const expected = `DEADLINE_EXCEEDED KMS GetPublicKey of ${id} in eu-central-1: no time left`
    expect(await faultOf(portOf().getPublicKey(keyOf(id), AbortSignal.abort()))).toBe(expected)
    kms.fail({ kind: 'slow', ms: 60_000 })
    const controller = new AbortController()
    const calling = faultOf(portOf().getPublicKey(keyOf(id), controller.signal))
    controller.abort()
    expect(await calling).toBe(expected)
  })

  test('does not wait for credentials that never come', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const port = portOf({ credentials: () => new Promise(() => {}), callTimeoutMs: 50 })
    expect(await faultOf(port.getPublicKey(keyOf(id), SIGNAL()))).toBe(
      `KMS_UNAVAILABLE KMS GetPublicKey of ${id} in eu-central-1: no answer in time`,
    )
  })

  test.each([
    { type: 'NotFoundException', reason: 'no such key or alias' },
    { type: 'DisabledException', reason: 'the key is disabled' },
    {
      type: 'KMSInvalidStateException',
      reason: 'the state of the key does not allow it, such as pending deletion',
    },
    { type: 'InvalidKeyUsageException', reason: 'the key is not for this use' },
    { type: 'UnsupportedOperationException', reason: 'this kind of key cannot do it' },
    { type: 'InvalidArnException', reason: 'the ARN is not valid' },
    {
      type: 'AccessDeniedException',
      reason: 'access denied; grant the function this operation on the key',
    },
    { type: 'InvalidGrantTokenException', reason: 'the grant token is not valid' },
    { type: 'UnrecognizedClientException', reason: 'HTTP 400' },
  ])('says KMS_REFUSED after one try of $type', async ({ type, reason }) => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const before = kms.calls.GetPublicKey ?? 0
    kms.fail({ kind: 'error', type, times: 9 })
    expect(await faultOf(portOf().getPublicKey(keyOf(id), SIGNAL()))).toBe(
      `KMS_REFUSED KMS GetPublicKey of ${id} in eu-central-1: ${reason} (${type})`,
    )
    expect(kms.calls.GetPublicKey).toBe(before + 1)
  })

  test('says KMS_REFUSED when the key is of another region than the credentials are signed for', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    const key = { ...keyOf(id), region: 'us-east-1' }
    expect(await faultOf(portOf().getPublicKey(key, SIGNAL()))).toBe(
      `KMS_REFUSED KMS GetPublicKey of ${id} in us-east-1: HTTP 400 (InvalidSignatureException)`,
    )
  })

  test.each([
    { name: 'a page that is not JSON', status: 200, body: '<html>', code: 'KMS_UNAVAILABLE' },
    { name: 'an answer without a key', status: 200, body: '{}', code: 'KMS_UNAVAILABLE' },
    { name: 'a gateway that fails', status: 502, body: '<html>', code: 'KMS_UNAVAILABLE' },
    { name: 'a proxy that refuses', status: 403, body: '<html>', code: 'KMS_REFUSED' },
  ])('is not taken in by $name', async ({ status, body, code }) => {
    const server = createServer((_, response) => response.writeHead(status).end(body))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const key = { keyId: 'alias/a', region: 'eu-central-1', endpoint: `http://127.0.0.1:${port}` }
    const message = await faultOf(portOf().getPublicKey(key, SIGNAL()))
    server.close()
    server.closeAllConnections()
    expect(message.split(' ')[0]).toBe(code)
  })

  test('says nothing of its credentials in any error', async () => {
    const { id } = await made('ECC_NIST_P256', 'SIGN_VERIFY')
    for (const type of [
      'AccessDeniedException',
      'InvalidSignatureException',
      'ThrottlingException',
    ]) {
      kms.fail({ kind: 'error', type, times: 9 })
      const message = await faultOf(portOf().getPublicKey(keyOf(id), SIGNAL()))
      expect(message).not.toContain(SECRET)
      expect(message).not.toContain('AKIALOCAL')
    }
  })
})

describe('describeKmsError', () => {
  test.each([
    {
      name: 'a failed credential provider',
      thrown: named('CredentialsProviderError'),
      retry: false,
      reason: 'no AWS credentials could be loaded',
    },
    {
      name: 'a refused connection',
      thrown: Object.assign(new Error(), { code: 'ECONNREFUSED' }),
      retry: true,
      reason: 'the connection failed (ECONNREFUSED)',
    },
    {
      name: 'a failed fetch',
      thrown: new TypeError('fetch failed'),
      retry: true,
      reason: 'the connection failed (TypeError)',
    },
    {
      name: 'a status of 503',
      thrown: Object.assign(named('Odd'), { $metadata: { httpStatusCode: 503 } }),
      retry: true,
      reason: 'HTTP 503 (Odd)',
    },
    {
      name: 'a status of 429',
      thrown: Object.assign(named('Odd'), { $metadata: { httpStatusCode: 429 } }),
      retry: true,
      reason: 'HTTP 429 (Odd)',
    },
    {
      name: 'a thrown string',
      thrown: 'odd',
      retry: true,
      reason: 'no usable answer (unknown error)',
    },
    {
      name: 'an error whose name is prose',
      thrown: named('token=abc'),
      retry: true,
      reason: 'no usable answer (unknown error)',
    },
    {
      name: 'nothing',
      thrown: undefined,
      retry: true,
      reason: 'no usable answer (unknown error)',
    },
  ])('takes $name for an outage', ({ thrown, retry, reason }) => {
    expect(describeKmsError(thrown)).toEqual({ code: 'KMS_UNAVAILABLE', reason, retry })
  })

  function named(name: string): Error {
    return Object.assign(new Error('secret'), { name })
  }
})
