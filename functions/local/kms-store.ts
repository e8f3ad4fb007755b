import {
  createHmac,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  randomUUID,
} from 'node:crypto'
import { promisify } from 'node:util'
import { KmsError } from './kms-error.ts'

/** One key spec of KMS: how its material is made and what it can do. */
interface Spec {
  usages: readonly string[]
  /** Signing or MAC algorithms, in the order KMS lists them; the first is what cosign signs with. */
  algorithms: readonly string[]
  generate: () => Promise<Material>
}

type Material = { kind: 'pair'; privateKey: KeyObject } | { kind: 'mac'; secret: Buffer }

const generate = promisify(generateKeyPair)
const ec = (namedCurve: string) => async (): Promise<Material> => {
  const { privateKey } = await generate('ec', { namedCurve })
  return { kind: 'pair', privateKey }
}
const rsa = (modulusLength: number) => async (): Promise<Material> => {
  const { privateKey } = await generate('rsa', { modulusLength })
  return { kind: 'pair', privateKey }
}
const ed25519 = async (): Promise<Material> => {
  const { privateKey } = await generate('ed25519')
  return { kind: 'pair', privateKey }
}
const hmac = async (): Promise<Material> => ({ kind: 'mac', secret: randomBytes(32) })

const RSA_ALGORITHMS = [
  'RSASSA_PKCS1_V1_5_SHA_256',
  'RSASSA_PKCS1_V1_5_SHA_384',
  'RSASSA_PKCS1_V1_5_SHA_512',
  'RSASSA_PSS_SHA_256',
  'RSASSA_PSS_SHA_384',
  'RSASSA_PSS_SHA_512',
]
const EC_USAGES = ['SIGN_VERIFY', 'KEY_AGREEMENT']
const RSA_USAGES = ['SIGN_VERIFY', 'ENCRYPT_DECRYPT']

const SPECS: Readonly<Record<string, Spec>> = {
  RSA_2048: { usages: RSA_USAGES, algorithms: RSA_ALGORITHMS, generate: rsa(2048) },
  RSA_3072: { usages: RSA_USAGES, algorithms: RSA_ALGORITHMS, generate: rsa(3072) },
  RSA_4096: { usages: RSA_USAGES, algorithms: RSA_ALGORITHMS, generate: rsa(4096) },
  ECC_NIST_P256: { usages: EC_USAGES, algorithms: ['ECDSA_SHA_256'], generate: ec('P-256') },
  ECC_NIST_P384: { usages: EC_USAGES, algorithms: ['ECDSA_SHA_384'], generate: ec('P-384') },
  ECC_NIST_P521: { usages: EC_USAGES, algorithms: ['ECDSA_SHA_512'], generate: ec('P-521') },
  ECC_SECG_P256K1: { usages: EC_USAGES, algorithms: ['ECDSA_SHA_256'], generate: ec('secp256k1') },
  ECC_NIST_EDWARDS25519: {
    usages: ['SIGN_VERIFY'],
    algorithms: ['ED25519_SHA_512', 'ED25519_PH_SHA_512'],
    generate: ed25519,
  },
  HMAC_256: { usages: ['GENERATE_VERIFY_MAC'], algorithms: ['HMAC_SHA_256'], generate: hmac },
}

export interface KeyRequest {
  spec: string
  usage: string
  description?: string
  multiRegion?: boolean
  /** Its key policy lets other accounts use it. */
  shared?: boolean
}

/** A key of the local KMS. */
export interface LocalKey {
  id: string
  arn: string
  spec: string
  usage: string
  description: string
  multiRegion: boolean
  /** Whether other accounts may use it. */
  shared: boolean
  /** Signing or MAC algorithms; a test may shorten the list. */
  algorithms: readonly string[]
  state: 'Enabled' | 'Disabled' | 'PendingDeletion'
  createdAt: number
  deletionAt?: number
  material: Material
}

interface Alias {
  target: string
  createdAt: number
  updatedAt: number
}

/** What KMS says of whatever is not there, or not for the caller, in another account: it does not tell which. */
const FOREIGN =
  'not authorized to perform this on this resource because the resource does not exist in this Region, no resource-based policies allow access, or a resource-based policy explicitly denies access'

/** The keys and aliases of one account and region. */
export class KeyStore {
  readonly region: string
  readonly account: string
  readonly #keys = new Map<string, LocalKey>()
  readonly #aliases = new Map<string, Alias>()
  /** Other accounts in this region. */
  readonly #others = new Map<string, KeyStore>()

  constructor(region: string, account: string) {
    this.region = region
    this.account = account
  }

  async create(request: KeyRequest): Promise<LocalKey> {
    const spec = Object.hasOwn(SPECS, request.spec) ? SPECS[request.spec] : undefined
    if (spec === undefined) {
      throw new KmsError('UnsupportedOperationException', `${request.spec} is not emulated`)
    }
    if (!spec.usages.includes(request.usage)) {
      throw new KmsError(
        'ValidationException',
        `KeyUsage ${request.usage} is not compatible with KeySpec ${request.spec}`,
      )
    }
    const { multiRegion = false, description = '', shared = false } = request
    const id = multiRegion ? `mrk-${randomBytes(16).toString('hex')}` : randomUUID()
    const key: LocalKey = {
      id,
      arn: this.#arn(`key/${id}`),
      spec: request.spec,
      usage: request.usage,
      description,
      multiRegion,
      shared,
      algorithms: spec.algorithms,
      state: 'Enabled',
      createdAt: Date.now(),
      material: await spec.generate(),
    }
    this.#keys.set(id, key)
    return key
  }

