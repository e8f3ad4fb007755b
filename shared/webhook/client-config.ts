import { fromBase64, fromUtf8 } from '../bytes.ts'
import { isSubdomain } from '../policy/names.ts'
import { integer, object, optional, required, type Shape, text, words } from '../policy/shape.ts'

const FORMAT = 'desired format: https://host[/path]'
const URL_PARTS =
  /^(?<scheme>[A-Za-z][A-Za-z0-9+.-]*):\/\/(?<authority>[^/?#]*)(?<path>[^?#]*)(?<query>\?[^#]*)?(?<fragment>#.*)?$/
/** A host as Go's parser takes one, with an optional port. */
const HOST =
  /^(?:\[[0-9A-Fa-f:.]+(?:%25[A-Za-z0-9._~-]+)?\]|[A-Za-z0-9._~!$&'()*+,;=-]*)(?::[0-9]*)?$/

/** What the API server objects to in the URL of a webhook, everything at once (specs/kubernetes-admission.md 3.2). */
export function urlFaults(url: string): string[] {
  const parts = URL_PARTS.exec(url)?.groups
  const authority = parts?.authority ?? ''
  const at = authority.lastIndexOf('@')
  const host = authority.slice(at + 1)
  if (parts === undefined || isUnreadable(url, host)) {
    return [`Required value: url must be a valid URL; ${FORMAT}`]
  }
  const { scheme = '', query = '', fragment = '' } = parts
  const faults: [boolean, string][] = [
    [
      scheme.toLowerCase() !== 'https',
      `Invalid value: ${JSON.stringify(scheme)}: 'https' is the only allowed URL scheme; ${FORMAT}`,
    ],
    [host === '', `Invalid value: "": host must be specified; ${FORMAT}`],
    [at >= 0, 'Invalid value: user information is not permitted in the URL'],
    [fragment.length > 1, 'Invalid value: fragments are not permitted in the URL'],
    [query.length > 1, 'Invalid value: query parameters are not permitted in the URL'],
  ]
  return faults.flatMap(([isWrong, message]) => (isWrong ? [message] : []))
}

function isUnreadable(url: string, host: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses exactly these
  return /[\u0000-\u001f\u007f]/.test(url) || /%(?![0-9A-Fa-f]{2})/.test(url) || !HOST.test(host)
}

/** What the API server objects to in the path of a Service; each segment is a DNS-1123 subdomain. */
export function servicePathFaults(path: string): string[] {
  if (path === '' || path === '/') return []
  if (!path.startsWith('/')) return ["Invalid value: must start with a '/'"]
  const segments = path.slice(1).split('/')
  if (segments.length > 1 && segments.at(-1) === '') segments.pop()
  return segments.flatMap((segment, index) => {
    if (segment === '') return [`Invalid value: segment[${index}] may not be empty`]
    return isSubdomain(segment)
      ? []
      : [
          `Invalid value: segment[${index}]: must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.'`,
        ]
  })
}

/** A text with faults of its own. The value is in no message: a URL holds the token of a cluster. */
function checked(faultsOf: (value: string) => string[]): Shape<string> {
  return (value, path, faults) => {
    const string = text(value, path, faults)
    if (string === undefined) return undefined
    for (const message of faultsOf(string)) faults.add(path, message)
    return string
  }
}

/** The API server takes any bytes and fails at each call. */
function bundleFaults(bundle: string): string[] {
  const bytes = fromBase64(bundle)
  const isPem = bytes !== undefined && fromUtf8(bytes).includes('-----BEGIN CERTIFICATE-----')
  return isPem ? [] : ['Invalid value: must be the base64 of PEM certificates']
}

const service = object({
  namespace: required(words),
  name: required(words),
  path: optional(checked(servicePathFaults)),
  port: optional(integer(1, 65_535)),
})

/** `clientConfig`: a URL or a Service. `isStatic`: of manifest-based admission, which knows no Services. */
export function clientConfig(isStatic: boolean) {
  return object(
    {
      url: optional(checked(urlFaults)),
      service: optional(service),
      caBundle: optional(checked(bundleFaults)),
    },
    ({ url, service: hasService }, path, faults) => {
      if ((url === undefined) === (hasService === undefined)) {
        faults.add(path, 'Required value: exactly one of url or service is required')
      }
      if (isStatic && hasService !== undefined) {
        faults.add(
          [...path, 'service'],
          'Forbidden: manifest-based webhooks are called by url only',
        )
      }
    },
  )
}
