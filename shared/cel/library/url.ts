import { utf8 } from '../../bytes.ts'
import { type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { CelError, CelMap, Opaque } from '../values.ts'
import { parseIp } from './ip.ts'

/** The parts of a URL as Go's net/url keeps them, still percent-encoded where Go keeps them so. */
interface Parts {
  scheme: string
  opaque: string
  userinfo: string | undefined
  host: string
  /** The path as it was written. */
  path: string
  forceQuery: boolean
  query: string
  fragment: string
  /** Written as `scheme:/path`, without an authority. */
  omitHost: boolean
}

/** A URL. */
export class Url extends Opaque {
  readonly type = 'kubernetes.URL'
  readonly parts: Parts
  constructor(parts: Parts) {
    super()
    this.parts = parts
  }

  /** The URL put together again as Go prints it. */
  get key(): string {
    const { scheme, opaque, userinfo, host, path, forceQuery, query, fragment, omitHost } =
      this.parts
    let out = scheme === '' ? '' : `${scheme}:`
    if (opaque !== '') out += opaque
    else {
      const authority = scheme !== '' || host !== '' || userinfo !== undefined
      if (authority && !(omitHost && host === '' && userinfo === undefined)) {
        if (host !== '' || path !== '' || userinfo !== undefined) out += '//'
        out += userinfo === undefined ? '' : `${printUserinfo(userinfo)}@`
        out += encodeHost(host)
      }
      if (path !== '' && !path.startsWith('/') && host !== '') out += '/'
      out += escapedPath(path)
    }
    if (forceQuery || query !== '') out += `?${query}`
    return fragment === '' ? out : `${out}#${escapedFragment(fragment)}`
  }
}

function failed(text: string, why: string): CelError {
  return new CelError(
    `URL parse error during conversion from string: parse ${JSON.stringify(text)}: ${why}`,
  )
}

/** The URL, or why the text is none: an absolute URI or an absolute path, as an HTTP request takes it. */
export function parseUrl(text: string): Url | CelError {
  if (text === '') return failed(text, 'empty url')
  // The first pass takes `#` for an ordinary character, the second cuts the fragment off.
  const strict = parseParts(text, true)
  if (typeof strict === 'string') return failed(text, strict)
  const hash = text.indexOf('#')
  const body = hash < 0 ? text : text.slice(0, hash)
  const fragment = hash < 0 ? '' : text.slice(hash + 1)
  const parts = parseParts(body, false)
  if (typeof parts === 'string') return failed(body, parts)
  const bad = badEscape(fragment)
  if (bad !== undefined) return failed(text, `invalid URL escape ${JSON.stringify(bad)}`)
  return new Url({ ...parts, fragment })
}

/** Why the text cannot be the URI of a request, in Go's words; undefined when it can. */
export function requestUrlFault(text: string): string | undefined {
  const parts = text === '' ? 'empty url' : parseParts(text, true)
  return typeof parts === 'string' ? `parse ${JSON.stringify(text)}: ${parts}` : undefined
}

/** The parts, or what is wrong; `request` refuses what cannot stand in a request line. */
function parseParts(text: string, request: boolean): Parts | string {
  if (hasControl(text)) return 'net/url: invalid control character in URL'
  const parts: Parts = {
    scheme: '',
    opaque: '',
    userinfo: undefined,
    host: '',
    path: '',
    forceQuery: false,
    query: '',
    fragment: '',
    omitHost: false,
  }
  if (text === '*') return { ...parts, path: '*' }
  const scheme = schemeOf(text)
  if (scheme === undefined) return 'missing protocol scheme'
  parts.scheme = scheme.toLowerCase()
  let rest = scheme === '' ? text : text.slice(scheme.length + 1)
  const mark = rest.indexOf('?')
  if (mark >= 0) {
    parts.forceQuery = mark === rest.length - 1
    parts.query = rest.slice(mark + 1)
    rest = rest.slice(0, mark)
  }
  return parseHierarchy(parts, rest, request)
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x20 || unit === 0x7f) return true
  }
  return false
}

/** The scheme, empty when there is none, undefined when the text starts with a colon. */
function schemeOf(text: string): string | undefined {
  if (text.startsWith(':')) return undefined
  return /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1] ?? ''
}

function parseHierarchy(parts: Parts, text: string, request: boolean): Parts | string {
  let rest = text
  if (!rest.startsWith('/')) {
    if (parts.scheme !== '') return { ...parts, opaque: rest }
    if (request) return 'invalid URI for request'
    if (rest.split('/', 1)[0]?.includes(':')) {
      return 'first path segment in URL cannot contain colon'
    }
  }
  const authority = parts.scheme !== '' || (!request && !rest.startsWith('///'))
  if (authority && rest.startsWith('//')) {
    const slash = rest.indexOf('/', 2)
    const fault = parseAuthority(parts, slash < 0 ? rest.slice(2) : rest.slice(2, slash))
    if (fault !== undefined) return fault
    rest = slash < 0 ? '' : rest.slice(slash)
  } else if (parts.scheme !== '') parts.omitHost = true
  const bad = badEscape(rest)
  return bad === undefined ? { ...parts, path: rest } : `invalid URL escape ${JSON.stringify(bad)}`
}

/** The first `%` that two hexadecimal digits do not follow, with what does. */
function badEscape(text: string): string | undefined {
  return /%(?![0-9A-Fa-f]{2})[\s\S]{0,2}/.exec(text)?.[0]
}

