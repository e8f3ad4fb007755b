import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { utf8 } from '#shared/bytes.ts'
import { canonicalJson, type JsonValue } from '#shared/json.ts'
import { closeServer, listenLocally, pour } from './loopback.ts'

/** The top-level roles of TUF. */
export type TufRole = 'root' | 'timestamp' | 'snapshot' | 'targets'

/** A role's key. */
export interface TufKey {
  id: string
  publicKey: string
  privateKey: KeyObject
}

/** What may be published otherwise than it should. */
export interface Publication {
  /** Ends of roles, RFC 3339. */
  expires?: Partial<Record<TufRole, string>>
  /** Keys that sign a role instead of its own. */
  signedBy?: Partial<Record<TufRole, TufKey>>
  /** Versions of roles instead of the next ones. */
  versions?: Partial<Record<TufRole, number>>
}

/** A signed document of JSON. */
type Signed = { [key: string]: JsonValue }

const FOREVER = '2999-12-31T00:00:00Z'
const SPECIFICATION = '1.0.31'

/** A new Ed25519 key as TUF names it. */
export function newTufKey(): TufKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  // The key itself is the last 32 bytes of its DER form.
  const hex = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')
  return { id: hexDigest(utf8(canonicalJson(keyDocument(hex)))), publicKey: hex, privateKey }
}

const keyDocument = (hex: string) => ({
  keytype: 'ed25519',
  scheme: 'ed25519',
  keyval: { public: hex },
})

/**
 * A TUF repository with consistent snapshots in memory, one key for each role, signed with real keys. Whatever is wrong with a publication
 * was signed like that.
 */
export class TufRepository {
  /** Files by their path below the mirror's address. */
  readonly files = new Map<string, Uint8Array>()
  readonly keys: Record<TufRole, TufKey> = {
    root: newTufKey(),
    timestamp: newTufKey(),
    snapshot: newTufKey(),
    targets: newTufKey(),
  }
  readonly #versions: Record<TufRole, number> = { root: 0, timestamp: 0, snapshot: 0, targets: 0 }
  /** The first root: what clients begin with. */
  readonly root: Uint8Array

  constructor() {
    this.root = this.publishRoot()
  }

  /** The next root, with these keys instead of the ones before; it is signed by both. */
  publishRoot(keys: Partial<Record<TufRole, TufKey>> = {}, options: Publication = {}): Uint8Array {
    const signers = [this.keys.root, keys.root].filter((key) => key !== undefined)
    Object.assign(this.keys, keys)
    const all = Object.values(this.keys)
    const roles = Object.entries(this.keys).map(([role, { id }]) => [
      role,
      { keyids: [id], threshold: 1 },
    ])
    const { bytes, version } = this.#sign('root', options, signers, {
      consistent_snapshot: true,
      keys: Object.fromEntries(all.map(({ id, publicKey }) => [id, keyDocument(publicKey)])),
      roles: Object.fromEntries(roles),
    })
    this.files.set(`${version}.root.json`, bytes)
    return bytes
  }

  /** New metadata of the other three roles for these targets, and the targets. */
  publish(targets: Readonly<Record<string, Uint8Array>>, options: Publication = {}): void {
    const described = Object.entries(targets).map(([name, bytes]) => [name, describe(bytes)])
    for (const [name, bytes] of Object.entries(targets)) {
      this.files.set(`targets/${hexDigest(bytes)}.${name}`, bytes)
    }
    const list = this.#publishRole('targets', options, { targets: Object.fromEntries(described) })
    const meta = { 'targets.json': list }
    const snapshot = this.#publishRole('snapshot', options, { meta })
    this.#publishRole('timestamp', options, { meta: { 'snapshot.json': snapshot } })
  }

  #publishRole(role: TufRole, options: Publication, content: Signed): Signed {
    const signer = options.signedBy?.[role] ?? this.keys[role]
    const { bytes, version } = this.#sign(role, options, [signer], content)
    this.files.set(role === 'timestamp' ? 'timestamp.json' : `${version}.${role}.json`, bytes)
    return { version, ...describe(bytes) }
  }

  #sign(role: TufRole, options: Publication, keys: readonly TufKey[], content: Signed) {
    const version = options.versions?.[role] ?? this.#versions[role] + 1
    this.#versions[role] = version
    const signed = {
      _type: role,
      spec_version: SPECIFICATION,
      version,
      expires: options.expires?.[role] ?? FOREVER,
      ...content,
    }
    // For what is signed here the canonical form of TUF and RFC 8785 agree: it holds no character that either escapes.
    const message = utf8(canonicalJson(signed))
    const signatures = keys.map(({ id, privateKey }) => ({
      keyid: id,
      sig: sign(null, message, privateKey).toString('hex'),
    }))
    return { bytes: utf8(JSON.stringify({ signatures, signed })), version }
  }
}

function describe(bytes: Uint8Array): Signed {
  return { length: bytes.length, hashes: { sha256: hexDigest(bytes) } }
}

const hexDigest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** A mirror of a repository on loopback. */
export interface TufMirror {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string
  /** Paths asked for so far. */
  readonly requests: string[]
  /** How a path is answered otherwise than with its file: an HTTP status, or bytes without an end. */
  readonly faults: Map<string, number | 'endless'>
  close(): Promise<void>
}

/** A mirror that serves the repository's files as they are at each request. */
export async function startTufMirror({ files }: TufRepository): Promise<TufMirror> {
  const requests: string[] = []
  const faults: TufMirror['faults'] = new Map()
  const server = createServer((request, response) => {
    const name = decodeURIComponent((request.url ?? '/').slice(1))
    requests.push(name)
    const fault = faults.get(name)
    if (fault === 'endless') return pour(response)
    const file = files.get(name)
    const status = fault ?? (file === undefined ? 404 : 200)
    response.writeHead(status).end(status === 200 ? file : '')
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    requests,
    faults,
    close: () => closeServer(server),
  }
}
