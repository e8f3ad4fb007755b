import * as der from '#functions/local/der.ts'
import { digestOf, type Pair, signWith, spkiOf, uint } from '#functions/local/sigstore/keys.ts'
import { concat, utf8 } from '#shared/bytes.ts'
import { type CertificateOptions, extension, type Minted, mint } from '#test/fakes/pki.ts'
import { ISSUER, type Json, SigstoreWorld, SUBJECT } from '#test/fakes/sigstore.ts'

/** Certificates of signers under authorities of any shape, seen by any certificate logs, and what is signed with them. */

/** A signed certificate timestamp, with every part open to be made wrong. */
export interface SctOptions {
  log: Pair
  /** Milliseconds. */
  time: number
  /** Of whom the log key is said to be. */
  logId?: Uint8Array
  extensions?: Uint8Array
  version?: number
  algorithm?: readonly [number, number]
  hash?: string
  /** Key of the authority the log has seen. */
  issuer?: Pair
  /** What is behind the signature. */
  tail?: Uint8Array
}

export interface SignerOptions extends Omit<CertificateOptions, 'extra' | 'change'> {
  issuer: Minted
  oidcIssuer?: string | null
  names?: Uint8Array
  scts?: readonly SctOptions[]
  /** The value of the extension, instead of a list of the timestamps. */
  sctValue?: Uint8Array
  more?: readonly Uint8Array[]
}

export const uri = (text: string) => der.contextPrimitive(6, utf8(text))

/** A signer's certificate as Fulcio writes it. */
export function mintSigner(options: SignerOptions): Minted {
  const { names = uri(SUBJECT), oidcIssuer = ISSUER, more = [], scts = [] } = options
  const extra = [
    extension('2.5.29.17', der.sequence(names), true),
    ...(oidcIssuer === null
      ? []
      : [extension('1.3.6.1.4.1.57264.1.8', der.utf8String(oidcIssuer))]),
    ...more,
  ]
  const fields = { subject: [], keyName: 'signer', ...options }
  let precertificate: Uint8Array = new Uint8Array()
  const keep = (members: Uint8Array[]) => {
    precertificate = der.sequence(...members)
    return members
  }
  const plain = mint({ ...fields, extra, change: keep })
  if (scts.length === 0 && options.sctValue === undefined) return plain
  const list = scts.map((each) => sctOf(precertificate, each, options.issuer))
  const vectors = concat(...list.map((each) => concat(uint(each.length, 2), each)))
  const value = options.sctValue ?? der.octets(concat(uint(vectors.length, 2), vectors))
  return mint({ ...fields, extra: [...extra, extension('1.3.6.1.4.1.11129.2.4.2', value)] })
}

function sctOf(precertificate: Uint8Array, sct: SctOptions, issuer: Minted): Uint8Array {
  const { log, time, extensions = new Uint8Array(), version = 0, algorithm = [4, 3] } = sct
  const stamp = concat(uint(time, 8))
  const signed = concat(
    Uint8Array.of(0, 0),
    stamp,
    uint(1, 2),
    digestOf(spkiOf(sct.issuer ?? issuer.keys)),
    uint(precertificate.length, 3),
    precertificate,
    uint(extensions.length, 2),
    extensions,
  )
  const signature = signWith(signed, log, sct.hash)
  return concat(
    Uint8Array.of(version),
    sct.logId ?? digestOf(spkiOf(log)),
    stamp,
    uint(extensions.length, 2),
    extensions,
    Uint8Array.from(algorithm),
    uint(signature.length, 2),
    signature,
    sct.tail ?? new Uint8Array(),
  )
}

/** A Sigstore whose signers all hold one certificate, of an authority of one's own. */
export class SignerWorld extends SigstoreWorld {
  readonly signer: Minted

  constructor(signer: Minted) {
    super()
    this.signer = signer
  }

  override leaf(): Uint8Array {
    return this.signer.der
  }

  override bundle(options: Parameters<SigstoreWorld['bundle']>[0] = {}): Json {
    return super.bundle({ signer: this.signer.keys, ...options })
  }

  /** The trusted root with these authorities, each from the issuer to the anchor. */
  rootWith(...authorities: readonly (readonly Minted[])[]): Json {
    const root = super.trustedRoot()
    root.certificateAuthorities = authorities.map((chain) => authorityOf(chain))
    return root
  }
}

/** An authority as a trusted root names it. */
export function authorityOf(
  chain: readonly Pick<Minted, 'der'>[],
  validFor: Json = { start: '2025-01-01T00:00:00Z' },
): Json {
  const certificates = chain.map((each) => ({ rawBytes: Buffer.from(each.der).toString('base64') }))
  return { certChain: { certificates }, validFor }
}
