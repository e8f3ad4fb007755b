import { createHash, X509Certificate } from 'node:crypto'
import { type Bytes, fromBase64 } from '#shared/bytes.ts'
import { decodeJson, type JsonValue } from '#shared/json.ts'
import { TRUST_ENDS_SOON_DAYS } from '#shared/limits.ts'
import { dig } from '#shared/signature/content.ts'

/** What a trusted root names: certificate authorities, transparency logs, certificate logs and timestamp authorities. */
export type MaterialKind =
  | 'certificate authority'
  | 'log'
  | 'certificate log'
  | 'timestamp authority'

/** One key or chain of a trusted root. */
export interface Material {
  kind: MaterialKind
  /** As an operator knows it: its address, or the name in its certificate. */
  name: string
  /** SHA-256 of the key or the chain, its first 16 hex characters: the same for the same material. */
  id: string
  /** RFC 3339. */
  from: string
  /** RFC 3339; open when absent. */
  until?: string
}

/** A difference between two trusted roots. */
export type Change =
  | ({ change: 'added' | 'removed' } & Material)
  | ({ change: 'validity'; was: { from: string; until?: string } } & Material)

const DAY_MS = 86_400_000

const MEMBERS: readonly [string, MaterialKind][] = [
  ['certificateAuthorities', 'certificate authority'],
  ['tlogs', 'log'],
  ['ctlogs', 'certificate log'],
  ['timestampAuthorities', 'timestamp authority'],
]

/** Everything a trusted root names, in its order. For roots that `loadTrustedRoot` has accepted; throws `JSON_INVALID` for what is no JSON. */
export function materialsOf(trustedRoot: Uint8Array): Material[] {
  const json = decodeJson(trustedRoot)
  return MEMBERS.flatMap(([member, kind]) =>
    listOf(dig(json, member)).map((each) => read(kind, each)),
  )
}

function read(kind: MaterialKind, value: JsonValue): Material {
  const key = dig(value, 'publicKey')
  const validity = dig(key ?? value, 'validFor')
  const certificates = listOf(dig(value, 'certChain', 'certificates'))
  const raw = (key === undefined ? certificates : [key]).map((each) =>
    bytesOf(dig(each, 'rawBytes')),
  )
  const hash = createHash('sha256')
  for (const bytes of raw) hash.update(bytes)
  const until = earliest([
    textOf(dig(validity, 'end')),
    ...(key === undefined ? raw.map(certificateEnd) : []),
  ])
  return {
    kind,
    name: nameOf(value) || subjectOf(raw[0]) || 'unnamed',
    id: hash.digest('hex').slice(0, 16),
    from: textOf(dig(validity, 'start')),
    ...(until === undefined ? {} : { until }),
  }
}

/** A chain is of no use once one of its certificates has ended, whatever the root says. */
function earliest(ends: readonly string[]): string | undefined {
  const times = ends.map((end) => Date.parse(end)).filter((at) => !Number.isNaN(at))
  return times.length === 0 ? undefined : new Date(Math.min(...times)).toISOString()
}

const certificateEnd = (der: Bytes) => readCertificate(der)?.validTo ?? ''

/** `CN=Example CA`, of a certificate. */
const subjectOf = (der: Bytes | undefined) =>
  der && readCertificate(der)?.subject?.replaceAll('\n', ', ')

function readCertificate(der: Bytes): X509Certificate | undefined {
  try {
    return new X509Certificate(der)
  } catch {
    // A form this runtime cannot read says nothing about its end; whoever verifies with it decides.
    return undefined
  }
}

function nameOf(value: JsonValue): string {
  const address = textOf(dig(value, 'baseUrl')) || textOf(dig(value, 'uri'))
  const subject = ['commonName', 'organization'].map((part) => textOf(dig(value, 'subject', part)))
  return address || subject.filter(Boolean).join(', ')
}

/** What differs, in the order of the newer root and then of the older one. */
export function changesOf(before: readonly Material[], after: readonly Material[]): Change[] {
  const keyOf = ({ kind, id }: Material) => `${kind} ${id}`
  const old = new Map(before.map((each) => [keyOf(each), each]))
  const young = new Set(after.map(keyOf))
  const changes = after.flatMap((each): Change[] => {
    const was = old.get(keyOf(each))
    if (was === undefined) return [{ change: 'added', ...each }]
    if (was.from === each.from && was.until === each.until) return []
    const { from, until } = was
    return [{ change: 'validity', ...each, was: { from, ...(until && { until }) } }]
  })
  const gone = before.filter((each) => !young.has(keyOf(each)))
  return [...changes, ...gone.map((each): Change => ({ change: 'removed', ...each }))]
}

/**
 * Why nothing that is signed now can be verified with these, or undefined: every certificate authority has ended, or everybody who could
 * witness a signature has.
 */
export function endedReason(materials: readonly Material[], now: number): string | undefined {
  const groups: [string, readonly MaterialKind[]][] = [
    ['certificate authorities', ['certificate authority']],
    ['logs and timestamp authorities', ['log', 'timestamp authority']],
  ]
  for (const [name, kinds] of groups) {
    const end = lastEnd(materials.filter(({ kind }) => kinds.includes(kind)))
    if (end < now) return `all of its ${name} have ended, the last on ${dayOf(end)}`
  }
  return undefined
}

/** For every kind whose last member has ended or ends soon, when; empty while there is nothing to do. */
export function endingSoon(materials: readonly Material[], now: number): string[] {
  return MEMBERS.flatMap(([, kind]) => {
    const end = lastEnd(materials.filter((each) => each.kind === kind))
    if (end > now + TRUST_ENDS_SOON_DAYS * DAY_MS) return []
    return [`its last ${kind} ${end < now ? 'ended' : 'ends'} on ${dayOf(end)}`]
  })
}

/** When the last of them ends; never where there is none, or one without an end. */
function lastEnd(materials: readonly Material[]): number {
  if (materials.length === 0) return Number.POSITIVE_INFINITY
  const ends = materials.map(({ until }) => (until === undefined ? Number.NaN : Date.parse(until)))
  return ends.some(Number.isNaN) ? Number.POSITIVE_INFINITY : Math.max(...ends)
}

/** `2026-11-30`; `unknown` for what is no time. */
export const dayOf = (at: number) =>
  Number.isNaN(new Date(at).getTime()) ? 'unknown' : new Date(at).toISOString().slice(0, 10)

const listOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : []
const textOf = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '')
const bytesOf = (value: JsonValue | undefined) => fromBase64(textOf(value)) ?? new Uint8Array()
