import { fromHex, toHex, utf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import type { JsonValue } from '../../json.ts'
import { MAX_CHAIN_CERTIFICATES, MAX_TIMESTAMP_BYTES } from '../../limits.ts'
import { dig, type LayerEvidence, malformed, readJson, readSignature } from '../content.ts'
import type { Certificate } from '../x509/certificate.ts'
import { isSelfIssued } from '../x509/chain.ts'
import { certificatesFromPem } from '../x509/pem.ts'
import { base64, type Evidence, type LogEntry, natural, readBody } from './bundle.ts'

/**
 * What the annotations of a layer say, read strictly (specs/signatures.md 1.1 and 1.2). Only what is asked for is read: with a key
 * configured a certificate means nothing, and without logs no entry does. Throws `SIGNATURE_MALFORMED` or `JSON_INVALID`.
 */
export function readLayerEvidence(
  { certificate, chain, bundle, timestamp }: LayerEvidence,
  reads: { certificate: boolean; entries: boolean },
): Evidence {
  const [signer, ...more] = reads.certificate && certificate ? readPem(certificate) : []
  if (more.length > 0) throw malformed('certificate annotation holds several certificates')
  const brought = reads.certificate && chain ? readPem(chain) : []
  if (brought.length > MAX_CHAIN_CERTIFICATES) {
    throw malformed(`chain of ${brought.length} certificates, at most ${MAX_CHAIN_CERTIFICATES}`)
  }
  return {
    certificate: signer,
    // cosign writes the root as well; whether it is one is the verifier's to say.
    intermediates: brought.filter((each) => !isSelfIssued(each)),
    entries: reads.entries && bundle ? [readEntry(readJson(utf8(bundle)))] : [],
    timestamps: timestamp
      ? [
          base64(
            dig(readJson(utf8(timestamp)), 'SignedRFC3161Timestamp'),
            'timestamp',
            MAX_TIMESTAMP_BYTES,
          ),
        ]
      : [],
  }
}

/** A bare public key is refused like everything else that is no certificate. */
function readPem(text: string): readonly Certificate[] {
  try {
    const certificates = certificatesFromPem(text)
    if (certificates.length > 0) return certificates
  } catch (thrown) {
    if (thrown instanceof AdmissionError) throw malformed(thrown.message)
    throw thrown
  }
  throw malformed('certificate annotation holds no certificate')
}

/** The log's promise as cosign keeps it; there is no proof. The kind is in the body, nowhere else. */
function readEntry(json: JsonValue): LogEntry {
  const payload = dig(json, 'Payload')
  const logId = dig(payload, 'logID')
  const id = typeof logId === 'string' ? fromHex(logId) : undefined
  if (id?.length !== 32 || toHex(id) !== logId) throw malformed('log id is not 64 hex digits')
  const body = readBody(dig(payload, 'body'))
  const content = readJson(body.body)
  const [kind, version] = [dig(content, 'kind'), dig(content, 'apiVersion')]
  if (typeof kind !== 'string' || typeof version !== 'string') {
    throw malformed('log entry without a kind')
  }
  return {
    kind,
    version,
    logId: id,
    logIndex: natural(dig(payload, 'logIndex') ?? 0, 'log index'),
    integratedTime: natural(dig(payload, 'integratedTime') ?? 0, 'integrated time'),
    ...body,
    promise: readSignature(dig(json, 'SignedEntryTimestamp'), 'inclusion promise'),
    proof: undefined,
  }
}
