/** The name rules of Kubernetes and CEL that policy documents must keep. */

const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
const NAME_PART = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Words of CEL that cannot name a variable (kubernetes-admission.md 5.3). */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while'
  ).split(' '),
)

/** True for a DNS-1123 subdomain: what objects, and parts of URLs, may be called. */
export function isSubdomain(name: string): boolean {
  return name.length <= 253 && SUBDOMAIN.test(name)
}

/** True for a DNS-1123 label: what namespaces may be called. */
export function isNamespace(name: string): boolean {
  return name.length <= 63 && !name.includes('.') && SUBDOMAIN.test(name)
}

/** True for `name` or `prefix.example/name`: a label key, or the name of a match condition. */
export function isQualifiedName(name: string): boolean {
  const slash = name.indexOf('/')
  const part = name.slice(slash + 1)
  const prefix = slash < 0 ? undefined : name.slice(0, slash)
  return part.length <= 63 && NAME_PART.test(part) && (prefix === undefined || isSubdomain(prefix))
}

/** True for the value of a label: empty, or at most 63 of letters, digits, `-`, `_` and `.`. */
export function isLabelValue(value: string): boolean {
  return value === '' || (value.length <= 63 && NAME_PART.test(value))
}

/** True for a name that an expression can write after `variables.`. */
export function isIdentifier(name: string): boolean {
  return IDENTIFIER.test(name) && !RESERVED.has(name)
}
