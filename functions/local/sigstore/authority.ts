import { toBase64, toHex, utf8 } from '#shared/bytes.ts'
import { preAuthenticationEncoding } from '#shared/signature/dsse.ts'
import {
  authorityCertificate,
  type LeafOptions,
  leafCertificate,
  stampCertificate,
  usageOf,
} from './certificate.ts'
import { digestOf, newPair, type Pair, pairOf, signWith, spkiOf } from './keys.ts'
import { type Document, type EntryOptions, type Logged, logEntry } from './log.ts'
import { timestampResponse } from './timestamp.ts'

/** Who the certificate says signed, unless told otherwise. */
export const ISSUER = 'https://issuer.example.com'
export const SUBJECT = 'https://ci.example.com/shop/api/release.yml@refs/heads/main'

/** What is signed, unless told otherwise. */
export const ARTIFACT = utf8('an artifact')

const HOUR = 3600
const CA_NAME = 'Example CA'
const TSA_NAME = 'Example TSA CA'
const TSA_SERIAL = 7

/** What may differ between bundles. */
export interface BundleOptions extends EntryOptions {
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
  /** The statement to sign, instead of one about the artifact. */
  statement?: Document
  /** Seconds. */
  timestamps?: number[]
  /** What timestamps are over, instead of the signature. */
  stamped?: Uint8Array
  mediaType?: string
}

/**
 * A whole Sigstore of its own, minted in memory: certificate authority, certificate log, transparency logs of both generations and
 * timestamp authority, with what each of them signs. Whatever a bundle says wrong is said with real signatures.
 */
export class LocalSigstore {
  readonly ca = newPair()
  readonly ctLog = newPair()
  readonly rekor = newPair()
  readonly rekor2 = pairOf('Ed25519')
  readonly unknownLog = newPair()
  readonly tsaCa = newPair()
  readonly tsa = newPair()
  readonly caCertificate: Uint8Array
  readonly tsaRoot: Uint8Array
  /** Seconds: when everything here is signed. */
  readonly signedAt: number

  constructor(signedAt: number) {
    this.signedAt = signedAt
    const life = { serial: 1, from: signedAt - 1000 * HOUR, until: signedAt + 1000 * HOUR }
    this.caCertificate = authorityCertificate({ ...life, subject: CA_NAME, key: this.ca })
    this.tsaRoot = authorityCertificate({ ...life, subject: TSA_NAME, key: this.tsaCa })
  }

  /** The certificate of the timestamp authority. */
  tsaCertificate(usage: Uint8Array = usageOf('timeStamping'), critical = true): Uint8Array {
    const fields = {
      serial: TSA_SERIAL,
      issuer: TSA_NAME,
      subject: 'Example TSA',
      key: this.tsa,
      from: this.signedAt - 100 * HOUR,
      until: this.signedAt + 100 * HOUR,
    }
    return stampCertificate(fields, this.tsaCa, usage, critical)
  }

  /** The trusted root as a document. */
  trustedRoot(): Document {
    const validFor = () => ({ start: iso(this.signedAt - 500 * HOUR) })
    const log = (key: Pair, baseUrl: string) => ({
      baseUrl,
      hashAlgorithm: 'SHA2_256',
      publicKey: {
        rawBytes: toBase64(spkiOf(key)),
        keyDetails: detailsOf(key),
        validFor: validFor(),
      },
      logId: { keyId: toBase64(digestOf(spkiOf(key))) },
    })
    const chain = (...ders: Uint8Array[]) => ({
      certChain: { certificates: ders.map((each) => ({ rawBytes: toBase64(each) })) },
      validFor: validFor(),
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

  /** A signer's certificate, for minutes. */
  leaf(key: Pair, options: LeafOptions = {}): Uint8Array {
    const issuer = {
      name: CA_NAME,
      ca: this.ca,
      ctLog: { none: undefined, forged: this.unknownLog, real: this.ctLog }[options.sct ?? 'real'],
      ctLogKey: this.ctLog,
      at: this.signedAt,
    }
    const from = this.signedAt - 300
    const until = this.signedAt + 300
    const usual = { names: { uri: [SUBJECT] }, issuer: ISSUER, from, until }
    return leafCertificate(key, { ...usual, ...options }, issuer)
  }

  /** An RFC 3161 response over the bytes. */
  timestamp(bytes: Uint8Array, at: number): Uint8Array {
    return timestampResponse(bytes, at, { key: this.tsa, issuer: TSA_NAME, serial: TSA_SERIAL })
  }

  /** A bundle, as a document of one's own. */
  bundle(options: BundleOptions = {}): Document {
    const { content = 'message', rekor = 'v1', hash = 'sha256' } = options
    const { artifact = ARTIFACT, signer = newPair() } = options
    const leaf = options.plainKey ? undefined : this.leaf(signer, options.leaf)
    const payload = utf8(JSON.stringify(options.statement ?? statementOf(artifact, options)))
    const type = 'application/vnd.in-toto+json'
    const message = content === 'dsse' ? preAuthenticationEncoding(type, payload) : artifact
    const signature = signWith(message, signer, hash)
    const about = { signature, leaf, signer, payload, message, hash }
    const times = options.timestamps ?? (rekor === 'v1' ? [] : [this.signedAt])
    const stamped = options.stamped ?? signature
    return {
      mediaType: options.mediaType ?? 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: {
        ...(leaf === undefined
          ? { publicKey: { hint: 'any' } }
          : { certificate: { rawBytes: toBase64(leaf) } }),
        tlogEntries: rekor === 'none' ? [] : [this.entry(about, options)],
        timestampVerificationData: {
          rfc3161Timestamps: times.map((at) => ({
            signedTimestamp: toBase64(this.timestamp(stamped, at)),
          })),
        },
      },
      ...(content === 'dsse'
        ? { dsseEnvelope: envelopeOf(type, payload, signature) }
        : { messageSignature: messageOf(artifact, hash, signature) }),
    }
  }

  /** The log entry about a signature, with promise and proof. */
  entry(about: Logged, options: BundleOptions): Document {
    const isV2 = options.rekor === 'v2'
    const v1 = options.rekor === 'unknown' ? this.unknownLog : this.rekor
    const log = isV2
      ? { key: this.rekor2, name: 'log2.example.com', isV2 }
      : { key: v1, name: 'rekor.example.com', isV2 }
    return logEntry(log, about, {
      ...options,
      integratedTime: options.integratedTime ?? this.signedAt,
    })
  }
}

function statementOf(artifact: Uint8Array, { subjectDigest, predicateType }: BundleOptions) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'a', digest: subjectDigest ?? { sha256: toHex(digestOf(artifact)) } }],
    predicateType: predicateType ?? 'https://example.com/predicate',
    predicate: {},
  }
}

function envelopeOf(payloadType: string, payload: Uint8Array, signature: Uint8Array): Document {
  const signatures = [{ sig: toBase64(signature) }]
  return { payloadType, payload: toBase64(payload), signatures }
}

function messageOf(artifact: Uint8Array, hash: string, signature: Uint8Array): Document {
  return {
    messageDigest: {
      algorithm: `SHA2_${hash.slice(3)}`,
      digest: toBase64(digestOf(artifact, hash)),
    },
    signature: toBase64(signature),
  }
}

function detailsOf({ publicKey }: Pair): string {
  return publicKey.asymmetricKeyType === 'ed25519' ? 'PKIX_ED25519' : 'PKIX_ECDSA_P256_SHA_256'
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString()
