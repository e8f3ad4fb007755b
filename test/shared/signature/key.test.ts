import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Bytes, concat, fromBase64, fromHex, utf8 } from '#shared/bytes.ts'
import type { AdmissionError } from '#shared/errors.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { publicKeyFromPem } from '#shared/signature/pem.ts'
import type { HashAlgorithm } from '#shared/signature/types.ts'
import { derOf, type KeyKind, keyPair, pemOf } from './setup.ts'

const MESSAGE = utf8('what was signed')
const HASHES: HashAlgorithm[] = ['sha256', 'sha384', 'sha512']

/** As cosign signs with a key of this kind. */
function signWith(privateKey: KeyObject, hash: HashAlgorithm): Bytes {
  const algorithm = privateKey.asymmetricKeyType === 'ed25519' ? null : hash
  return new Uint8Array(sign(algorithm, MESSAGE, privateKey))
}

async function faultOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: AdmissionError) => `${error.code} ${error.message}`,
  )
}

describe('a verifying key', () => {
  // Which hashes verify when the policy names none: the curve's own, then SHA-256 (cosign 2).
  test.each<{ kind: KeyKind; name: string; byDefault: HashAlgorithm[] }>([
    { kind: 'P-256', name: 'ECDSA P-256', byDefault: ['sha256'] },
    { kind: 'P-384', name: 'ECDSA P-384', byDefault: ['sha256', 'sha384'] },
    { kind: 'P-521', name: 'ECDSA P-521', byDefault: ['sha256', 'sha512'] },
    { kind: 'RSA 2048', name: 'RSA 2048', byDefault: ['sha256'] },
    { kind: 'RSA 3072', name: 'RSA 3072', byDefault: ['sha256'] },
  ])('of kind $kind verifies $byDefault, or exactly the hash the policy names', async (row) => {
    const { publicKey, privateKey } = keyPair(row.kind)
    const key = await importVerifyingKey(derOf(publicKey))
    expect(key.name).toBe(row.name)
    for (const signed of HASHES) {
      const signature = signWith(privateKey, signed)
      const plain = await key.verify(MESSAGE, signature)
      expect(plain?.hash).toBe(row.byDefault.includes(signed) ? signed : undefined)
      for (const named of HASHES) {
        const verified = await key.verify(MESSAGE, signature, named)
        expect(verified?.hash).toBe(named === signed ? signed : undefined)
      }
    }
  })

  test('of kind Ed25519 has its hash built in, whatever the policy names', async () => {
    const { publicKey, privateKey } = keyPair('Ed25519')
    const key = await importVerifyingKey(derOf(publicKey))
    const signature = signWith(privateKey, 'sha256')
    expect(await key.verify(MESSAGE, signature)).toEqual({ scheme: 'ED25519' })
    expect(await key.verify(MESSAGE, signature, 'sha512')).toEqual({ scheme: 'ED25519' })
    expect(await key.verify(utf8('another message'), signature)).toBeUndefined()
  })

  test.each<{ kind: KeyKind }>([
    { kind: 'P-256' },
    { kind: 'P-384' },
    { kind: 'P-521' },
    { kind: 'RSA 2048' },
    { kind: 'Ed25519' },
  ])(
    'of kind $kind refuses a signature that was touched, cut, extended or made by another key',
    async ({ kind }) => {
      const { publicKey, privateKey } = keyPair(kind)
      const key = await importVerifyingKey(derOf(publicKey))
      const good = signWith(privateKey, 'sha256')
      const touched = good.slice()
      touched[good.length - 1] = touched[good.length - 1]! ^ 1
      const foreign = signWith(keyPair(kind, 'theirs').privateKey, 'sha256')
      expect(await key.verify(MESSAGE, good)).toBeDefined()
      for (const bad of [touched, good.slice(0, -1), concat(good, new Uint8Array(1)), foreign]) {
        expect(await key.verify(MESSAGE, bad)).toBeUndefined()
      }
      expect(await key.verify(MESSAGE, new Uint8Array())).toBeUndefined()
      expect(await key.verify(MESSAGE, new Uint8Array(1024 * 1024))).toBeUndefined()
      expect(await key.verify(utf8('another message'), good)).toBeUndefined()
    },
  )

  test('of kind RSA keeps PKCS#1 v1.5 and PSS apart', async () => {
    const { publicKey, privateKey } = keyPair('RSA 2048')
    const padding = constants.RSA_PKCS1_PSS_PADDING
    const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
    const pss = new Uint8Array(sign('sha256', MESSAGE, { key: privateKey, padding, saltLength }))
    const pkcs1 = signWith(privateKey, 'sha256')
    const plainKey = await importVerifyingKey(derOf(publicKey))
    const pssKey = await importVerifyingKey(derOf(publicKey), 'RSASSA_PSS')
    expect(await plainKey.verify(MESSAGE, pkcs1)).toEqual({
      scheme: 'RSASSA_PKCS1_V1_5',
      hash: 'sha256',
    })
    expect(await plainKey.verify(MESSAGE, pss)).toBeUndefined()
    expect(await pssKey.verify(MESSAGE, pss)).toEqual({ scheme: 'RSASSA_PSS', hash: 'sha256' })
    expect(await pssKey.verify(MESSAGE, pkcs1)).toBeUndefined()
  })

  test('does not change when the bytes it was made from do', async () => {
    const { publicKey, privateKey } = keyPair('P-256')
    const spki = derOf(publicKey)
    const importing = importVerifyingKey(spki)
    spki.fill(0)
    const key = await importing
    expect(await key.verify(MESSAGE, signWith(privateKey, 'sha256'))).toBeDefined()
  })
})

