import * as der from '#functions/local/der.ts'
import { utf8 } from '#shared/bytes.ts'
import { ECDSA_SHA256, nameOf, SHA256 } from './certificate.ts'
import { digestOf, type Pair, signWith } from './keys.ts'

/** Who signs timestamps: its key, and how its certificate names issuer and serial. */
export interface StampSigner {
  key: Pair
  issuer: string
  serial: number
}

/** An RFC 3161 response over the bytes, at that second. */
export function timestampResponse(bytes: Uint8Array, at: number, signer: StampSigner): Uint8Array {
  const infoType = der.oid('1.2.840.113549.1.9.16.1.4')
  const digits = `${new Date(at * 1000).toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`
  const info = der.sequence(
    der.integer(Uint8Array.of(1)),
    der.oid('1.2.3.4'),
    der.sequence(SHA256, der.octets(digestOf(bytes))),
    der.integer(Uint8Array.of(5)),
    der.element(0x18, utf8(digits)),
  )
  const signedData = der.sequence(
    der.integer(Uint8Array.of(3)),
    der.set(SHA256),
    der.sequence(infoType, der.context(0, der.octets(info))),
    der.set(signerInfo(infoType, info, signer)),
  )
  return der.sequence(
    der.sequence(der.integer(Uint8Array.of(0))),
    der.sequence(der.oid('1.2.840.113549.1.7.2'), der.context(0, signedData)),
  )
}

function signerInfo(infoType: Uint8Array, info: Uint8Array, signer: StampSigner): Uint8Array {
  const attributes = [
    der.sequence(der.oid('1.2.840.113549.1.9.3'), der.set(infoType)),
    der.sequence(der.oid('1.2.840.113549.1.9.4'), der.set(der.octets(digestOf(info)))),
  ]
  return der.sequence(
    der.integer(Uint8Array.of(1)),
    der.sequence(nameOf(signer.issuer), der.integer(Uint8Array.of(signer.serial))),
    SHA256,
    der.context(0, ...attributes),
    ECDSA_SHA256,
    der.octets(signWith(der.set(...attributes), signer.key)),
  )
}
