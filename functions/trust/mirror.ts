import { AdmissionError } from '#shared/errors.ts'

/** Sigstore's public-good instance, as its TUF repository is known. */
export const PUBLIC_GOOD = 'https://tuf-repo-cdn.sigstore.dev'

/** The mirror in the one spelling that others compare with: without a slash at its end; the public-good one when none is named. */
export function mirrorOf(mirror: string | undefined): string {
  if (mirror === undefined) return PUBLIC_GOOD
  const url = URL.canParse(mirror) ? new URL(mirror).href : mirror
  return url.replace(/\/+$/, '')
}

/** True for `https://host[/path]`, or `http://` of this machine itself, without a login, query or fragment. */
export function isMirror(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, search, hash } = new URL(text)
  if (username || password || search || hash) return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}

/** For a host as a URL spells it. */
const isLoopback = (host: string) => /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(host)

/** The mirror, checked. Throws `CONFIG_INVALID` for what no repository is fetched from; the text stays out, it may hold a login. */
export function checkMirror(text: string | undefined): string {
  if (text === undefined || isMirror(text)) return mirrorOf(text)
  throw new AdmissionError(
    'CONFIG_INVALID',
    '--mirror: expected https://host[/path] without user, query or fragment (http:// only for this machine itself)',
  )
}
