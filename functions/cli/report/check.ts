import { EVENT_STATUSES, type PolicyEvent } from '#shared/report/event.ts'

type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === 'string'
const count: Check = (value) => Number.isSafeInteger(value)
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const oneOf =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const record =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([name, check]) => check(own(value, name)))
const texts: Check = (value) => isObject(value) && Object.values(value).every(text)

const EVENT: Check = record({
  event: oneOf('policy'),
  id: text,
  time: (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  cluster: text,
  phase: oneOf('mutate', 'validate', 'image-review'),
  uid: text,
  operation: optional(oneOf('CREATE', 'UPDATE', 'DELETE', 'CONNECT')),
  resource: record({
    group: text,
    version: text,
    resource: text,
    subresource: optional(text),
    kind: text,
    namespace: optional(text),
    name: optional(text),
    generateName: optional(text),
    uid: optional(text),
  }),
  dryRun: optional(oneOf(true)),
  verdict: oneOf('allow', 'deny'),
  policy: optional(text),
  policyKind: optional(text),
  autogen: optional(text),
  rule: optional(text),
  policyHash: optional(text),
  status: oneOf(...EVENT_STATUSES),
  action: oneOf('deny', 'warn', 'audit', 'allow'),
  message: optional(text),
  properties: optional(texts),
  images: list(record({ image: text, digest: optional(text), verifiedBy: list(text) })),
  exceptions: optional(list(text)),
  checks: record({ sealed: count, cached: count, live: count }),
  seal: optional(text),
  ms: (value) => typeof value === 'number',
  deployment: text,
})

/** True for what has every member of an event with its type. */
export function isEvent(value: unknown): value is PolicyEvent {
  return EVENT(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function own(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined
}