const USERINFO = /^[A-Za-z0-9._:~!$&'()*+,;=%@-]*$/

function parseAuthority(parts: Parts, authority: string): string | undefined {
  const at = authority.lastIndexOf('@')
  const host = parseHost(authority.slice(at + 1))
  if ('fault' in host) return host.fault
  parts.host = host.text
  if (at < 0) return undefined
  const userinfo = authority.slice(0, at)
  if (!USERINFO.test(userinfo)) return 'net/url: invalid userinfo'
  const bad = badEscape(userinfo)
  if (bad !== undefined) return `invalid URL escape ${JSON.stringify(bad)}`
  parts.userinfo = userinfo
  return undefined
}

function parseHost(host: string): { text: string } | { fault: string } {
  if (host.startsWith('[')) {
    const end = host.lastIndexOf(']')
    if (end < 0) return { fault: "missing ']' in host" }
    const port = host.slice(end + 1)
    if (!isPort(port)) return { fault: `invalid port ${JSON.stringify(port)} after host` }
    const address = parseIp(host.slice(1, end).replace(/%25.+$/, ''))
    return address instanceof CelError ? { fault: 'invalid host' } : unescapeHost(host)
  }
  const colon = host.indexOf(':')
  if (colon >= 0 && !isPort(host.slice(colon))) {
    return { fault: `invalid port ${JSON.stringify(host.slice(colon))} after host` }
  }
  return unescapeHost(host)
}

function isPort(text: string): boolean {
  return /^(:\d*)?$/.test(text)
}

/** In a host only what is not ASCII may be percent-encoded, and `%25` before a zone. */
function unescapeHost(host: string): { text: string } | { fault: string } {
  const bad = badEscape(host) ?? /%(?!25)[0-7][0-9A-Fa-f]/.exec(host)?.[0]
  if (bad !== undefined) return { fault: `invalid URL escape ${JSON.stringify(bad)}` }
  const odd = /[^A-Za-z0-9._~!$&'()*+,;=:[\]<>"%\u0080-\u{10ffff}-]/u.exec(host)?.[0]
  if (odd !== undefined) return { fault: `invalid character ${JSON.stringify(odd)} in host name` }
  return { text: percentDecode(host) }
}

/** User and password, encoded anew. */
function printUserinfo(userinfo: string): string {
  const colon = userinfo.indexOf(':')
  const parts = colon < 0 ? [userinfo] : [userinfo.slice(0, colon), userinfo.slice(colon + 1)]
  const encode = (part: string) => percentEncode(percentDecode(part), /[A-Za-z0-9._~$&+,;=-]/)
  return parts.map(encode).join(':')
}

function encodeHost(host: string): string {
  return percentEncode(host, /[A-Za-z0-9._~!$&'()*+,;=:[\]<>"-]/)
}

/** The path encoded: as it was written when that is a valid encoding, else encoded anew. */
function escapedPath(path: string): string {
  if (/^[A-Za-z0-9._~!$&'()*+,;=:@[\]/%-]*$/.test(path) || path === '*') return path
  return percentEncode(percentDecode(path), /[A-Za-z0-9._~$&+,/:;=@-]/)
}

function escapedFragment(fragment: string): string {
  if (/^[A-Za-z0-9._~!$&'()*+,;=:@[\]/?%-]*$/.test(fragment)) return fragment
  return percentEncode(percentDecode(fragment), /[A-Za-z0-9._~!$&'()*+,;=:@/?-]/)
}

function percentEncode(text: string, plain: RegExp): string {
  let out = ''
  for (const point of text) {
    if (plain.test(point)) out += point
    else {
      for (const byte of utf8(point)) {
        out += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
      }
    }
  }
  return out
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

function percentDecode(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (run) => {
    const bytes = run.slice(1).split('%')
    return decoder.decode(Uint8Array.from(bytes, (hex) => Number.parseInt(hex, 16)))
  })
}

/** The query's keys, each with all its values in order; parts that cannot be decoded are left out, as Go leaves them out. */
function queryOf({ parts }: Url): CelMap {
  const lists = new Map<string, string[]>()
  for (const pair of parts.query.split('&')) {
    if (pair === '' || pair.includes(';') || badEscape(pair) !== undefined) continue
    const equals = pair.indexOf('=')
    const key = queryText(equals < 0 ? pair : pair.slice(0, equals))
    const value = equals < 0 ? '' : queryText(pair.slice(equals + 1))
    const known = lists.get(key)
    if (known === undefined) lists.set(key, [value])
    else known.push(value)
  }
  const out = new CelMap()
  for (const [key, values] of lists) out.set(key, values)
  return out
}

function queryText(text: string): string {
  return percentDecode(text.replaceAll('+', ' '))
}

/** Where the port starts in a host, or its end. */
function portStart(host: string): number {
  const colon = host.lastIndexOf(':')
  return colon >= 0 && isPort(host.slice(colon)) && colon > host.lastIndexOf(']')
    ? colon
    : host.length
}

function hostnameOf({ parts: { host } }: Url): string {
  const name = host.slice(0, portStart(host))
  return name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
}

const url: Guard<Url> = instance(Url)

/** URLs. */
export const urls: Library = {
  string_to_url: overload('url', [string], parseUrl),
  is_url_string: overload('isURL', [string], (text) => parseUrl(text) instanceof Url),
  url_get_scheme: overload('getScheme', [url], (value) => value.parts.scheme),
  url_get_host: overload('getHost', [url], (value) => value.parts.host),
  url_get_hostname: overload('getHostname', [url], hostnameOf),
  url_get_port: overload('getPort', [url], ({ parts: { host } }) =>
    host.slice(portStart(host) + 1),
  ),
  url_get_escaped_path: overload('getEscapedPath', [url], (value) => escapedPath(value.parts.path)),
  url_get_query: overload('getQuery', [url], queryOf),
}
