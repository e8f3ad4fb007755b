import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { AdmissionError } from '#shared/errors.ts'
import { decodeJson } from '#shared/json.ts'
import { TRUST_STALE_DAYS } from '#shared/limits.ts'
import { dig } from '#shared/signature/content.ts'
import { fileReason } from '../file-reason.ts'
import { dayOf } from './material.ts'

/** TUF's top-level roles, in the order a client reads them. */
export const ROLES = ['root', 'timestamp', 'snapshot', 'targets'] as const
export type Role = (typeof ROLES)[number]

/** Version and end of one role's metadata. */
export interface RoleState {
  version: number
  /** RFC 3339. */
  expires: string
}

/** What is known of a repository's metadata. */
export type RepositoryState = Partial<Record<Role, RoleState>>

const DAY_MS = 86_400_000

/**
 * The folder that keeps the metadata of the repository a trusted root came from: `trusted_root.tuf` beside `trusted_root.json`. A later
 * refresh refuses whatever is older than it; it gives no trust.
 */
export const metadataFolder = (trustedRoot: string) => `${trustedRoot.replace(/\.json$/, '')}.tuf`

/** The roles whose metadata is in the folder; those that are missing or no metadata are left out. */
export async function readState(folder: string): Promise<RepositoryState> {
  const state: RepositoryState = {}
  for (const role of ROLES) {
    const bytes = await readIfThere(path.join(folder, `${role}.json`))
    const read = bytes && stateOf(bytes, role)
    if (read) state[role] = read
  }
  return state
}

/** Version and end of a role's metadata, whoever signed it, or undefined when it is none. */
export function stateOf(metadata: Uint8Array, role: Role): RoleState | undefined {
  try {
    const signed = dig(decodeJson(metadata), 'signed')
    const [version, expires] = [dig(signed, 'version'), dig(signed, 'expires')]
    if (dig(signed, '_type') !== role) return undefined
    if (typeof version !== 'number' || typeof expires !== 'string') return undefined
    return Number.isNaN(Date.parse(expires)) ? undefined : { version, expires }
  } catch {
    // Whether it is metadata is what was asked.
    return undefined
  }
}

/** Since when nobody can have refreshed the trusted root, as a sentence, or undefined while that is not long. */
export function staleness({ timestamp, root }: RepositoryState, now: number): string | undefined {
  const end = Date.parse((timestamp ?? root)?.expires ?? '')
  if (!(end + (timestamp ? TRUST_STALE_DAYS * DAY_MS : 0) < now)) return undefined
  return `the metadata it came with ended on ${dayOf(end)}`
}

/** Bytes of a file, or undefined when there is none. Throws `CONFIG_INVALID` when it cannot be read. */
export async function readIfThere(file: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(file)
  } catch (thrown) {
    if (codeOf(thrown) === 'ENOENT') return undefined
    throw new AdmissionError('CONFIG_INVALID', `cannot read ${file}: ${fileReason(thrown)}`, {
      cause: thrown,
    })
  }
}

const codeOf = (thrown: unknown) => (thrown as { code?: string }).code
