import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import * as der from '#functions/local/der.ts'
import { concat, toBase64, toHex, utf8 } from '#shared/bytes.ts'
import { preAuthenticationEncoding } from '#shared/signature/dsse.ts'

/**
 * A whole Sigstore of its own, minted in memory: certificate authority, certificate log, transparency logs of both generations and
 * timestamp authority, with what each of them signs. Whatever a bundle says wrong is said with real signatures.
 */

/** Seconds: when everything here is signed. */
export const SIGNED_AT = 1_750_000_000
export const ISSUER = 'https://issuer.example.com'
export const SUBJECT = 'https://ci.example.com/shop/api/release.yml@refs/heads/main'
export const ARTIFACT = utf8('an artifact')
const HOUR = 3600

const OID = {
  codeSigning: '1.3.6.1.5.5.7.3.3',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  timeStamping: '1.3.6.1.5.5.7.3.8',
}

interface Pair {
  publicKey: KeyObject
  privateKey: KeyObject
}

const newPair = (namedCurve = 'P-256'): Pair => generateKeyPairSync('ec', { namedCurve })
const sha256 = (bytes: Uint8Array, hash = 'sha256') =>
  new Uint8Array(createHash(hash).update(bytes).digest())
const spkiOf = ({ publicKey }: Pair) =>
  new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }))
const ecdsa = (bytes: Uint8Array, { privateKey }: Pair, hash = 'sha256') =>
  new Uint8Array(sign(privateKey.asymmetricKeyType === 'ed25519' ? null : hash, bytes, privateKey))

// --- certificates

const ECDSA_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'))
const SHA256 = der.sequence(der.oid('2.16.840.1.101.3.4.2.1'))
const nameOf = (text: string) =>
  der.sequence(
    ...(text === '' ? [] : [der.set(der.sequence(der.oid('2.5.4.3'), der.utf8String(text)))]),
  )
const extension = (oid: string, value: Uint8Array, critical = false) =>
  der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octets(value))

interface Fields {
  serial: number
  issuer: string
  subject: string
  key: Pair
  from: number
  until: number
  extensions: readonly Uint8Array[]
}

function tbs({ serial, issuer, subject, key, from, until, extensions }: Fields): Uint8Array {
  return der.sequence(
    der.context(0, der.integer(Uint8Array.of(2))),
    der.integer(Uint8Array.of(serial)),
    ECDSA_SHA256,
    nameOf(issuer),
    der.sequence(der.time(new Date(from * 1000)), der.time(new Date(until * 1000))),
    nameOf(subject),
    spkiOf(key),
    der.context(3, der.sequence(...extensions)),
  )
}

const certificate = (body: Uint8Array, key: Pair) =>
  der.sequence(body, ECDSA_SHA256, der.bits(ecdsa(body, key)))

const CA_EXTENSIONS = [
  extension('2.5.29.19', der.sequence(der.boolean(true)), true),
  extension('2.5.29.15', der.bits(Uint8Array.of(0x06), 1), true),
]
const usage = (...oids: readonly string[]) => der.sequence(...oids.map(der.oid))

/** Names of a certificate; `other` is Fulcio's own kind. */
export interface Names {
  uri?: string[]
  email?: string[]
  other?: string[]
}

function generalNames({ uri = [], email = [], other = [] }: Names): Uint8Array {
  return der.sequence(
    ...email.map((each) => der.contextPrimitive(1, utf8(each))),
    ...uri.map((each) => der.contextPrimitive(6, utf8(each))),
    ...other.map((each) =>
      der.context(0, der.oid('1.3.6.1.4.1.57264.1.7'), der.context(0, der.utf8String(each))),
    ),
  )
}

// --- the world

export interface LeafOptions {
  names?: Names
  /** Fulcio's second issuer extension; null leaves it out. */
  issuer?: string | null
  /** Fulcio's first one. */
  issuerV1?: string
  usages?: (keyof typeof OID)[]
  keyUsage?: number
  isCa?: boolean
  selfIssued?: boolean
  from?: number
  until?: number
  extra?: Uint8Array[]
  sct?: 'none' | 'forged'
}

