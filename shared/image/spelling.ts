/** Names under which Docker Hub answers; with the first, container runtimes fill in `library/`. */
const DOCKER_HUB = [
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io',
  'registry.hub.docker.com',
]
const DEFAULT_PORT = ':443'
const LIBRARY = 'library/'

/** The pieces of a reference, whatever they hold: nothing is checked here. */
interface Pieces {
  /** The registry as written; empty when there is none. */
  host: string
  path: string
  /** `:1.0`, or empty. */
  tag: string
  /** `@sha256:…`, or empty. */
  digest: string
}

/**
 * Every text by which a container runtime would run the same image, the given one first: another case or the default port of the
 * registry, the names of Docker Hub with and without `library/`, `latest` and no tag at all. Also without its digest, because that
 * may have been appended to what somebody wrote. A rule about images that looks at one of them only is no rule: who writes the
 * reference chooses its spelling. Never throws; what no runtime accepts may have any spellings.
 *
 * @example spellings('nginx') // ['nginx', 'nginx:latest', 'library/nginx', …, 'docker.io/library/nginx:latest', …]
 */
export function spellings(text: string): string[] {
  const pieces = piecesOf(text)
  const names = namesOf(pieces)
  const versions = versionsOf(pieces)
  const all = names.flatMap((name) => versions.map((version) => `${name}${version}`))
  return [...new Set([text, ...all])]
}

/**
 * The spellings that differ from the text only in what nobody chooses on purpose: the registry in lower case and without the default
 * port, and the digest left out. The given text first.
 */
export function plainSpellings(text: string): string[] {
  const { host, path, tag, digest } = piecesOf(text)
  const name = host === '' ? path : `${plainHost(host)}/${path}`
  return [...new Set([text, `${name}${tag}${digest}`, `${name}${tag}`])]
}

/** Splits where container runtimes do: they also take a first component with a capital letter for a registry. */
function piecesOf(text: string): Pieces {
  const at = text.indexOf('@')
  const name = at < 0 ? text : text.slice(0, at)
  const digest = at < 0 ? '' : text.slice(at)
  const colon = name.lastIndexOf(':')
  const hasTag = colon > name.lastIndexOf('/')
  const base = hasTag ? name.slice(0, colon) : name
  const tag = hasTag ? name.slice(colon) : ''
  const slash = base.indexOf('/')
  const first = base.slice(0, Math.max(0, slash))
  const isHost = /[.:A-Z]/.test(first) || first === 'localhost'
  return isHost
    ? { host: first, path: base.slice(slash + 1), tag, digest }
    : { host: '', path: base, tag, digest }
}

function namesOf({ host, path }: Pieces): string[] {
  const plain = plainHost(host)
  if (host !== '' && !DOCKER_HUB.includes(plain)) {
    return [host, plain, `${plain}${plain.includes(':') ? '' : DEFAULT_PORT}`].map(
      (spelled) => `${spelled}/${path}`,
    )
  }
  const short = path.startsWith(LIBRARY) ? path.slice(LIBRARY.length) : path
  const paths = short.includes('/') ? [path] : [short, `${LIBRARY}${short}`]
  return ['', ...DOCKER_HUB.map((hub) => `${hub}/`)].flatMap((prefix) =>
    paths.map((each) => `${prefix}${each}`),
  )
}

function versionsOf({ tag, digest }: Pieces): string[] {
  const tags = tag === '' || tag === ':latest' ? ['', ':latest'] : [tag]
  return digest === '' ? tags : [`${tag}${digest}`, digest, ...tags]
}

function plainHost(host: string): string {
  const lower = host.toLowerCase()
  return lower.endsWith(DEFAULT_PORT) ? lower.slice(0, -DEFAULT_PORT.length) : lower
}
