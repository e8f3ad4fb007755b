import type { JsonObject } from '#shared/admission/types.ts'
import { isJsonObject } from '#shared/json.ts'

/** One resource of an API. */
export interface Resource {
  apiVersion: string
  kind: string
  name: string
  namespaced: boolean
}

/** Resources by apiVersion and kind: what discovery tells, and which of them are in namespaces. */
export const RESOURCES: readonly Resource[] = [
  { apiVersion: 'v1', kind: 'Namespace', name: 'namespaces', namespaced: false },
  { apiVersion: 'v1', kind: 'Pod', name: 'pods', namespaced: true },
  { apiVersion: 'v1', kind: 'ConfigMap', name: 'configmaps', namespaced: true },
  { apiVersion: 'v1', kind: 'Secret', name: 'secrets', namespaced: true },
  { apiVersion: 'apps/v1', kind: 'Deployment', name: 'deployments', namespaced: true },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    name: 'networkpolicies',
    namespaced: true,
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    name: 'clusterroles',
    namespaced: false,
  },
]
/** Objects in memory. */
export class ClusterStore {
  readonly #objects = new Map<string, JsonObject>()

  /** Puts an object there, or in the place of one of the same name. Namespaces get the label with their name. */
  put(object: JsonObject): void {
    const { kind, name, metadata } = identityOf(object)
    const own = isJsonObject(metadata.labels) ? metadata.labels : {}
    const labels = kind === 'Namespace' ? { ...own, 'kubernetes.io/metadata.name': name } : own
    this.#objects.set(keyOf(object), { ...object, metadata: { ...metadata, labels } })
  }

  remove(object: JsonObject): void {
    this.#objects.delete(keyOf(object))
  }

  /** The objects of a kind: of all namespaces, or of one. */
  find(type: Pick<Resource, 'apiVersion' | 'kind'>, namespace?: string): JsonObject[] {
    return [...this.#objects.values()].filter((object) => {
      const identity = identityOf(object)
      return (
        identity.apiVersion === type.apiVersion &&
        identity.kind === type.kind &&
        (namespace === undefined || identity.namespace === namespace)
      )
    })
  }
}

function keyOf(object: JsonObject): string {
  const { apiVersion, kind, namespace, name } = identityOf(object)
  return JSON.stringify([apiVersion, kind, namespace, name])
}

/** What an object is known by. */
export function identityOf(object: JsonObject) {
  const metadata: JsonObject = isJsonObject(object.metadata) ? object.metadata : {}
  const { name = '', namespace = '' } = metadata
  return { apiVersion: object.apiVersion, kind: object.kind, namespace, name, metadata }
}

/** True when an object has the labels of a selector; equality only, which is what we send. */
export function hasLabels(object: JsonObject, selector: string | null): boolean {
  const { labels } = identityOf(object).metadata
  return (selector ?? '').split(',').every((term) => {
    const [key = '', value] = term.split('=')
    return key === '' || (isJsonObject(labels) && labels[key] === value)
  })
}
