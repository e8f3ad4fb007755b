import { createPublicKey, generateKeyPair, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { signDigest, verifyDigest } from './kms-digest.ts'

/** An error the way Vault answers it: an HTTP status and a list of messages. */
export class VaultError extends Error {
  readonly status: number
  readonly errors: readonly string[]

  constructor(status: number, ...errors: readonly string[]) {
    super(errors.join('; '))
    this.status = status
    this.errors = errors
  }
}

/** How keys of a type are made, and what `keys.<version>.name` calls them. */
const TYPES: Readonly<Record<string, { label: string; generate: () => Promise<KeyObject> }>> = {
  'ecdsa-p256': { label: 'P-256', generate: () => ec('P-256') },
  'ecdsa-p384': { label: 'P-384', generate: () => ec('P-384') },
  'ecdsa-p521': { label: 'P-521', generate: () => ec('P-521') },
  ed25519: { label: 'ed25519', generate: ed25519 },
  'rsa-2048': { label: 'rsa-2048', generate: () => rsa(2048) },
  'rsa-3072': { label: 'rsa-3072', generate: () => rsa(3072) },
  'rsa-4096': { label: 'rsa-4096', generate: () => rsa(4096) },
}
const SYMMETRIC = ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'hmac']

const HASH_BYTES: Readonly<Record<string, number>> = {
  'sha2-256': 32,
  'sha2-384': 48,
  'sha2-512': 64,
}

const generate = promisify(generateKeyPair)

async function ec(namedCurve: string): Promise<KeyObject> {
  return (await generate('ec', { namedCurve })).privateKey
}

async function rsa(modulusLength: number): Promise<KeyObject> {
  return (await generate('rsa', { modulusLength })).privateKey
}

async function ed25519(): Promise<KeyObject> {
  return (await generate('ed25519')).privateKey
}

interface Version {
  createdAt: Date
  /** None for symmetric keys. */
  privateKey?: KeyObject
}

/** What sign and verify are asked, after the names of the API. */
export interface TransitCall {
  input: Buffer
  prehashed: boolean
  hashAlgorithm: string
  signatureAlgorithm: string
}

/** One key of a transit engine with all its versions. */
export class TransitKey {
  readonly name: string
  readonly type: string
  readonly derived: boolean
  deletionAllowed = false
  softDeleted = false
  minDecryptionVersion = 1
  readonly #versions: Version[] = []

  private constructor(name: string, type: string, derived: boolean) {
    this.name = name
    this.type = type
    this.derived = derived
  }

  /** A key with its first version. */
  static async create(name: string, type: string, derived = false): Promise<TransitKey> {
    if (!Object.hasOwn(TYPES, type) && !SYMMETRIC.includes(type)) {
      throw new VaultError(400, `unknown key type ${type}`)
    }
    const key = new TransitKey(name, type, derived)
    await key.rotate()
    return key
  }

  get latestVersion(): number {
    return this.#versions.length
  }

  async rotate(): Promise<void> {
    const privateKey = await TYPES[this.type]?.generate()
    this.#versions.push({ createdAt: new Date(), ...(privateKey && { privateKey }) })
  }

  /** `data` of GET keys/:name. */
  describe(): object {
    const isAsymmetric = Object.hasOwn(TYPES, this.type)
    const shown = this.#versions.map(({ createdAt, privateKey }) =>
      privateKey === undefined
        ? Math.floor(createdAt.getTime() / 1000)
        : {
            certificate_chain: '',
            creation_time: createdAt.toISOString(),
            name: TYPES[this.type]?.label,
            public_key: this.derived ? '' : spell(createPublicKey(privateKey), this.type),
          },
    )
    const keys = shown.map((value, index) => [String(index + 1), value] as const)
    return {
      allow_plaintext_backup: false,
      auto_rotate_period: 0,
      deletion_allowed: this.deletionAllowed,
      derived: this.derived,
      exportable: false,
      imported_key: false,
      keys: Object.fromEntries(keys.filter((_, index) => index + 1 >= this.minDecryptionVersion)),
      latest_version: this.latestVersion,
      min_available_version: 0,
      min_decryption_version: this.minDecryptionVersion,
      min_encryption_version: 0,
      name: this.name,
      ...(this.softDeleted && { soft_deleted: true }),
      supports_decryption: !/^(ecdsa|ed25519|hmac)/.test(this.type),
      supports_derivation: /^(aes|chacha|ed25519)/.test(this.type),
      supports_encryption: !/^(ecdsa|ed25519|hmac)/.test(this.type),
      supports_signing: isAsymmetric,
      type: this.type,
    }
  }

  sign(call: TransitCall): object {
    const version = this.latestVersion
    const signature = this.#sign(this.#privateKey(version), call)
    return {
      key_version: version,
      signature: `vault:v${version}:${signature.toString('base64')}`,
    }
  }

  verify(prefixed: string, call: TransitCall): object {
    const [, digits, encoded = ''] = /^vault:v(\d+):(.*)$/.exec(prefixed) ?? []
    if (digits === undefined) throw new VaultError(400, 'invalid signature: no prefix')
    const version = Number(digits)
    if (version > this.latestVersion) {
      throw new VaultError(400, 'invalid signature: version is too new')
    }
    if (version < this.minDecryptionVersion) {
      throw new VaultError(400, 'signature version is too old (disallowed by policy)')
    }
    const signature = Buffer.from(encoded, 'base64')
    const key = createPublicKey(this.#privateKey(version))
    if (this.type === 'ed25519') return { valid: verify(null, call.input, key, signature) }
    const { digest, scheme } = this.#digest(call)
    return { valid: verifyDigest(key, scheme, digest, signature) }
  }

  #sign(key: KeyObject, call: TransitCall): Buffer {
    // The digest too, when it is told that this is one: the key hashes whatever it is given.
    if (this.type === 'ed25519') return sign(null, call.input, key)
    const { digest, scheme } = this.#digest(call)
    return signDigest(key, scheme, digest)
  }

  #digest({ input, prehashed, hashAlgorithm, signatureAlgorithm }: TransitCall) {
    const bytes = Object.hasOwn(HASH_BYTES, hashAlgorithm) ? HASH_BYTES[hashAlgorithm] : undefined
    if (bytes === undefined) throw new VaultError(400, `invalid hash algorithm "${hashAlgorithm}"`)
    const isRsa = this.type.startsWith('rsa-')
    if (!prehashed || (isRsa && signatureAlgorithm !== 'pkcs1v15')) {
      throw new VaultError(400, 'only prehashed input and pkcs1v15 are emulated')
    }
    if (isRsa && input.length !== bytes) {
      throw new VaultError(500, '1 error occurred:\n\t* input must be hashed message\n\n')
    }
    return { digest: input, scheme: isRsa ? 'RSASSA_PKCS1_V1_5' : 'ECDSA' } as const
  }

  #privateKey(version: number): KeyObject {
    const key = this.#versions[version - 1]?.privateKey
    if (key !== undefined) return key
    throw new VaultError(400, `key type ${this.type} does not support verification`)
  }
}

/** PEM, or the base64 of the raw key for Ed25519. */
function spell(publicKey: KeyObject, type: string): string {
  if (type !== 'ed25519') return publicKey.export({ type: 'spki', format: 'pem' }).toString()
  return publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64')
}
