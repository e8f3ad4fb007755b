import { X509Certificate } from 'node:crypto'
import path from 'node:path'
import type { ClusterConfig } from '#functions/config.ts'
import { readText } from '#functions/files.ts'
import { toBase64, utf8 } from '#shared/bytes.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'

const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** A `caBundle`, and when the first of its certificates ends. */
export interface CaBundle {
  /** Base64 of PEM. */
  base64: string
  /** RFC 3339. */
  until: string
}

/** The file with the certificates that the endpoint is trusted by: the one that was named, or that of the cluster in the config. */
export function caFileOf(
  { caBundle, config }: { caBundle?: string; config: string },
  { webhooks }: ClusterConfig,
): string | undefined {
  const caFile = webhooks?.caFile
  return caBundle ?? (caFile && path.join(path.dirname(config), caFile))
}

/**
 * The `caBundle` of a file with PEM certificates. The API server takes any bytes and fails at each call, so that everything is looked at
 * here. Throws `CONFIG_INVALID` with every certificate that is none, is over, or has not begun. `now` is epoch milliseconds.
 */
export async function readCaBundle(file: string, now: number): Promise<CaBundle> {
  const { text } = await readText(file, 'CONFIG_INVALID')
  const blocks = text.match(PEM) ?? []
  const faults: Fault[] = []
  const ends: number[] = []
  for (const [index, block] of blocks.entries()) {
    const path = `${file}: certificate ${index + 1}`
    const fault = faultOf(block, now, ends)
    if (fault !== undefined) faults.push({ path, message: fault })
  }
  if (blocks.length === 0) faults.push({ path: file, message: 'holds no PEM certificate' })
  if (faults.length > 0) {
    throw new AdmissionError('CONFIG_INVALID', `${file} cannot be a caBundle`, { faults })
  }
  const pem = blocks.map((block) => `${block.replaceAll('\r', '')}\n`).join('')
  return { base64: toBase64(utf8(pem)), until: new Date(Math.min(...ends)).toISOString() }
}

function faultOf(block: string, now: number, ends: number[]): string | undefined {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(block)
  } catch {
    return 'cannot be read'
  }
  const [from, until] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  ends.push(until)
  if (now > until)
    return `ended on ${new Date(until).toISOString()}: API servers would refuse every call`
  return now < from ? `begins on ${new Date(from).toISOString()}` : undefined
}
