// What the published schemas allow, as far as reports use it: the CRDs of wgpolicyk8s.io/v1alpha2 and openreports.io/v1alpha1.

type Rule = (value: unknown, where: string) => string[]

const text: Rule = (value, where) => (typeof value === 'string' ? [] : [`${where}: no string`])
const count: Rule = (value, where) => (Number.isInteger(value) ? [] : [`${where}: no integer`])
const flag: Rule = (value, where) => (typeof value === 'boolean' ? [] : [`${where}: no boolean`])
const is =
  (...words: unknown[]): Rule =>
  (value, where) =>
    words.includes(value) ? [] : [`${where}: ${JSON.stringify(value)}`]
const texts: Rule = (value, where) =>
  Object.entries(Object(value)).flatMap(([key, item]) => text(item, `${where}.${key}`))
const list =
  (rule: Rule): Rule =>
  (value, where) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => rule(item, `${where}[${index}]`))
      : [`${where}: no list`]

/** Nothing but these members; those with `!` have to be there. */
function object(members: Record<string, Rule>): Rule {
  return (value, where) => {
    const fields: Record<string, unknown> = { ...Object(value) }
    const known = new Map(
      Object.entries(members).map(([key, rule]) => [key.replace('!', ''), rule]),
    )
    const missing = Object.keys(members).filter(
      (key) => key.endsWith('!') && !(key.slice(0, -1) in fields),
    )
    return [
      ...missing.map((key) => `${where}.${key}: missing`),
      ...Object.entries(fields).flatMap(
        ([key, item]) => known.get(key)?.(item, `${where}.${key}`) ?? [`${where}.${key}: unknown`],
      ),
    ]
  }
}

const reference = object({ apiVersion: text, kind: text, name: text, namespace: text, uid: text })
const result = object({
  source: text,
  'policy!': text,
  rule: text,
  category: text,
  severity: is('critical', 'high', 'low', 'medium', 'info'),
  timestamp: object({ 'seconds!': count, 'nanos!': count }),
  result: is('pass', 'fail', 'warn', 'error', 'skip'),
  scored: flag,
  message: text,
  properties: texts,
})
const metadata = object({
  'name!': (value, where) =>
    /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(String(value)) ? [] : [`${where}: no name`],
  namespace: text,
  labels: texts,
  ownerReferences: list(
    object({ 'apiVersion!': text, 'kind!': text, 'name!': text, 'uid!': text }),
  ),
})
const summary = object({ pass: count, fail: count, warn: count, error: count, skip: count })
const common = { 'metadata!': metadata, scope: reference, summary, results: list(result) }

const REPORTS: Readonly<Record<'policyreport' | 'openreports', Rule>> = {
  policyreport: object({
    ...common,
    'apiVersion!': is('wgpolicyk8s.io/v1alpha2'),
    'kind!': is('PolicyReport', 'ClusterPolicyReport'),
  }),
  openreports: object({
    ...common,
    'apiVersion!': is('openreports.io/v1alpha1'),
    'kind!': is('Report', 'ClusterReport'),
    source: text,
  }),
}

/** What the schema of the API refuses in a document. */
export function faultsOfReport(api: keyof typeof REPORTS, document: unknown): string[] {
  return REPORTS[api](document, '')
}

export interface XmlElement {
  name: string
  attributes: Record<string, string>
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The elements of an XML document in their order. Throws for what is not well-formed, or has a character that XML 1.0 knows not. */
export function elementsOf(xml: string): XmlElement[] {
  if (/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u.test(xml)) {
    throw new Error('not a character of XML')
  }
  const elements: XmlElement[] = []
  const open: string[] = []
  const token = /<\?xml[^?]*\?>|<\/(\w+)>|<(\w+)((?: \w+="[^"<]*")*)(\/?)>|([^<]+)/gy
  let end = 0
  for (const match of xml.matchAll(token)) {
    end = match.index + match[0].length
    const [, closed, name, attributes = '', isEmpty, content] = match
    if (closed !== undefined && open.pop() !== closed)
      throw new Error(`</${closed}> closes nothing`)
    if (content !== undefined) decoded(content)
    if (name === undefined) continue
    const pairs = [...attributes.matchAll(/ (\w+)="([^"]*)"/g)]
    elements.push({
      name,
      attributes: Object.fromEntries(pairs.map(([, key, value = '']) => [key, decoded(value)])),
    })
    if (isEmpty === '') open.push(name)
  }
  if (end !== xml.length || open.length > 0) throw new Error(`not well-formed after ${end}`)
  return elements
}

function decoded(text: string): string {
  if (/&(?!(?:amp|lt|gt|quot|apos|#\d+);)/.test(text)) throw new Error('a bare &')
  return text.replaceAll(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
    code === undefined ? (ENTITIES[name] ?? '') : String.fromCodePoint(Number(code)),
  )
}
