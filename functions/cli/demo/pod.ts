import type { JsonObject } from '#shared/admission/types.ts'
import { isJsonObject } from '#shared/json.ts'

/** What makes one Pod of the demo differ from another. */
export interface PodFields {
  /** A name that ends in `-` is only the beginning of one: `generateName`. */
  name: string
  image: string
  /** The image of an init container; none when absent. */
  init?: string
  namespace?: string
  annotations?: JsonObject
}

/** Namespace of Pods that name none. */
export const NAMESPACE = 'shop'

/** A Pod as a developer writes it. */
export function pod(fields: PodFields): JsonObject {
  const { name, image, init, namespace = NAMESPACE, annotations } = fields
  const named: JsonObject = name.endsWith('-') ? { generateName: name } : { name }
  const metadata = { ...named, namespace, ...(annotations === undefined ? {} : { annotations }) }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: {
      containers: [{ name: 'app', image }],
      ...(init !== undefined && { initContainers: [{ name: 'init', image: init }] }),
    },
  }
}

/** The Pod with another image in its container, as a careless or hostile webhook would leave it. */
export function withImage(object: JsonObject, image: string): JsonObject {
  return { ...object, spec: { containers: [{ name: 'app', image }] } }
}

/** The Pod with one more label, as many webhooks add them. */
export function withLabel(object: JsonObject, key: string, value: string): JsonObject {
  const labels = { ...labelsOf(object), [key]: value }
  return { ...object, metadata: { ...metadataOf(object), labels } }
}

/** Images of a Pod's containers. */
export function imagesOf(object: JsonObject | null): string[] {
  const containers = isJsonObject(object?.spec) ? object.spec.containers : undefined
  if (!Array.isArray(containers)) return []
  return containers.flatMap((one) =>
    isJsonObject(one) && typeof one.image === 'string' ? [one.image] : [],
  )
}

/** Annotations of an object. */
export function annotationsOf(object: JsonObject | null): JsonObject {
  return memberOf(metadataOf(object), 'annotations')
}

/** Labels of an object. */
export function labelsOf(object: JsonObject | null): JsonObject {
  return memberOf(metadataOf(object), 'labels')
}

/** Metadata of an object. */
export function metadataOf(object: JsonObject | null): JsonObject {
  return memberOf(object ?? {}, 'metadata')
}

function memberOf(object: JsonObject, key: string): JsonObject {
  const value = object[key]
  return isJsonObject(value) ? value : {}
}