describe('importVerifyingKey', () => {
  const SUPPORTED = 'supported are ECDSA P-256, P-384, P-521, RSA and Ed25519'
  const pair = (make: () => { publicKey: KeyObject }) => () => derOf(make().publicKey)

  test.each<{ name: string; spki: () => Bytes; found: string }>([
    {
      name: 'secp256k1',
      spki: pair(() => generateKeyPairSync('ec', { namedCurve: 'secp256k1' })),
      found: `ECDSA secp256k1; ${SUPPORTED}`,
    },
    {
      name: 'P-224',
      spki: pair(() => generateKeyPairSync('ec', { namedCurve: 'secp224r1' })),
      found: `ECDSA P-224; ${SUPPORTED}`,
    },
    {
      name: 'Ed448',
      spki: pair(() => generateKeyPairSync('ed448')),
      found: `Ed448; ${SUPPORTED}`,
    },
    {
      name: 'X25519',
      spki: pair(() => generateKeyPairSync('x25519')),
      found: `X25519; ${SUPPORTED}`,
    },
    {
      name: 'an RSASSA-PSS key',
      spki: pair(() => generateKeyPairSync('rsa-pss', { modulusLength: 2048 })),
      found: `an RSASSA-PSS key (use a plain RSA key); ${SUPPORTED}`,
    },
    {
      name: 'RSA of 1,024 bits',
      spki: pair(() => generateKeyPairSync('rsa', { modulusLength: 1024 })),
      found: 'an RSA key of 1024 bits, expected 2048 to 8192',
    },
    {
      name: 'RSA of 2,047 bits',
      spki: () => rsaOf(2047),
      found: 'an RSA key of 2047 bits, expected 2048 to 8192',
    },
    {
      name: 'RSA of 8,193 bits',
      spki: () => rsaOf(8193),
      found: 'an RSA key of 8193 bits, expected 2048 to 8192',
    },
    {
      name: 'RSA with exponent 3',
      spki: () => rsaOf(2048, '03'),
      found: 'an RSA key whose exponent is not 65537',
    },
    {
      name: 'RSA with an exponent spelled with a needless zero',
      spki: () => rsaOf(2048, '00010001'),
      found: 'an RSA key whose exponent is not 65537',
    },
    {
      name: 'a point that is not on the curve',
      spki: () => damaged(derOf(keyPair('P-256').publicKey)),
      found: 'not a valid ECDSA P-256 key',
    },
    {
      name: 'a compressed point',
      spki: () =>
        fromHex(`3039301306072a8648ce3d020106082a8648ce3d03010703220002${'11'.repeat(32)}`)!,
      found: 'an ECDSA P-256 key whose point is not in uncompressed form',
    },
    {
      name: 'trailing bytes',
      spki: () => concat(derOf(keyPair('P-256').publicKey), new Uint8Array(1)),
      found: 'bytes that are not a DER SubjectPublicKeyInfo',
    },
    {
      name: 'junk',
      spki: () => utf8('junk'),
      found: 'bytes that are not a DER SubjectPublicKeyInfo',
    },
    {
      name: 'nothing',
      spki: () => new Uint8Array(),
      found: 'bytes that are not a DER SubjectPublicKeyInfo',
    },
  ])('refuses $name', async ({ spki, found }) => {
    const message = await faultOf(importVerifyingKey(spki()))
    expect(message.replace('found ', '')).toBe(`KEY_INVALID public key: ${found}`)
  })

  test('takes RSA of exactly 2,048 and of 8,192 bits', async () => {
    expect((await importVerifyingKey(rsaOf(2048))).name).toBe('RSA 2048')
    expect((await importVerifyingKey(rsaOf(8192))).name).toBe('RSA 8192')
  })
})

