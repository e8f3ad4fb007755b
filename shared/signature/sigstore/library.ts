import { bundleFromJSON } from '@sigstore/bundle'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify'
import { type Bytes, toBase64, toHex } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import { type JsonValue, stringifyJson } from '../../json.ts'

/**
 * The only door to the Sigstore packages; load this file when it is first needed, since they are large. They verify the chain of a
 * certificate, its signed certificate timestamps and RFC 3161 timestamps. Signatures, transparency logs, identities and the form of what
 * is verified are judged by this folder itself, because the packages read base64 loosely, match names and identities by unanchored
 * expressions of the sender's choice, and compare no key (specs/signatures.md 1.6 and 2). Their types rely on Node's, so none of them
 * leaves this file.
 */
export interface Authorities {
  /** The time of an RFC 3161 response by one of the authorities over these bytes, or why it is not one. */
  timestamp(token: Bytes, signed: Bytes): { time: number; authority: string } | { refused: string }
  /** Why the certificate is none of the authorities' at these times (at least one), or undefined when it is. */
  certificate(der: Bytes, times: readonly number[], certificateLogs: number): string | undefined
}

/** The authorities of a trusted root. Throws `CONFIG_INVALID` when the root cannot be read. */
export function createAuthorities(root: JsonValue): Authorities {
  type Entity = Parameters<Verifier['verify']>[0]
  type Material = ReturnType<typeof toTrustMaterial>

  /** An entity of ours: the signature is judged elsewhere, the bytes are what timestamps have to be over. */
  const entityOf = (material: object, signed: Bytes): Entity => {
    const json = {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: { tlogEntries: [], ...material },
      messageSignature: {
        messageDigest: { algorithm: 'SHA2_256', digest: 'AA==' },
        signature: 'AA==',
      },
    }
    const entity = toSignedEntity(bundleFromJSON(json))
    const signature = {
      // Hashed and nothing else, which takes any bytes.
      signature: signed as unknown as Entity['signature']['signature'],
      compareSignature: () => false,
      compareDigest: () => false,
      verifySignature: () => true,
    }
    return { ...entity, signature }
  }
  const anyTime = { validFor: () => true } as unknown as ReturnType<Material['publicKey']>
  const material = readRoot()

  return {
    timestamp(token, signed) {
      try {
        const entity = entityOf(
          {
            publicKey: { hint: '' },
            timestampVerificationData: {
              rfc3161Timestamps: [{ signedTimestamp: toBase64(token) }],
            },
          },
          signed,
        )
        new Verifier(material, { tlogThreshold: 0, timestampThreshold: 1 }).verify(entity)
        const [stamp] = entity.timestamps
        if (stamp?.$case !== 'timestamp-authority') return { refused: 'no timestamp' }
        const { signingTime, signerSerialNumber, signerIssuer } = stamp.timestamp
        const authority = `${toHex(signerIssuer)} ${toHex(signerSerialNumber)}`
        return { time: signingTime.getTime(), authority }
      } catch (thrown) {
        return { refused: reasonOf(thrown) }
      }
    },
    certificate(der, times, certificateLogs) {
      try {
        const entity = entityOf({ certificate: { rawBytes: toBase64(der) } }, new Uint8Array())
        const options = { tlogThreshold: 0, timestampThreshold: 1, ctlogThreshold: certificateLogs }
        // One time after the other, which is what the packages do too; they refuse two that are equal.
        for (const time of times) {
          new Verifier(material, options).verify({ ...entity, timestamps: [at(time)] })
        }
        return times.length === 0 ? 'there is no time to verify it at' : undefined
      } catch (thrown) {
        return reasonOf(thrown)
      }
    },
  }

  /** A time that this folder vouches for, in the shape of one a log has promised. */
  function at(time: number): Entity['timestamps'][number] {
    const entry = { inclusionPromise: {}, logId: { keyId: '' }, integratedTime: time / 1000 }
    return {
      $case: 'transparency-log',
      tlogEntry: entry as unknown as Extract<
        Entity['timestamps'][number],
        { $case: 'transparency-log' }
      >['tlogEntry'],
    }
  }

  function readRoot(): Material {
    try {
      const plain = TrustedRoot.fromJSON(JSON.parse(stringifyJson(root)))
      return toTrustMaterial(plain, () => anyTime)
    } catch (cause) {
      const reason = reasonOf(cause)
      throw new AdmissionError('CONFIG_INVALID', `trusted root: ${reason}`, { cause })
    }
  }
}

/** The packages throw on everything that is not right, and on hostile input also what they did not foresee; both are a "no". */
function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message.slice(0, 200) : 'not readable'
}
