import { X509Certificate } from 'node:crypto'
import path from 'node:path'
import { AdmissionError, type Fault, toAdmissionError } from '#shared/errors.ts'
import { MAX_CLUSTER_CA_CHARS } from '#shared/limits.ts'
import type { ClusterConfig, Config } from '../config.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * The config with what stands in the `caFile` of each cluster, so that bundles have it. `read` gives the text of a file. Throws
 * `CONFIG_INVALID` with every file that is not there or holds no certificate.
 */
export async function withAuthorities(
  config: Config,
  folder: string,
  read: (file: string) => Promise<string>,
): Promise<Config> {
  const faults: Fault[] = []
  const clusters: ClusterConfig[] = []
  // One after the other, so that faults are told in the order of the file.
  for (const [index, cluster] of config.clusters.entries()) {
    if (cluster.api?.caFile === undefined) {
      clusters.push(cluster)
      continue
    }
    try {
      const ca = certificatesIn(await read(path.join(folder, cluster.api.caFile)))
      clusters.push({ ...cluster, api: { ...cluster.api, ca } })
    } catch (thrown) {
      const { message } = toAdmissionError(thrown, 'reading the certificates')
      faults.push({ path: `clusters[${index}].api.caFile`, message })
    }
  }
  if (faults.length === 0) return { ...config, clusters }
  const lines = faults.map(({ path: where, message }) => `${where}: ${message}`)
  throw new AdmissionError('CONFIG_INVALID', lines.join('\n'), { faults })
}

/** The certificates of a PEM text, and nothing else that stands in it: kubeconfigs of some tools keep keys beside them. */
function certificatesIn(text: string): string {
  if (text.length > MAX_CLUSTER_CA_CHARS) {
    throw invalid(`has more than ${MAX_CLUSTER_CA_CHARS} characters`)
  }
  const found = text.match(CERTIFICATE) ?? []
  if (found.length === 0) throw invalid('holds no PEM certificate')
  for (const pem of found) {
    try {
      new X509Certificate(pem)
    } catch (cause) {
      throw invalid('holds a certificate that cannot be read', cause)
    }
  }
  return `${found.join('\n')}\n`
}

function invalid(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message, { cause })
}
