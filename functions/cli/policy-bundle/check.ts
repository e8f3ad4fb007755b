import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Config } from '#functions/config.ts'
import { policiesOf } from '#functions/deployment.ts'
import { fileReason } from '#functions/file-reason.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { acceptPayload } from '#functions/policy-bundle/accept.ts'
import { openBundle } from '#functions/policy-bundle/envelope.ts'
import { bundleKey } from '#functions/policy-bundle/key.ts'
import { type PolicyPayload, readPayload } from '#functions/policy-bundle/payload.ts'
import type { Platform } from '#functions/ports.ts'
import { concat, sha256, toHex } from '#shared/bytes.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { MAX_POLICY_BUNDLE_BYTES } from '#shared/limits.ts'
import { policyKeys } from '#shared/policy/types.ts'

/** What a bundle is, for people and programs. */
export interface BundleSummary {
  file: string
  bytes: number
  /** SHA-256 hex of what is signed; the log of the functions shows its start. */
  bundle: string
  sequence: number
  issuedAt: string
  ageSeconds: number
  expiresAt?: string
  endpoints: readonly string[]
  clusters: readonly string[]
  policies: readonly string[]
  pinnedKeys?: number
}

/** What functions of a config would do with a file. */
export type BundleVerdict =
  | {
      verdict: 'accepted'
      summary: BundleSummary
      /** Hash of the deployment that functions of this config would log. */
      deployment: string
      /** `image-policy-set` by cluster. */
      policySets: Readonly<Record<string, string>>
    }
  | { verdict: 'refused'; reason: string; summary: BundleSummary | undefined }

/** Time that a key service has to give the key, milliseconds. */
const CHECK_MS = 30_000

/** The bytes of a file. Throws `CONFIG_INVALID` when it cannot be read; one that is too large is for the verdict. */
export async function readBundleFile(file: string): Promise<Uint8Array> {
  try {
    const { size } = await stat(file)
    if (size > MAX_POLICY_BUNDLE_BYTES) throw tooLarge(file, `${size} bytes`)
    const content = await readAtMost(file, MAX_POLICY_BUNDLE_BYTES + 1)
    if (content.length <= MAX_POLICY_BUNDLE_BYTES) return content
    throw tooLarge(file, 'more bytes than it says')
  } catch (thrown) {
    if (thrown instanceof AdmissionError) throw thrown
    const message = `cannot read ${file}: ${fileReason(thrown)}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause: thrown })
  }
}

function tooLarge(file: string, size: string): AdmissionError {
  const message = `${file} has ${size}; functions read at most ${MAX_POLICY_BUNDLE_BYTES}`
  return new AdmissionError('POLICY_BUNDLE_REFUSED', message)
}

/** Devices and pipes have no size, and may have no end. */
async function readAtMost(file: string, bytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of createReadStream(file, { end: bytes - 1 })) chunks.push(chunk)
  return concat(...chunks)
}

/** Verifies a bundle as the functions of this config do. Throws when nobody can tell: a key service that does not answer. */
export async function examineBundle(
  file: string,
  content: Uint8Array,
  { config, platform, now }: { config: Config; platform: Platform; now: number },
): Promise<BundleVerdict> {
  const { policyBundle } = config
  if (policyBundle === undefined) throw new TypeError('the config has no policyBundle')
  let summary: BundleSummary | undefined
  try {
    const key = bundleKey(policyBundle, config, platform)
    const payload = await openBundle(content, key, AbortSignal.timeout(CHECK_MS))
    summary = await summaryOf({ file, content, payload, now })
    const accepted = await acceptPayload(payload, config, undefined, now)
    if (accepted === undefined) throw new TypeError('nothing is in use here')
    const { deployment } = accepted
    const sets = config.clusters.map((cluster) => [
      cluster.name,
      policiesOf(deployment, cluster, nodeHash).policySet,
    ])
    return {
      verdict: 'accepted',
      summary,
      deployment: deployment.hash,
      policySets: Object.fromEntries(sets),
    }
  } catch (thrown) {
    const { code, message } = toAdmissionError(thrown, 'checking the bundle')
    if (code !== 'POLICY_BUNDLE_REFUSED') throw thrown
    return { verdict: 'refused', reason: message, summary }
  }
}

async function summaryOf({
  file,
  content,
  payload,
  now,
}: {
  file: string
  content: Uint8Array
  payload: Uint8Array
  now: number
}): Promise<BundleSummary> {
  const read: PolicyPayload = readPayload(payload)
  const { audience, sequence, issuedAt, expiresAt, pinned, policies } = read
  return {
    file,
    bytes: content.length,
    bundle: toHex(await sha256(payload)),
    sequence,
    issuedAt: new Date(issuedAt).toISOString(),
    ageSeconds: Math.max(0, Math.round((now - issuedAt) / 1000)),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    endpoints: audience.endpoints,
    clusters: audience.clusters,
    policies: policyKeys(policies),
    ...(pinned !== undefined && { pinnedKeys: pinned.keys.length }),
  }
}
