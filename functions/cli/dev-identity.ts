import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { writeWhole } from '#functions/write.ts'
import { newToken } from './token.ts'

/** Who `countersign dev` is to its callers: certificates and a token. Kept, so that a webhook configuration stays right after a restart. */
export interface DevIdentity {
  certificates: DevCertificates
  token: string
}

interface Stored extends DevIdentity {
  hosts: readonly string[]
  /** Epoch milliseconds. */
  issuedAt: number
}

const FILE = 'dev.json'
/** Certificates are renewed long before they expire. Milliseconds. */
const RENEW_AFTER_MS = 180 * 86_400_000

/**
 * The identity kept in this folder, or a new one where there is none, it is old, or it is for other hosts. Only its owner may read it.
 * Throws `CONFIG_INVALID` where it cannot be kept.
 */
export async function devIdentity(folder: string, hosts: readonly string[]): Promise<DevIdentity> {
  const file = path.join(folder, FILE)
  const stored = await readStored(file)
  if (stored !== undefined && isGood(stored, hosts)) return stored
  const made: Stored = {
    certificates: await createDevCertificates({ hosts }),
    token: stored?.token ?? newToken(),
    hosts,
    issuedAt: Date.now(),
  }
  const files = [
    // The folder is nothing to commit, wherever it is.
    { file: path.join(folder, '.gitignore'), content: '*\n' },
    { file, content: JSON.stringify(made), mode: 0o600 },
    { file: path.join(folder, 'ca.pem'), content: made.certificates.ca },
  ]
  await writeWhole(files, { folderMode: 0o700 })
  return made
}

/** What an earlier run left, or undefined: whatever is not readable is made anew. */
async function readStored(file: string): Promise<Stored | undefined> {
  try {
    // This file is ours; a damaged one fails the check that follows.
    const stored = JSON.parse(await readFile(file, 'utf8')) as Partial<Stored> | null
    const { certificates, token, hosts, issuedAt } = stored ?? {}
    return certificates && token && hosts && issuedAt
      ? { certificates, token, hosts, issuedAt }
      : undefined
  } catch {
    return undefined
  }
}

function isGood(stored: Stored, hosts: readonly string[]): boolean {
  return stored.hosts.join() === hosts.join() && Date.now() - stored.issuedAt < RENEW_AFTER_MS
}
