import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import type { TrustEntry } from '#functions/config.ts'
import { type Bytes, fromUtf8 } from '#shared/bytes.ts'
import { AdmissionError, type Fault, toAdmissionError } from '#shared/errors.ts'
import { MAX_TRUSTED_ROOT_BYTES } from '#shared/limits.ts'
import type { LoadOptions } from '#shared/policy/load.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import { endedReason, endingSoon, materialsOf } from './material.ts'
import { metadataFolder, type RepositoryState, readState, staleness, stateOf } from './metadata.ts'
import { mirrorOf, PUBLIC_GOOD } from './mirror.ts'
import { publicGoodSeed } from './seed.ts'

/** The trusted roots that policies may name by their mirror. */
export interface TrustStore {
  /** For the loader of policies. */
  options: Required<Pick<LoadOptions, 'trustedRoot' | 'tufRootHash'>>
  /** What an operator should know about the roots that were asked for so far. */
  notes(): Fault[]
}

interface Entry {
  text: string
  rootHash?: string
  notes: Fault[]
}

/**
 * The trusted roots of a config's `trust` list, and Sigstore's own copy for the public-good instance unless the list has a newer one. Throws
 * `CONFIG_INVALID` with the path of every entry whose files cannot be read, hold no trusted root, or one that has ended.
 *
 * @param now epoch milliseconds
 */
export async function loadTrust(
  entries: readonly TrustEntry[],
  folder: string,
  now: number,
): Promise<TrustStore> {
  const faults: Fault[] = []
  const known = new Map<string, Entry>()
  for (const [index, entry] of entries.entries()) {
    const loaded = await loadEntry(entry, { folder, index, now, faults })
    if (loaded !== undefined) known.set(mirrorOf(entry.mirror), loaded)
  }
  if (faults.length > 0) {
    const lines = faults.map((fault) => `${fault.path}: ${fault.message}`)
    throw new AdmissionError('CONFIG_INVALID', lines.join('\n'), { faults })
  }
  return createStore(known, now)
}

function createStore(known: ReadonlyMap<string, Entry>, now: number): TrustStore {
  const used = new Map<string, Entry>()
  let seed: Entry | undefined
  const find = (mirror: string | undefined) => {
    const name = mirrorOf(mirror)
    if (name === PUBLIC_GOOD && !known.has(name)) seed ??= seedEntry(now)
    const entry = known.get(name) ?? (name === PUBLIC_GOOD ? seed : undefined)
    if (entry !== undefined) used.set(name, entry)
    return entry
  }
  return {
    options: {
      trustedRoot: (mirror) => find(mirror)?.text,
      tufRootHash: (mirror) => find(mirror)?.rootHash,
    },
    notes: () => [...used.values()].flatMap(({ notes }) => notes),
  }
}

/** The public-good instance as of the package's making: read only when a policy asks for it. */
function seedEntry(now: number): Entry {
  const seed = publicGoodSeed()
  const root = stateOf(seed.root, 'root')
  const about = 'the trusted root of the public-good instance that came with this package'
  const fix = '`countersign trust` fetches the current one for the trust list of the config'
  return {
    text: fromUtf8(seed.trustedRoot),
    rootHash: sha256Hex(seed.root),
    notes: concerns(seed.trustedRoot, root === undefined ? {} : { root }, now).map((concern) => ({
      path: 'trust',
      message: `${about}: ${concern}; ${fix}`,
    })),
  }
}

interface Loading {
  folder: string
  index: number
  now: number
  faults: Fault[]
}

async function loadEntry(entry: TrustEntry, loading: Loading): Promise<Entry | undefined> {
  const { folder, index, now, faults } = loading
  const at = (member: string) => `trust[${index}].${member}`
  const file = path.join(folder, entry.trustedRoot)
  const fix = `\`${commandFor(entry, folder)}\` writes it`
  const trustedRoot = await attempt(at('trustedRoot'), faults, async () => {
    const bytes = await readBounded(file, fix)
    await loadTrustedRoot(bytes)
    const reason = endedReason(materialsOf(bytes), now)
    if (reason !== undefined)
      throw new AdmissionError('CONFIG_INVALID', `${file}: ${reason}; ${fix}`)
    return bytes
  })
  const rootHash = await attempt(at('root'), faults, async () => {
    if (entry.root === undefined) return undefined
    return rootHashOf(
      await readBounded(
        path.join(folder, entry.root),
        'it is 1.root.json or a later one of the mirror',
      ),
      entry.root,
    )
  })
  if (trustedRoot === undefined) return undefined
  const state = await readState(metadataFolder(file))
  const refresh = `\`${commandFor(entry, folder)}\` refreshes it`
  return {
    text: fromUtf8(trustedRoot),
    ...(rootHash === undefined ? {} : { rootHash }),
    notes: concerns(trustedRoot, state, now).map((concern) => ({
      path: at('trustedRoot'),
      message: `${file}: ${concern}; ${refresh}`,
    })),
  }
}

/** What is wrong with a trusted root that still counts, as clauses; empty when nothing is. */
export function concerns(trustedRoot: Uint8Array, state: RepositoryState, now: number): string[] {
  const stale = staleness(state, now)
  return [...endingSoon(materialsOf(trustedRoot), now), ...(stale === undefined ? [] : [stale])]
}

/** The command line that writes an entry's trusted root. */
function commandFor({ mirror, trustedRoot, root }: TrustEntry, folder: string): string {
  const options = [
    ...(mirrorOf(mirror) === PUBLIC_GOOD ? [] : ['--mirror', mirror]),
    ...(root === undefined ? [] : ['--root', path.join(folder, root)]),
    '--out',
    path.join(folder, trustedRoot),
  ]
  return `countersign trust ${options.join(' ')}`
}

async function attempt<T>(
  where: string,
  faults: Fault[],
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work()
  } catch (thrown) {
    faults.push({ path: where, message: toAdmissionError(thrown, 'reading').message })
    return undefined
  }
}

async function readBounded(file: string, fix: string): Promise<Bytes> {
  const found = await stat(file).catch(() => undefined)
  if (!found?.isFile()) throw new AdmissionError('CONFIG_INVALID', `no file ${file}; ${fix}`)
  if (found.size > MAX_TRUSTED_ROOT_BYTES) {
    const message = `${file} has ${found.size} bytes; at most ${MAX_TRUSTED_ROOT_BYTES} are read`
    throw new AdmissionError('CONFIG_INVALID', message)
  }
  return new Uint8Array(await readFile(file))
}

/** SHA-256 hex of a TUF root. Throws `CONFIG_INVALID` when it is none. */
function rootHashOf(root: Uint8Array, file: string): string {
  if (stateOf(root, 'root') === undefined) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      `${file} is no TUF root: it has no signed version and end`,
    )
  }
  return sha256Hex(root)
}

const sha256Hex = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