export interface BundleOptions {
  content?: 'message' | 'dsse'
  rekor?: 'v1' | 'v2' | 'unknown' | 'none'
  /** Kind and version of the entry. */
  kind?: string
  leaf?: LeafOptions
  /** Signs with a plain key instead of a certificate. */
  plainKey?: boolean
  /** Key of the signer. */
  signer?: Pair
  hash?: 'sha256' | 'sha384' | 'sha512'
  artifact?: Uint8Array
  predicateType?: string
  /** Claimed by the statement instead of the artifact's. */
  subjectDigest?: Record<string, string>
  timestamps?: number[]
  /** What timestamps are over, instead of the signature. */
  stamped?: Uint8Array
  integratedTime?: number
  mediaType?: string
  /** Changes the entry's body before the log signs it: an entry that is really in the log, about something else. */
  changeBody?: (body: Json) => void
  promise?: boolean
  proof?: boolean
  /** Rewrites the checkpoint's text before the log signs it. */
  note?: (note: string) => string
  /** Rewrites the signature lines. */
  signatures?: (lines: string) => string
}

// biome-ignore lint/suspicious/noExplicitAny: documents that tests change at will
export type Json = any

/** Two curves and Ed25519, for tests of algorithms. */
export const pairOf = (kind: 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | 'RSA'): Pair =>
  kind === 'Ed25519'
    ? generateKeyPairSync('ed25519')
    : kind === 'RSA'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : newPair(kind)

/** Everybody's keys and the trusted root that names them. */
export class SigstoreWorld {
  readonly ca = newPair()
  readonly ctLog = newPair()
  readonly rekor = newPair()
  readonly rekor2: Pair = generateKeyPairSync('ed25519')
  readonly unknownLog = newPair()
  readonly tsaCa = newPair()
  readonly tsa = newPair()
  readonly caCertificate = this.#root('Example CA', this.ca)
  readonly tsaRoot = this.#root('Example TSA CA', this.tsaCa)