describe('publicKeyFromPem', () => {
  const good = pemOf(keyPair('P-256').publicKey)
  const privateKey = keyPair('P-256').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const body = good.split('\n').slice(1, -2).join('')

  test('reads a key with LF, CRLF, or in one line, and white space around it', () => {
    const der = derOf(keyPair('P-256').publicKey)
    expect(publicKeyFromPem(good)).toEqual(der)
    expect(publicKeyFromPem(`\n  ${good.replaceAll('\n', '\r\n')}\n`)).toEqual(der)
    expect(publicKeyFromPem(`-----BEGIN PUBLIC KEY-----${body}-----END PUBLIC KEY-----`)).toEqual(
      der,
    )
  })

  test.each([
    { name: 'nothing', pem: ' \n', found: 'nothing' },
    { name: 'junk', pem: 'junk', found: 'no PEM block (-----BEGIN PUBLIC KEY-----)' },
    { name: 'bare base64', pem: body, found: 'no PEM block (-----BEGIN PUBLIC KEY-----)' },
    {
      name: 'a KMS reference',
      pem: 'awskms:///alias/a',
      found: 'a reference; references belong in key.kms',
    },
    {
      name: 'a private key',
      pem: privateKey,
      found: 'a private key; take it out, replace the key pair and give the public key',
    },
    {
      name: 'a private key after a public one',
      pem: good + privateKey,
      found: 'a private key; take it out, replace the key pair and give the public key',
    },
    {
      name: 'half a private key',
      pem: privateKey.slice(0, 100),
      found: 'a damaged private key; take it out',
    },
    {
      name: 'a certificate',
      pem: `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----`,
      found: 'a certificate; give its public key (openssl x509 -pubkey -noout)',
    },
    {
      name: 'a PKCS#1 key',
      pem: keyPair('RSA 2048').publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
      found: 'a PKCS#1 key; convert it with openssl rsa -RSAPublicKey_in -pubout',
    },
    {
      name: 'another kind of block',
      pem: `-----BEGIN PGP MESSAGE-----\n${body}\n-----END PGP MESSAGE-----`,
      found: 'a PEM block of type "PGP MESSAGE", expected PUBLIC KEY',
    },
    {
      name: 'two keys',
      pem: good + good,
      found: '2 PEM blocks, expected one; use an attestor per key',
    },
    { name: 'text before the key', pem: `key:\n${good}`, found: 'text outside the PEM block' },
    { name: 'text after the key', pem: `${good}junk`, found: 'text outside the PEM block' },
    { name: 'damaged base64', pem: good.replace('M', '!'), found: 'the PEM block is not base64' },
    {
      name: 'base64 without its padding',
      pem: good.replaceAll('=', ''),
      found: 'the PEM block is not base64',
    },
    {
      name: 'BEGIN and END that differ',
      pem: good.replace('END PUBLIC KEY', 'END PUBLIC  KEY'),
      found: 'the BEGIN and END lines of the PEM block differ',
    },
    {
      name: 'far too much',
      pem: 'A'.repeat(20_000),
      found: '20000 characters, at most 16384 are read',
    },
  ])('refuses $name', ({ pem, found }) => {
    const read = () => publicKeyFromPem(pem)
    expect(read).toThrow(
      expect.objectContaining({ code: 'KEY_INVALID', message: `public key: found ${found}` }),
    )
  })

  test('never repeats what may be a private key', async () => {
    const secret = privateKey.split('\n')[1]!
    for (const pem of [privateKey, privateKey.slice(0, 90), good + privateKey]) {
      const message = await faultOf(Promise.resolve().then(() => publicKeyFromPem(pem)))
      expect(message).not.toContain(secret.slice(0, 20))
    }
  })

  test('works with bytes.ts: what it reads is the base64 between the lines', () => {
    expect(publicKeyFromPem(good)).toEqual(fromBase64(body))
  })
})

/** A well-formed RSA key of any size; nobody holds a private key for it. */
function rsaOf(bits: number, exponent = '010001'): Bytes {
  const magnitude = new Uint8Array(Math.ceil(bits / 8)).fill(0xa5)
  magnitude[0] = 1 << ((bits - 1) % 8)
  const modulus = magnitude[0]! >= 0x80 ? concat(new Uint8Array(1), magnitude) : magnitude
  const key = tlv(0x30, tlv(0x02, modulus), tlv(0x02, fromHex(exponent)!))
  const algorithm = fromHex('300d06092a864886f70d0101010500')!
  return tlv(0x30, algorithm, tlv(0x03, new Uint8Array(1), key))
}

function tlv(tag: number, ...parts: Uint8Array[]): Bytes {
  const content = concat(...parts)
  const { length } = content
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return concat(new Uint8Array([tag, ...head]), content)
}

function damaged(spki: Bytes): Bytes {
  spki[spki.length - 1] = spki[spki.length - 1]! ^ 1
  return spki
}
