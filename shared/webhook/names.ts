import { sha256, toHex, utf8 } from '../bytes.ts'
import type { PolicySource } from './sources.ts'
import type { WebhookPhase } from './types.ts'

/** What names end in when nothing else is said. */
export const DEFAULT_BASE_NAME = 'countersign.dev'
/** The base of Kyverno's names: configurations are then called as its own are. */
export const UPSTREAM_BASE_NAME = 'kyverno.svc'

/** A DNS subdomain, characters. */
const MAX_NAME_CHARS = 253
const SHORT = 8

/** What tells one entry from all others of a configuration. */
export interface EntryIdentity {
  route: PolicySource['route']
  failure: 'fail' | 'ignore'
  /** A policy with a webhook of its own, or the hash of the selectors that others share. */
  of: { policy: PolicySource } | { selectors: string; isOnly: boolean }
}

/** How webhooks are named below a base name. */
interface Style {
  /** `tail` stands where two names would otherwise be the same or too long. */
  name: (identity: EntryIdentity, phase: WebhookPhase, tail?: string) => string
  configuration: (phase: WebhookPhase) => string
}

/**
 * The names of the entries of one configuration, in their order, each of them once (specs/image-validating-policy.md 7.4 and 7.5). Names that
 * would be there twice, or that are too long for DNS, end in a hash of what they are about.
 */
export async function entryNames(
  entries: readonly EntryIdentity[],
  phase: WebhookPhase,
  baseName: string,
): Promise<string[]> {
  const { name } = styleOf(baseName)
  const names = entries.map((entry) => name(entry, phase))
  const hashed = new Set<number>()
  // A policy may be called what the hash of another one gives, and then ends in its own.
  for (;;) {
    const clashing = names.flatMap((text, index) =>
      !hashed.has(index) && (text.length > MAX_NAME_CHARS || isTwiceIn(names, text)) ? [index] : [],
    )
    if (clashing.length === 0) return names
    for (const index of clashing) {
      const entry = entries[index]
      if (entry !== undefined) names[index] = name(entry, phase, await hashOf(entry))
      hashed.add(index)
    }
  }
}

function isTwiceIn(names: readonly string[], text: string): boolean {
  return names.indexOf(text) !== names.lastIndexOf(text)
}

/** `metadata.name` of a configuration. */
export function configurationName(phase: WebhookPhase, baseName: string): string {
  return styleOf(baseName).configuration(phase)
}

async function hashOf({ route, of }: EntryIdentity): Promise<string> {
  const identity = 'policy' in of ? `${route}/${of.policy.key}` : of.selectors
  return toHex(await sha256(utf8(identity))).slice(0, 2 * SHORT)
}

function styleOf(baseName: string): Style {
  return baseName === UPSTREAM_BASE_NAME ? upstream(baseName) : ours(baseName)
}

/** `ivpol-fail-95cb9b4f.mutate.countersign.dev`, `signed-images.ivpol-fail.mutate.countersign.dev`: another policy or selector renames none of them. */
function ours(baseName: string): Style {
  return {
    name: ({ route, failure, of }, phase, tail) => {
      const end = `${phase}.${baseName}`
      if ('selectors' in of) {
        return `${route}-${failure}-${tail ?? of.selectors.slice(0, SHORT)}.${end}`
      }
      const { name, namespace } = of.policy.base
      const policy = tail ?? (namespace === undefined ? name : `${name}.${namespace}`)
      return `${policy}.${route}-${failure}.${end}`
    },
    configuration: (phase) => `${phase}.${baseName}`,
  }
}

/** Kyverno's, except that namespaced policies have a base of their own: sharing one gives two webhooks of one name (7.2). */
function upstream(baseName: string): Style {
  return {
    name: ({ route, failure, of }, phase, tail) => {
      const start = `${route}.${phase}.${baseName}-${failure}`
      if ('selectors' in of) {
        if (of.isOnly && tail === undefined) return start
        return `${start}-${tail ?? of.selectors.slice(0, SHORT)}`
      }
      const { name, namespace } = of.policy.base
      const policy = namespace === undefined ? name : `${namespace}-${name}`
      const room = MAX_NAME_CHARS - `${start}-finegrained--`.length - (tail?.length ?? 0)
      return tail === undefined
        ? `${start}-finegrained-${policy}`
        : `${start}-finegrained-${policy.slice(0, room).replace(/[-.]+$/, '')}-${tail}`
    },
    configuration: (phase) =>
      `kyverno-resource-${phase === 'mutate' ? 'mutating' : 'validating'}-webhook-cfg`,
  }
}
