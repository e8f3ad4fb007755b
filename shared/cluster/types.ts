import type { JsonValue } from '../json.ts'
import type { CallContext } from '../registry/fetch.ts'

/** A JSON object. */
export interface JsonRecord {
  [key: string]: JsonValue
}

/** Where objects of one kind are: in a namespace, or for an empty one in all of them or in none. */
export interface Place {
  /** `v1`, or `group/version`. */
  apiVersion: string
  /** As in a URL: `configmaps`. */
  resource: string
  namespace: string
}

/**
 * The API server of one cluster, read only, as one review sees it. Throws `CLUSTER_REFUSED` (the token may not, or what is asked for
 * cannot be), `CLUSTER_UNAVAILABLE`, `CLUSTER_RESPONSE_INVALID` and `DEADLINE_EXCEEDED`.
 */
export interface ClusterSession {
  /** The namespace of that name, at most `NAMESPACE_TTL_MS` old; null when there is none. */
  namespace(name: string): Promise<JsonRecord | null>
  /** An object; null when there is none. */
  get(place: Place, name: string): Promise<JsonRecord | null>
  /** A list object, its `items` those with all of the labels. */
  list(place: Place, labels: JsonValue): Promise<JsonRecord>
  /** The resource that objects of a kind are. */
  resourceOf(apiVersion: string, kind: string): Promise<string>
}

/** The connection to one cluster: one per isolate, keeps what may be kept between reviews. */
export interface ClusterClient {
  session(context: CallContext): ClusterSession
}

/** A request that a policy makes. */
export interface HttpCall {
  method: 'GET' | 'POST'
  url: string
  headers: JsonValue
  /** Of a POST. */
  body?: JsonValue
  /** PEM certificates to trust in place of the platform's; empty for those. */
  ca: string
}

/** Who makes the requests of policies. Throws `HTTP_REFUSED`, `HTTP_UNAVAILABLE` and `DEADLINE_EXCEEDED`. */
export interface HttpClient {
  /** True when namespaced policies may make requests, too. */
  readonly inNamespaces: boolean
  send(call: HttpCall, context: CallContext): Promise<JsonValue>
}

/** What is there to answer the policies of one isolate beside registries. */
export interface ContextPorts {
  /** The connection to a cluster; undefined where the operator configured none. */
  cluster?: (name: string) => ClusterClient | undefined
  /** Undefined where the operator lets policies ask nobody. */
  http?: HttpClient
}
