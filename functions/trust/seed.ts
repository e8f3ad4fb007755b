import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Bytes, fromBase64 } from '#shared/bytes.ts'
import { type JsonValue, parseJson } from '#shared/json.ts'
import { dig } from '#shared/signature/content.ts'
import { PUBLIC_GOOD } from './mirror.ts'

/** The target of a Sigstore TUF repository that holds its trusted root. */
export const TRUSTED_ROOT = 'trusted_root.json'

/** What a client of a TUF repository starts from. */
export interface Seed {
  /** The TUF root: whoever may sign the repository's metadata. */
  root: Bytes
  trustedRoot: Bytes
}

/**
 * The copy of the public-good instance that Sigstore publishes in its own package. It is as old as that package: good enough to verify
 * what was signed until then, and to start a refresh from. Throws `TypeError` when the package is not what it was.
 */
export function publicGoodSeed(): Seed {
  const file = createRequire(import.meta.url).resolve('@sigstore/tuf/seeds.json')
  const seeds = dig(parseJson(readFileSync(file, 'utf8')), PUBLIC_GOOD)
  const root = bytesOf(dig(seeds, 'root.json'))
  const trustedRoot = bytesOf(dig(seeds, 'targets', TRUSTED_ROOT))
  if (root === undefined || trustedRoot === undefined) {
    throw new TypeError('@sigstore/tuf has no copy of the public-good instance')
  }
  return { root, trustedRoot }
}

const bytesOf = (value: JsonValue | undefined): Bytes | undefined =>
  typeof value === 'string' ? fromBase64(value) : undefined