  #root(name: string, key: Pair): Uint8Array {
    return certificate(
      tbs({
        serial: 1,
        issuer: name,
        subject: name,
        key,
        from: SIGNED_AT - 1000 * HOUR,
        until: SIGNED_AT + 1000 * HOUR,
        extensions: CA_EXTENSIONS,
      }),
      key,
    )
  }

  tsaCertificate(usages: Uint8Array = usage(OID.timeStamping), critical = true): Uint8Array {
    return certificate(
      tbs({
        serial: 7,
        issuer: 'Example TSA CA',
        subject: 'Example TSA',
        key: this.tsa,
        from: SIGNED_AT - 100 * HOUR,
        until: SIGNED_AT + 100 * HOUR,
        extensions: [
          extension('2.5.29.15', der.bits(Uint8Array.of(0x80), 7), true),
          extension('2.5.29.37', usages, critical),
        ],
      }),
      this.tsaCa,
    )
  }

  /** The trusted root as a document. */
  trustedRoot(): Json {
    const since = () => ({ start: iso(SIGNED_AT - 500 * HOUR) })
    const log = (key: Pair, baseUrl: string) => ({
      baseUrl,
      hashAlgorithm: 'SHA2_256',
      publicKey: { rawBytes: toBase64(spkiOf(key)), keyDetails: detailsOf(key), validFor: since() },
      logId: { keyId: toBase64(sha256(spkiOf(key))) },
    })
    const chain = (...ders: Uint8Array[]) => ({
      certChain: { certificates: ders.map((each) => ({ rawBytes: toBase64(each) })) },
      validFor: since(),
    })
    return {
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [
        log(this.rekor, 'https://rekor.example.com'),
        log(this.rekor2, 'https://log2.example.com'),
      ],
      certificateAuthorities: [chain(this.caCertificate)],
      ctlogs: [log(this.ctLog, 'https://ct.example.com')],
      timestampAuthorities: [chain(this.tsaCertificate(), this.tsaRoot)],
    }
  }

  leaf(key: Pair, options: LeafOptions = {}): Uint8Array {
    const {
      names = { uri: [SUBJECT] },
      issuer = ISSUER,
      issuerV1,
      usages = ['codeSigning'],
    } = options
    const extensions = [
      extension('2.5.29.15', der.bits(Uint8Array.of(options.keyUsage ?? 0x80), 7), true),
      ...(usages.length === 0
        ? []
        : [extension('2.5.29.37', usage(...usages.map((name) => OID[name])))]),
      extension('2.5.29.17', generalNames(names), true),
      ...(issuerV1 === undefined ? [] : [extension('1.3.6.1.4.1.57264.1.1', utf8(issuerV1))]),
      ...(issuer === null ? [] : [extension('1.3.6.1.4.1.57264.1.8', der.utf8String(issuer))]),
      ...(options.isCa ? [CA_EXTENSIONS[0] as Uint8Array] : []),
      ...(options.extra ?? []),
    ]
    const fields = {
      serial: 9,
      issuer: options.selfIssued ? 'me' : 'Example CA',
      subject: options.selfIssued ? 'me' : '',
      key,
      from: options.from ?? SIGNED_AT - 300,
      until: options.until ?? SIGNED_AT + 300,
    }
    const sct =
      options.sct === 'none' ? [] : [this.#sct(tbs({ ...fields, extensions }), options.sct)]
    return certificate(tbs({ ...fields, extensions: [...extensions, ...sct] }), this.ca)
  }

  /** The extension that says the certificate log has seen the certificate without it (RFC 6962 section 3.3). */
  #sct(precertificate: Uint8Array, kind: 'forged' | undefined): Uint8Array {
    const time = uint(SIGNED_AT * 1000, 8)
    const signed = concat(
      Uint8Array.of(0, 0),
      time,
      uint(1, 2),
      sha256(spkiOf(this.ca)),
      uint(precertificate.length, 3),
      precertificate,
      uint(0, 2),
    )
    const signature = ecdsa(signed, kind === 'forged' ? this.unknownLog : this.ctLog)
    const sct = concat(
      Uint8Array.of(0),
      sha256(spkiOf(this.ctLog)),
      time,
      uint(0, 2),
      Uint8Array.of(4, 3),
      uint(signature.length, 2),
      signature,
    )
    const list = concat(uint(sct.length + 2, 2), uint(sct.length, 2), sct)
    return extension('1.3.6.1.4.1.11129.2.4.2', der.octets(list))
  }

  /** An RFC 3161 response over the bytes. */
  timestamp(bytes: Uint8Array, at: number): Uint8Array {
    const tstInfoType = der.oid('1.2.840.113549.1.9.16.1.4')
    const digits = `${new Date(at * 1000).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
    const info = der.sequence(
      der.integer(Uint8Array.of(1)),
      der.oid('1.2.3.4'),
      der.sequence(SHA256, der.octets(sha256(bytes))),
      der.integer(Uint8Array.of(5)),
      der.element(0x18, utf8(digits)),
    )
    const attributes = [
      der.sequence(der.oid('1.2.840.113549.1.9.3'), der.set(tstInfoType)),
      der.sequence(der.oid('1.2.840.113549.1.9.4'), der.set(der.octets(sha256(info)))),
    ]
    const signer = der.sequence(
      der.integer(Uint8Array.of(1)),
      der.sequence(nameOf('Example TSA CA'), der.integer(Uint8Array.of(7))),
      SHA256,
      der.context(0, ...attributes),
      ECDSA_SHA256,
      der.octets(ecdsa(der.set(...attributes), this.tsa)),
    )
    const signedData = der.sequence(
      der.integer(Uint8Array.of(3)),
      der.set(SHA256),
      der.sequence(tstInfoType, der.context(0, der.octets(info))),
      der.set(signer),
    )
    return der.sequence(
      der.sequence(der.integer(Uint8Array.of(0))),
      der.sequence(der.oid('1.2.840.113549.1.7.2'), der.context(0, signedData)),
    )
  }

  /** A bundle, as a document that tests may change. */
  bundle(options: BundleOptions = {}): Json {
    const { content = 'message', rekor = 'v1', artifact = ARTIFACT, signer = newPair() } = options
    const hash = options.hash ?? 'sha256'
    const leaf = options.plainKey ? undefined : this.leaf(signer, options.leaf)
    const digest = sha256(artifact, hash)
    const payload = utf8(
      JSON.stringify({
        _type: 'https://in-toto.io/Statement/v1',
        subject: [
          { name: 'a', digest: options.subjectDigest ?? { sha256: toHex(sha256(artifact)) } },
        ],
        predicateType: options.predicateType ?? 'https://example.com/predicate',
        predicate: {},
      }),
    )
    const type = 'application/vnd.in-toto+json'
    const message = content === 'dsse' ? preAuthenticationEncoding(type, payload) : artifact
    const signature = ecdsa(message, signer, hash)
    const about = { signature, leaf, signer, payload, message, hash }
    const times = options.timestamps ?? (rekor === 'v1' ? [] : [SIGNED_AT])
    return {
      mediaType: options.mediaType ?? 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: {
        ...(leaf === undefined
          ? { publicKey: { hint: 'any' } }
          : { certificate: { rawBytes: toBase64(leaf) } }),
        tlogEntries: rekor === 'none' ? [] : [this.entry(about, options)],
        timestampVerificationData: {
          rfc3161Timestamps: times.map((at) => ({
            signedTimestamp: toBase64(this.timestamp(options.stamped ?? signature, at)),
          })),
        },
      },
      ...(content === 'dsse'
        ? {
            dsseEnvelope: {
              payloadType: type,
              payload: toBase64(payload),
              signatures: [{ sig: toBase64(signature) }],
            },
          }
        : {
            messageSignature: {
              messageDigest: { algorithm: `SHA2_${hash.slice(3)}`, digest: toBase64(digest) },
              signature: toBase64(signature),
            },
          }),
    }
  }

  /** The log entry about a signature, with promise and proof. */
  entry(about: About, options: BundleOptions): Json {
    const { rekor = 'v1' } = options
    const v2 = rekor === 'v2'
    const log = v2 ? this.rekor2 : rekor === 'unknown' ? this.unknownLog : this.rekor
    const kind =
      options.kind ??
      (v2 ? 'hashedrekord 0.0.2' : options.content === 'dsse' ? 'dsse 0.0.1' : 'hashedrekord 0.0.1')
    const body = bodyOf(kind, about)
    options.changeBody?.(body)
    const bytes = utf8(JSON.stringify(body))
    const [name, version] = kind.split(' ')
    const logId = sha256(spkiOf(log))
    const integratedTime = v2 ? 0 : (options.integratedTime ?? SIGNED_AT)
    const promised = JSON.stringify({
      body: toBase64(bytes),
      integratedTime,
      logID: toHex(logId),
      logIndex: 41,
    })
    return {
      logIndex: '41',
      logId: { keyId: toBase64(logId) },
      kindVersion: { kind: name, version },
      ...(v2 ? {} : { integratedTime: String(integratedTime) }),
      ...(v2 || options.promise === false
        ? {}
        : { inclusionPromise: { signedEntryTimestamp: toBase64(ecdsa(utf8(promised), log)) } }),
      ...(options.proof === false
        ? {}
        : {
            inclusionProof: proofOf(
              bytes,
              log,
              logId,
              v2 ? 'log2.example.com' : 'rekor.example.com',
              options,
            ),
          }),
      canonicalizedBody: toBase64(bytes),
    }
  }
}

interface About {
  signature: Uint8Array
  leaf: Uint8Array | undefined
  signer: Pair
  payload: Uint8Array
  message: Uint8Array
  hash: string
}

/** The middle one of three leaves. */
function proofOf(
  body: Uint8Array,
  log: Pair,
  logId: Uint8Array,
  name: string,
  options: BundleOptions,
): Json {
  const leaf = (bytes: Uint8Array) => sha256(concat(Uint8Array.of(0), bytes))
  const node = (left: Uint8Array, right: Uint8Array) =>
    sha256(concat(Uint8Array.of(1), left, right))
  const [first, last] = [leaf(utf8('first')), leaf(utf8('last'))]
  const root = node(node(first, leaf(body)), last)
  const plain = `${name}\n3\n${toBase64(root)}\n`
  const note = options.note?.(plain) ?? plain
  const signed = toBase64(concat(logId.subarray(0, 4), ecdsa(utf8(note), log)))
  const lines = `— ${name} ${signed}\n`
  return {
    logIndex: '1',
    treeSize: '3',
    rootHash: toBase64(root),
    hashes: [toBase64(first), toBase64(last)],
    checkpoint: { envelope: `${note}\n${options.signatures?.(lines) ?? lines}` },
  }
}

function bodyOf(kind: string, { signature, leaf, signer, payload, message, hash }: About): Json {
  const [name, apiVersion] = kind.split(' ')
  const pem = pemOf(leaf === undefined ? 'PUBLIC KEY' : 'CERTIFICATE', leaf ?? spkiOf(signer))
  const verifier =
    leaf === undefined
      ? { publicKey: { rawBytes: toBase64(spkiOf(signer)) } }
      : { x509Certificate: { rawBytes: toBase64(leaf) } }
  const hex = (bytes: Uint8Array, algorithm = 'sha256') => ({
    algorithm,
    value: toHex(sha256(bytes, algorithm)),
  })
  const tagged = (bytes: Uint8Array, algorithm = 'sha256') => ({
    algorithm: `SHA2_${algorithm.slice(3)}`,
    digest: toBase64(sha256(bytes, algorithm)),
  })
  const sig = toBase64(signature)
  const specs: Record<string, Json> = {
    'hashedrekord 0.0.1': {
      data: { hash: hex(message, hash) },
      signature: { content: sig, publicKey: { content: pem } },
    },
    'hashedrekord 0.0.2': {
      hashedRekordV002: {
        data: tagged(message, hash),
        signature: { content: sig, verifier },
      },
    },
    'dsse 0.0.1': { payloadHash: hex(payload), signatures: [{ signature: sig, verifier: pem }] },
    'dsse 0.0.2': {
      dsseV002: { payloadHash: tagged(payload), signatures: [{ content: sig, verifier }] },
    },
    'intoto 0.0.1': { content: { hash: hex(payload), payloadHash: hex(payload) }, publicKey: pem },
    'intoto 0.0.2': {
      content: {
        envelope: { signatures: [{ sig: toBase64(utf8(sig)), publicKey: pem }] },
        payloadHash: hex(payload),
      },
    },
  }
  return { apiVersion, kind: name, spec: specs[kind] ?? {} }
}

function pemOf(label: string, bytes: Uint8Array): string {
  const lines = toBase64(bytes).match(/.{1,64}/g) ?? []
  return toBase64(utf8(`-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`))
}

function detailsOf({ publicKey }: Pair): string {
  return publicKey.asymmetricKeyType === 'ed25519' ? 'PKIX_ED25519' : 'PKIX_ECDSA_P256_SHA_256'
}

function uint(value: number, bytes: number): Uint8Array {
  const out = new Uint8Array(bytes)
  let rest = value
  for (let i = bytes - 1; i >= 0; i--) {
    out[i] = rest % 256
    rest = Math.floor(rest / 256)
  }
  return out
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString()
