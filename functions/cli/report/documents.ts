import { nodeHash } from '#functions/hash-node.ts'
import { toHex, utf8 } from '#shared/bytes.ts'
import type { EventResource } from '#shared/report/event.ts'
import { kubernetesYaml } from '../kubernetes-yaml.ts'
import { placeOf, type Result, summaryOf } from './fold.ts'

/** The two APIs of reports. */
export type ReportApi = 'policyreport' | 'openreports'

const APIS: Readonly<
  Record<ReportApi, { apiVersion: string; namespaced: string; cluster: string }>
> = {
  policyreport: {
    apiVersion: 'wgpolicyk8s.io/v1alpha2',
    namespaced: 'PolicyReport',
    cluster: 'ClusterPolicyReport',
  },
  openreports: {
    apiVersion: 'openreports.io/v1alpha1',
    namespaced: 'Report',
    cluster: 'ClusterReport',
  },
}

/** `source` of results, as Kyverno writes it for image policies. */
const SOURCE = 'KyvernoImageValidatingPolicy'
/** Where a label may stand. */
const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/

/** YAML documents, one report for every resource as Kyverno writes them, with names that follow from cluster and resource. */
export function* reportDocuments(api: ReportApi, results: readonly Result[]): Generator<string> {
  for (const group of byResource(results)) {
    const text = kubernetesYaml(wellFormed(reportOf(api, group)))
    yield `---\n${text}`
  }
}

/** The same with U+FFFD for halves of surrogate pairs, for which YAML has no spelling that others read. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/\p{Cs}/gu, '\uFFFD')
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== 'object' || value === null) return value
  const entries: [string, unknown][] = Object.entries(value)
  return Object.fromEntries(
    entries.map(([key, item]) => [String(wellFormed(key)), wellFormed(item)]),
  )
}

/** Results of one resource, whichever of its subresources they are about. Their order is that of `Fold.results`. */
function byResource(results: readonly Result[]): Result[][] {
  const groups = new Map<string, Result[]>()
  for (const result of results) {
    const key = identityOf(result)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [result])
    else group.push(result)
  }
  return [...groups.values()]
}

function identityOf(result: Result): string {
  const { group, kind, namespace = '' } = result.resource
  return JSON.stringify([result.cluster, group, kind, namespace, placeOf(result)])
}

function reportOf(api: ReportApi, results: readonly Result[]): Record<string, unknown> {
  const [first] = results
  if (first === undefined) throw new TypeError('a report without results')
  const { apiVersion, namespaced, cluster } = APIS[api]
  const namespace = namespaceOf(first.resource)
  const scope = scopeOf(first, namespace)
  const digest = toHex(nodeHash.sha256(utf8(identityOf(first))))
  return {
    apiVersion,
    kind: namespace === undefined ? cluster : namespaced,
    metadata: {
      name: `countersign-${digest.slice(0, 32)}`,
      ...(namespace !== undefined && { namespace }),
      labels: {
        'app.kubernetes.io/managed-by': 'countersign',
        ...(LABEL_VALUE.test(first.cluster) && { 'countersign.dev/cluster': first.cluster }),
      },
      ...ownersOf(results, scope),
    },
    ...(api === 'openreports' && { source: SOURCE }),
    scope,
    summary: summaryOf(results),
    results: results.map(resultOf),
  }
}

/** A Namespace comes with its own name as the namespace of the request, and is cluster-wide all the same. */
function namespaceOf({ group, kind, namespace }: EventResource): string | undefined {
  return group === '' && kind === 'Namespace' ? undefined : namespace
}

function scopeOf(result: Result, namespace: string | undefined) {
  const { group, version, kind, uid } = result.resource
  return {
    apiVersion: group === '' ? version : `${group}/${version}`,
    kind,
    name: placeOf(result),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && result.verdict === 'allow' && { uid }),
  }
}

/** The report goes with its resource. One that was refused may not exist, and its report would be collected at once. */
function ownersOf(results: readonly Result[], scope: ReturnType<typeof scopeOf>) {
  const { apiVersion, kind, name, uid } = scope
  const isThere = results.every(({ verdict }) => verdict === 'allow')
  return isThere && uid !== undefined && name !== ''
    ? { ownerReferences: [{ apiVersion, kind, name, uid }] }
    : {}
}

function resultOf(result: Result): Record<string, unknown> {
  const milliseconds = Date.parse(result.time)
  const seconds = Math.floor(milliseconds / 1000)
  return {
    source: SOURCE,
    policy: result.policy,
    rule: result.rule,
    result: result.status,
    scored: result.status !== 'warn',
    message: messageOf(result),
    timestamp: { seconds, nanos: (milliseconds - seconds * 1000) * 1_000_000 },
    properties: propertiesOf(result),
  }
}

/** What a result says; a pass says `success`, as in Kyverno. */
export function messageOf({ message, status }: Pick<Result, 'message' | 'status'>): string {
  return message ?? (status === 'pass' ? 'success' : '')
}

/** The policy's audit annotations, what Kyverno adds, and what only we know, under names of our own. */
function propertiesOf(result: Result): Record<string, string> {
  const { properties, exceptions = [], images, verdict, autogen, resource, operation } = result
  const own: Record<string, string | undefined> = {
    action: result.action,
    operation,
    verdict,
    autogen,
    subresource: resource.subresource,
    images: images.map(({ image }) => image).join(','),
    'verified-by': [...new Set(images.flatMap(({ verifiedBy }) => verifiedBy))].join(','),
    'review-uid': result.uid,
  }
  const entries = Object.entries(own).flatMap(([name, value]) =>
    value ? [[`countersign.dev/${name}`, value]] : [],
  )
  return {
    ...properties,
    process: 'admission review',
    ...(exceptions.length > 0 && { exceptions: exceptions.join(',') }),
    ...Object.fromEntries(entries),
  }
}
