import { isNamespace, isSubdomain } from './names.ts'
import type { LoadOptions } from './options.ts'
import {
  anything,
  defaulted,
  isRecord,
  mapOf,
  type ObjectOf,
  object,
  optional,
  own,
  required,
  type Shape,
  text,
  words,
} from './shape.ts'

/** A name that must keep a rule, in the wording of the API server. */
export function named(isRight: (name: string) => boolean, what: string): Shape<string> {
  return (value, path, faults) => {
    const name = words(value, path, faults)
    if (name === undefined || isRight(name)) return name
    return faults.add(path, `Invalid value: ${JSON.stringify(name)}: ${what}`)
  }
}

const fields = {
  name: required(named(isSubdomain, 'must be a DNS-1123 subdomain')),
  labels: optional(mapOf(text)),
  annotations: optional(mapOf(text)),
  // What the API server adds; documents read back from a cluster have it.
  creationTimestamp: optional(anything),
  deletionGracePeriodSeconds: optional(anything),
  deletionTimestamp: optional(anything),
  finalizers: optional(anything),
  generateName: optional(anything),
  generation: optional(anything),
  managedFields: optional(anything),
  ownerReferences: optional(anything),
  resourceVersion: optional(anything),
  selfLink: optional(anything),
  uid: optional(anything),
}

const forbidden: Shape<undefined> = (value, path, faults) =>
  value === ''
    ? undefined
    : faults.add(path, 'Forbidden: an ImageValidatingPolicy belongs to the whole cluster')

/** `metadata` of an object that belongs to the whole cluster. */
export const clusterMetadata = object({ ...fields, namespace: optional(forbidden) })

const namespace = named(isNamespace, 'must be a DNS-1123 label')

/** What `metadata` of an object in a namespace holds. */
export type NamespacedMetadata = ObjectOf<typeof fields> & { namespace: string }

/** `metadata` of an object in a namespace; in `fallback`, if it names none. */
export function namespacedMetadata(
  kind: string,
  fallback: string | undefined,
): Shape<NamespacedMetadata> {
  const missing = `a ${kind} belongs to a namespace`
  const field =
    fallback === undefined ? required(namespace, missing) : defaulted(namespace, () => fallback)
  const shape = object({ ...fields, namespace: field })
  return (value, path, faults) => shape(withoutEmpty(value), path, faults)
}

/** Kubernetes takes an empty namespace for none. */
function withoutEmpty(value: unknown): unknown {
  const isEmpty = typeof value === 'object' && value !== null && 'namespace' in value
  return isEmpty && value.namespace === '' ? { ...value, namespace: undefined } : value
}

/** An annotation of a document, undefined where it has none that is a text: whatever else is wrong with it, its shape says so. */
export function annotationOf(document: Record<string, unknown>, name: string): string | undefined {
  const metadata = own(document, 'metadata')
  const annotations = isRecord(metadata) ? own(metadata, 'annotations') : undefined
  const value = isRecord(annotations) ? own(annotations, name) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Name and, if it belongs in one, namespace of a document, whatever else is wrong with it; undefined when it lacks one of them. */
export function nameOf(
  value: Record<string, unknown>,
  isNamespaced: boolean,
  { defaultNamespace }: LoadOptions,
): { name: string; namespace?: string } | undefined {
  const meta = own(value, 'metadata')
  const name = isRecord(meta) ? own(meta, 'name') : undefined
  if (!isRecord(meta) || typeof name !== 'string') return undefined
  if (!isNamespaced) return { name }
  const found = own(meta, 'namespace') || defaultNamespace
  return typeof found === 'string' ? { name, namespace: found } : undefined
}
