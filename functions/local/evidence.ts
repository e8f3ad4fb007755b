import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { toBase64, toHex } from '#shared/bytes.ts'
import { toPem } from './pem.ts'
import { localSigner, type Signer } from './signer.ts'
import type { BundleOptions, LocalSigstore } from './sigstore/authority.ts'
import type { LeafOptions } from './sigstore/certificate.ts'
import type { Document, Logged } from './sigstore/log.ts'

/** What goes with a signature so that those who do not hold the key may trust it. */
export interface Evidence {
  /** DER: the signer's certificate first, then those above it. */
  certificates?: readonly Uint8Array[]
  /** The log's entry about a signature. */
  entry?: (about: Logged, content: 'message' | 'dsse') => Document
  /** An RFC 3161 response over the bytes. */
  timestamp?: (bytes: Uint8Array) => Uint8Array
}

/** Which witnesses of a local Sigstore see a signature; `entry` may make the log's entry wrong. */
export interface WitnessOptions {
  rekor?: 'v1' | 'v2' | 'unknown' | 'none'
  /** Seconds; null: no timestamp. By default one where the log tells no time. */
  timestamp?: number | null
  entry?: BundleOptions
}

/** The same signer, whose signatures the witnesses of a local Sigstore have seen. */
export function witnessed(
  signer: Signer,
  sigstore: LocalSigstore,
  { rekor = 'v1', timestamp, entry = {} }: WitnessOptions = {},
): Signer {
  const at = timestamp === undefined ? (rekor === 'v1' ? null : sigstore.signedAt) : timestamp
  const evidence: Evidence = { ...signer.evidence }
  if (rekor !== 'none') {
    evidence.entry = (about, content) => sigstore.entry(about, { rekor, content, ...entry })
  }
  if (at !== null) evidence.timestamp = (bytes) => sigstore.timestamp(bytes, at)
  return { ...signer, evidence }
}

/** The same signer with its certificate and those above it, DER. */
export function certified(signer: Signer, certificates: readonly Uint8Array[]): Signer {
  return { ...signer, evidence: { ...signer.evidence, certificates } }
}

/** A signer as keyless signing makes one: a new key, a certificate for minutes, and witnesses. */
export function keylessSigner(
  sigstore: LocalSigstore,
  options: WitnessOptions & { leaf?: LeafOptions; key?: KeyObject } = {},
): Signer {
  const key = options.key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const signer = localSigner(key)
  const leaf = sigstore.leaf({ publicKey: signer.publicKey, privateKey: key }, options.leaf)
  return witnessed(certified(signer, [leaf]), sigstore, options)
}

/** What was signed and how, for the log. */
export interface Made {
  signature: Uint8Array
  message: Uint8Array
  /** The statement inside the message. */
  payload?: Uint8Array
  /** What a timestamp is over. */
  stamped: Uint8Array
}

/** The annotations cosign 1 and 2 put on the layer of a signature. */
export function layerAnnotations(signer: Signer, made: Made): Record<string, string> {
  const { certificates, timestamp } = signer.evidence ?? {}
  const [leaf, ...chain] = certificates ?? []
  const entry = entryOf(signer, made)
  const promise = promiseOf(entry)
  return {
    ...(leaf === undefined ? {} : { 'dev.sigstore.cosign/certificate': pemOf([leaf]) }),
    ...(chain.length === 0 ? {} : { 'dev.sigstore.cosign/chain': pemOf(chain) }),
    ...(promise === undefined ? {} : { 'dev.sigstore.cosign/bundle': JSON.stringify(promise) }),
    ...(timestamp === undefined
      ? {}
      : {
          'dev.sigstore.cosign/rfc3161timestamp': JSON.stringify({
            SignedRFC3161Timestamp: toBase64(timestamp(made.stamped)),
          }),
        }),
  }
}

/** `verificationMaterial` of a Sigstore bundle; before version 0.3 certificates are a chain. */
export function verificationMaterial(signer: Signer, made: Made, version: string): Document {
  const { certificates = [], timestamp } = signer.evidence ?? {}
  const raw = certificates.map((der) => ({ rawBytes: toBase64(der) }))
  const entry = entryOf(signer, made)
  return {
    ...(raw.length === 0
      ? { publicKey: { hint: signer.hint } }
      : version === '0.3'
        ? { certificate: raw[0] }
        : { x509CertificateChain: { certificates: raw } }),
    ...(entry === undefined ? {} : { tlogEntries: [entry] }),
    ...(timestamp === undefined
      ? {}
      : {
          timestampVerificationData: {
            rfc3161Timestamps: [{ signedTimestamp: toBase64(timestamp(made.stamped)) }],
          },
        }),
  }
}

/** PEM of certificates. */
export function pemOf(certificates: readonly Uint8Array[]): string {
  return certificates.map((der) => toPem('CERTIFICATE', der)).join('')
}

function entryOf(
  { evidence = {}, hash, publicKey }: Signer,
  { signature, message, payload }: Made,
): Document | undefined {
  const about = {
    signature,
    message,
    payload: payload ?? message,
    leaf: evidence.certificates?.[0],
    signer: { publicKey },
    hash,
  }
  return evidence.entry?.(about, payload === undefined ? 'message' : 'dsse')
}

/** cosign's own form of a promise; an entry without one, as of Rekor v2, has no place on a layer. */
function promiseOf(entry: Document | undefined): Document | undefined {
  // What a local Sigstore itself made.
  const { inclusionPromise, canonicalizedBody, integratedTime, logIndex, logId } = (entry ??
    {}) as {
    inclusionPromise?: { signedEntryTimestamp: string }
    canonicalizedBody: string
    integratedTime: string
    logIndex: string
    logId: { keyId: string }
  }
  if (inclusionPromise === undefined) return undefined
  return {
    SignedEntryTimestamp: inclusionPromise.signedEntryTimestamp,
    Payload: {
      body: canonicalizedBody,
      integratedTime: Number(integratedTime),
      logIndex: Number(logIndex),
      logID: toHex(Buffer.from(logId.keyId, 'base64')),
    },
  }
}
