import { createHash, sign, timingSafeEqual, verify } from 'node:crypto'
import { type DigestScheme, signDigest, verifyDigest } from './kms-digest.ts'
import { KmsError } from './kms-error.ts'
import { type KeyStore, type LocalKey, macOf, privateKeyOf, publicKeyOf } from './kms-store.ts'

/** The body of a request after `JSON.parse`: an object, its members unchecked. */
export type Input = Readonly<Record<string, unknown>>
export type Output = Readonly<Record<string, unknown>>

/** Message bytes one call may carry. */
const MAX_MESSAGE_BYTES = 4096

/** Every operation of the local KMS by its name on the wire. */
export const OPERATIONS: Readonly<
  Record<string, (store: KeyStore, input: Input) => Output | Promise<Output>>
> = {
  async CreateKey(store, input) {
    const key = await store.create({
      spec: optionalText(input, 'KeySpec') ?? 'SYMMETRIC_DEFAULT',
      usage: optionalText(input, 'KeyUsage') ?? 'ENCRYPT_DECRYPT',
      description: optionalText(input, 'Description') ?? '',
      multiRegion: input.MultiRegion === true,
    })
    return { KeyMetadata: metadataOf(key) }
  },

  DescribeKey: (store, input) => ({ KeyMetadata: metadataOf(keyOf(store, input)) }),

  GetPublicKey(store, input) {
    const key = store.findUsable(text(input, 'KeyId'))
    const spki = publicKeyOf(key).export({ type: 'spki', format: 'der' })
    return {
      KeyId: key.arn,
      PublicKey: spki.toString('base64'),
      CustomerMasterKeySpec: key.spec,
      KeySpec: key.spec,
      KeyUsage: key.usage,
      ...algorithmsOf(key),
    }
  },

  Sign(store, input) {
    const { key, algorithm, scheme, hash, message, isDigest } = signatureCall(store, input)
    const privateKey = privateKeyOf(key)
    const signature =
      scheme === 'ED25519'
        ? sign(null, message, privateKey)
        : signDigest(privateKey, scheme, isDigest ? message : hashed(message, hash))
    return {
      KeyId: key.arn,
      Signature: signature.toString('base64'),
      SigningAlgorithm: algorithm,
    }
  },

  Verify(store, input) {
    const { key, algorithm, scheme, hash, message, isDigest } = signatureCall(store, input)
    const signature = blob(input, 'Signature')
    const publicKey = publicKeyOf(key)
    const valid =
      scheme === 'ED25519'
        ? verify(null, message, publicKey, signature)
        : verifyDigest(publicKey, scheme, isDigest ? message : hashed(message, hash), signature)
    if (!valid) throw new KmsError('KMSInvalidSignatureException', '')
    return { KeyId: key.arn, SignatureValid: true, SigningAlgorithm: algorithm }
  },

  GenerateMac(store, input) {
    const { key, algorithm, message } = macCall(store, input)
    return { KeyId: key.arn, Mac: macOf(key, message).toString('base64'), MacAlgorithm: algorithm }
  },

  VerifyMac(store, input) {
    const { key, algorithm, message } = macCall(store, input)
    const expected = macOf(key, message)
    const actual = blob(input, 'Mac')
    if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) {
      throw new KmsError('KMSInvalidMacException', '')
    }
    return { KeyId: key.arn, MacValid: true, MacAlgorithm: algorithm }
  },

  CreateAlias(store, input) {
    store.createAlias(text(input, 'AliasName'), text(input, 'TargetKeyId'))
    return {}
  },

  UpdateAlias(store, input) {
    store.updateAlias(text(input, 'AliasName'), text(input, 'TargetKeyId'))
    return {}
  },

  DeleteAlias(store, input) {
    store.deleteAlias(text(input, 'AliasName'))
    return {}
  },

  ListAliases: (store, input) => ({
    Aliases: store.listAliases(optionalText(input, 'KeyId')),
    Truncated: false,
  }),

  DisableKey: (store, input) => setState(keyOf(store, input), 'Disabled'),
  EnableKey: (store, input) => setState(keyOf(store, input), 'Enabled'),

  ScheduleKeyDeletion(store, input) {
    const key = keyOf(store, input)
    const days = input.PendingWindowInDays ?? 30
    if (typeof days !== 'number' || days < 7 || days > 30) {
      throw new KmsError('ValidationException', 'PendingWindowInDays must be 7 to 30')
    }
    setState(key, 'PendingDeletion')
    key.deletionAt = Date.now() + days * 86_400_000
    return {
      KeyId: key.arn,
      DeletionDate: key.deletionAt / 1000,
      KeyState: key.state,
      PendingWindowInDays: days,
    }
  },
}

function setState(key: LocalKey, state: LocalKey['state']): Output {
  if (key.state === 'PendingDeletion') {
    throw new KmsError('KMSInvalidStateException', `${key.arn} is pending deletion.`)
  }
  key.state = state
  return {}
}