  /** The replica here of a multi-region key of another region: the same id and material, a state of its own. */
  replicate(primary: LocalKey): LocalKey {
    if (!primary.multiRegion || this.#keys.has(primary.id)) {
      throw new KmsError(
        'UnsupportedOperationException',
        `${primary.arn} cannot be replicated here`,
      )
    }
    const arn = this.#arn(`key/${primary.id}`)
    const key: LocalKey = { ...primary, arn, state: 'Enabled', createdAt: Date.now() }
    this.#keys.set(key.id, key)
    return key
  }

  /** The keys of another account in this region. */
  other(account: string): KeyStore {
    const store = this.#others.get(account) ?? new KeyStore(this.region, account)
    this.#others.set(account, store)
    return store
  }

  /** The key behind a key id, key ARN, alias name or alias ARN, whatever its state. */
  find(keyId: string): LocalKey {
    if (!keyId.startsWith('arn:')) return this.#find(keyId, keyId)
    const { account, resource } = this.#parseArn(keyId)
    if (account === this.account) return this.#find(resource, keyId)
    const key = this.#others.get(account)?.shared(resource)
    if (key === undefined) throw new KmsError('AccessDeniedException', FOREIGN)
    return key
  }

  /** The key behind `key/…` or `alias/…` if there is one that other accounts may use. */
  shared(resource: string): LocalKey | undefined {
    const id = this.#aliases.get(resource)?.target ?? resource.replace(/^key\//, '')
    const key = this.#keys.get(id)
    return key?.shared === true ? key : undefined
  }

  #find(name: string, asked: string): LocalKey {
    if (name.startsWith('alias/')) return this.#key(this.#alias(name).target, asked)
    return this.#key(name.replace(/^key\//, ''), asked)
  }

  /** The key, once its state lets it be used. */
  findUsable(keyId: string): LocalKey {
    const key = this.find(keyId)
    if (key.state === 'Disabled') throw new KmsError('DisabledException', `${key.arn} is disabled.`)
    if (key.state === 'PendingDeletion') {
      throw new KmsError('KMSInvalidStateException', `${key.arn} is pending deletion.`)
    }
    return key
  }

  createAlias(name: string, keyId: string): void {
    this.#checkAliasName(name)
    if (this.#aliases.has(name)) {
      throw new KmsError(
        'AlreadyExistsException',
        `An alias with the name ${this.#arn(name)} already exists`,
      )
    }
    const now = Date.now()
    this.#aliases.set(name, { target: this.find(keyId).id, createdAt: now, updatedAt: now })
  }

  updateAlias(name: string, keyId: string): void {
    const alias = this.#alias(name)
    this.#aliases.set(name, { ...alias, target: this.find(keyId).id, updatedAt: Date.now() })
  }

  deleteAlias(name: string): void {
    this.#alias(name)
    this.#aliases.delete(name)
  }

  /** Aliases as ListAliases spells them, those of one key when it is given. */
  listAliases(keyId?: string): Record<string, unknown>[] {
    const target = keyId === undefined ? undefined : this.find(keyId).id
    return [...this.#aliases]
      .filter(([, alias]) => target === undefined || alias.target === target)
      .map(([name, alias]) => ({
        AliasName: name,
        AliasArn: this.#arn(name),
        TargetKeyId: alias.target,
        CreationDate: alias.createdAt / 1000,
        LastUpdatedDate: alias.updatedAt / 1000,
      }))
  }

  #alias(name: string): Alias {
    const alias = this.#aliases.get(name)
    if (alias === undefined) {
      throw new KmsError('NotFoundException', `Alias ${this.#arn(name)} is not found.`)
    }
    return alias
  }

  #key(id: string, asked: string): LocalKey {
    const key = this.#keys.get(id)
    if (key !== undefined) return key
    throw new KmsError('NotFoundException', `Key '${asked}' does not exist`)
  }

  #arn(resource: string): string {
    return `arn:aws:kms:${this.region}:${this.account}:${resource}`
  }

  /** Account and `key/…` or `alias/…` of an ARN in this region. */
  #parseArn(arn: string): { account: string; resource: string } {
    const [, , service, region, account = '', ...rest] = arn.split(':')
    const resource = rest.join(':')
    if (service !== 'kms' || !/^(key|alias)\//.test(resource)) {
      throw new KmsError('InvalidArnException', `Invalid arn ${arn}`)
    }
    if (region !== this.region) throw new KmsError('NotFoundException', `Invalid arn ${region}`)
    return { account, resource }
  }

  #checkAliasName(name: string): void {
    if (!/^alias\/[A-Za-z0-9/_-]{1,250}$/.test(name) || name.startsWith('alias/aws/')) {
      throw new KmsError(
        'InvalidAliasNameException',
        'Alias names begin with alias/ and not alias/aws/',
      )
    }
  }
}

/** The public half of a key pair. */
export function publicKeyOf({ material, arn }: LocalKey): KeyObject {
  if (material.kind === 'pair') return createPublicKey(material.privateKey)
  throw new KmsError('UnsupportedOperationException', `${arn} has no public key.`)
}

/** The private half of a key pair. */
export function privateKeyOf({ material, arn }: LocalKey): KeyObject {
  if (material.kind === 'pair') return material.privateKey
  throw new KmsError('UnsupportedOperationException', `${arn} has no private key.`)
}

/** HMAC-SHA-256 under a MAC key. */
export function macOf({ material, arn }: LocalKey, message: Uint8Array): Buffer {
  if (material.kind === 'mac') return createHmac('sha256', material.secret).update(message).digest()
  throw new KmsError('UnsupportedOperationException', `${arn} is no MAC key.`)
}
