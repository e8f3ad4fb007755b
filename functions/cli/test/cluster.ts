import type { JsonObject } from '#shared/admission/types.ts'
import type { ClusterClient, ClusterSession, JsonRecord, Place } from '#shared/cluster/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { isJsonObject, type JsonValue } from '#shared/json.ts'
import { metadataOf, pluralOf, textAt } from './requests.ts'

/** A cluster that holds these objects and nothing else: what a test says there is. */
export function clusterOf(existing: readonly JsonObject[]): ClusterClient {
  const session: ClusterSession = {
    // Something is created in it, so it is there, if only by its name.
    namespace: async (name) => found(existing, NAMESPACES, name) ?? bareNamespace(name),
    get: async (place, name) => found(existing, place, name) ?? null,
    async list(place, labels) {
      const items = existing.filter((object) => isAt(object, place) && hasLabels(object, labels))
      const kind = textAt(items[0] ?? {}, 'kind') ?? ''
      return { apiVersion: place.apiVersion, kind: `${kind}List`, metadata: {}, items }
    },
    async resourceOf(apiVersion, kind) {
      if (/^[A-Z][A-Za-z0-9]*$/.test(kind)) return pluralOf(kind)
      throw new AdmissionError('CLUSTER_REFUSED', `${apiVersion} has no kind ${kind}`)
    },
  }
  return { session: () => session }
}

function bareNamespace(name: string): JsonRecord {
  const metadata = { name, labels: { 'kubernetes.io/metadata.name': name } }
  return { apiVersion: 'v1', kind: 'Namespace', metadata }
}

const NAMESPACES: Place = { apiVersion: 'v1', resource: 'namespaces', namespace: '' }

function found(
  existing: readonly JsonObject[],
  place: Place,
  name: string,
): JsonRecord | undefined {
  return existing.find(
    (object) => isAt(object, place) && textAt(metadataOf(object), 'name') === name,
  )
}

function isAt(object: JsonObject, { apiVersion, resource, namespace }: Place): boolean {
  return (
    textAt(object, 'apiVersion') === apiVersion &&
    pluralOf(textAt(object, 'kind') ?? '') === resource &&
    (namespace === '' || (textAt(metadataOf(object), 'namespace') ?? 'default') === namespace)
  )
}

function hasLabels(object: JsonObject, wanted: JsonValue): boolean {
  const { labels } = metadataOf(object)
  if (!isJsonObject(wanted)) return true
  return Object.entries(wanted).every(
    ([name, value]) => isJsonObject(labels) && labels[name] === value,
  )
}