function keyOf(store: KeyStore, input: Input): LocalKey {
  return store.find(text(input, 'KeyId'))
}

function metadataOf(key: LocalKey): Output {
  return {
    AWSAccountId: key.arn.split(':')[4],
    KeyId: key.id,
    Arn: key.arn,
    CreationDate: key.createdAt / 1000,
    ...(key.deletionAt === undefined ? {} : { DeletionDate: key.deletionAt / 1000 }),
    Enabled: key.state === 'Enabled',
    Description: key.description,
    KeyUsage: key.usage,
    KeyState: key.state,
    Origin: 'AWS_KMS',
    KeyManager: 'CUSTOMER',
    CustomerMasterKeySpec: key.spec,
    KeySpec: key.spec,
    MultiRegion: key.multiRegion,
    ...algorithmsOf(key),
  }
}

function algorithmsOf({ usage, algorithms }: LocalKey): Output {
  switch (usage) {
    case 'SIGN_VERIFY':
      return { SigningAlgorithms: algorithms }
    case 'GENERATE_VERIFY_MAC':
      return { MacAlgorithms: algorithms }
    case 'ENCRYPT_DECRYPT':
      return { EncryptionAlgorithms: ['RSAES_OAEP_SHA_1', 'RSAES_OAEP_SHA_256'] }
    default:
      return { KeyAgreementAlgorithms: ['ECDH'] }
  }
}

interface SignatureCall {
  key: LocalKey
  algorithm: string
  scheme: DigestScheme | 'ED25519'
  /** `sha256`, … */
  hash: string
  message: Buffer
  isDigest: boolean
}

/** The checked parameters that Sign and Verify share. */
function signatureCall(store: KeyStore, input: Input): SignatureCall {
  const algorithm = text(input, 'SigningAlgorithm')
  const key = usableFor(store, input, 'SIGN_VERIFY', algorithm)
  const message = messageOf(input)
  const isDigest = (optionalText(input, 'MessageType') ?? 'RAW') === 'DIGEST'
  const [, scheme = '', bits = ''] = /^(.+)_SHA_(\d+)$/.exec(algorithm) ?? []
  if (scheme === 'ED25519_PH') {
    throw new KmsError('UnsupportedOperationException', `${algorithm} is not emulated`)
  }
  if (scheme === 'ED25519' && isDigest) {
    throw new KmsError('ValidationException', `${algorithm} requires MessageType RAW.`)
  }
  if (isDigest && message.length !== Number(bits) / 8) {
    throw new KmsError(
      'ValidationException',
      `Digest is invalid length for algorithm ${algorithm}.`,
    )
  }
  // The name is one of the key's own algorithms, so nothing but these can be in front of the hash.
  return {
    key,
    algorithm,
    scheme: scheme as SignatureCall['scheme'],
    hash: `sha${bits}`,
    message,
    isDigest,
  }
}

function macCall(
  store: KeyStore,
  input: Input,
): { key: LocalKey; algorithm: string; message: Buffer } {
  const algorithm = text(input, 'MacAlgorithm')
  const key = usableFor(store, input, 'GENERATE_VERIFY_MAC', algorithm)
  return { key, algorithm, message: messageOf(input) }
}

function usableFor(store: KeyStore, input: Input, usage: string, algorithm: string): LocalKey {
  const key = store.findUsable(text(input, 'KeyId'))
  if (key.usage !== usage) {
    throw new KmsError(
      'InvalidKeyUsageException',
      `${key.arn} key usage is ${key.usage} which is not valid.`,
    )
  }
  if (!key.algorithms.includes(algorithm)) {
    throw new KmsError(
      'InvalidKeyUsageException',
      `Algorithm ${algorithm} is incompatible with key spec ${key.spec}.`,
    )
  }
  return key
}

function messageOf(input: Input): Buffer {
  const message = blob(input, 'Message')
  if (message.length === 0 || message.length > MAX_MESSAGE_BYTES) {
    throw new KmsError('ValidationException', `Message must have 1 to ${MAX_MESSAGE_BYTES} bytes`)
  }
  return message
}

function hashed(message: Uint8Array, hash: string): Buffer {
  return createHash(hash).update(message).digest()
}

function text(input: Input, name: string): string {
  const value = optionalText(input, name)
  if (value === undefined || value === '') {
    throw new KmsError(
      'ValidationException',
      `1 validation error detected: ${name} must not be null`,
    )
  }
  return value
}

function optionalText(input: Input, name: string): string | undefined {
  const value = Object.hasOwn(input, name) ? input[name] : undefined
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  throw new KmsError('SerializationException', `${name} is not a string`)
}

function blob(input: Input, name: string): Buffer {
  return Buffer.from(text(input, name), 'base64')
}
