/** Where a credential applies: a key of a docker config, taken apart. */
export interface HostPattern {
  /** Labels of the host, lower case; `*` inside a label stands for any characters of that label. */
  labels: readonly string[]
  /** As written; empty when there is none. */
  port: string
  /** Segments of the repository prefix. */
  path: readonly string[]
}

/** Three names of one registry: as go-containerregistry, as Docker's config and as the API calls it. */
const DOCKER_HUB: ReadonlySet<string> = new Set([
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io',
])

const KEY = /^(?:https?:\/\/)?([^/:?#@[\]\s]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?((?:\/[^?#\s]*)?)$/i

/**
 * The pattern a docker config key stands for, or undefined when it is none: `host`, `host:port`, with an optional scheme
 * and path, where a leading `/v1` or `/v2` means nothing (Kubernetes' rules for image pull secrets).
 *
 * @example parseHostPattern('https://*.registry.example/team') // labels ['*', 'registry', 'example'], path ['team']
 */
export function parseHostPattern(key: string): HostPattern | undefined {
  const [, host, port = '', rest = ''] = KEY.exec(key) ?? []
  if (host === undefined) return undefined
  const labels = labelsOf(host)
  if (!host.startsWith('[') && !labels.every((label) => /^[a-z0-9_*-]+$/.test(label))) {
    return undefined
  }
  const path = rest.split('/').filter((segment) => segment !== '')
  if (path[0] === 'v1' || path[0] === 'v2') path.shift()
  return { labels, port, path }
}

/**
 * True when the pattern covers this host and repository: as many labels, each equal or matched by its own `*`, the same
 * port, and a path that is a prefix by whole segments.
 */
export function matchesHost(pattern: HostPattern, host: string, repository: string): boolean {
  const [, name, port = '', rest = ''] = KEY.exec(host) ?? []
  if (name === undefined || port !== pattern.port || rest !== '') return false
  const labels = labelsOf(name)
  const segments = repository.split('/')
  return (
    labels.length === pattern.labels.length &&
    pattern.labels.every((label, at) => matchesLabel(label, labels[at] ?? '')) &&
    pattern.path.every((segment, at) => segment === segments[at])
  )
}

/** Negative when `a` says more than `b`: a longer path first, then fewer `*`. */
export function compareSpecificity(a: HostPattern, b: HostPattern): number {
  return b.path.length - a.path.length || stars(a) - stars(b)
}

function stars(pattern: HostPattern): number {
  return pattern.labels.join('').split('*').length - 1
}

function labelsOf(host: string): string[] {
  const lower = host.toLowerCase()
  if (lower.startsWith('[')) return [lower]
  return (DOCKER_HUB.has(lower) ? 'index.docker.io' : lower).split('.')
}

/** A glob of `*` only, in time linear in pattern and text: the pieces between the stars, leftmost first. */
function matchesLabel(glob: string, label: string): boolean {
  const pieces = glob.split('*')
  const first = pieces.shift() ?? ''
  const last = pieces.pop()
  if (last === undefined) return glob === label
  if (!label.startsWith(first)) return false
  let at = first.length
  for (const piece of pieces) {
    const found = label.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return label.length - last.length >= at && label.endsWith(last)
}
