import { AdmissionError } from '../errors.ts'
import type { JsonValue } from '../json.ts'
import {
  MAX_CLUSTER_CALLS,
  MAX_CLUSTER_REVIEW_BYTES,
  MAX_HTTP_CALLS,
  MAX_HTTP_REVIEW_BYTES,
} from '../limits.ts'
import { Budget } from './budget.ts'
import type {
  ClusterSession,
  ContextPorts,
  HttpCall,
  HttpClient,
  JsonRecord,
  Place,
} from './types.ts'

/** A host call of a policy that is about what surrounds the request. */
export interface ContextCall {
  /** As `cel/library/kyverno-host.ts` names it. */
  name: string
  args: readonly JsonValue[]
}

export interface ContextOptions {
  ports: ContextPorts
  cluster: string
  /** Ends with the review. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  now: () => number
}

/** What few policies need, by the need of an expression: loaded when it is asked for. */
export const RARE_PARTS = {
  random: () => import('./random.ts'),
  yaml: () => import('./yaml.ts'),
  gzip: () => import('./gzip.ts'),
}

/** What policies of one review ask of the world beside images. Whoever calls it asks everything once. */
export class ContextSession {
  readonly #options: ContextOptions
  readonly #budgets: { cluster: Budget; http: Budget }
  readonly #client: ClusterSession | undefined

  constructor(options: ContextOptions) {
    const { ports, cluster, signal } = options
    this.#options = options
    this.#budgets = {
      cluster: new Budget(signal, {
        calls: MAX_CLUSTER_CALLS,
        bytes: MAX_CLUSTER_REVIEW_BYTES,
        code: 'CLUSTER_REFUSED',
        what: 'requests to the cluster',
      }),
      http: new Budget(signal, {
        calls: MAX_HTTP_CALLS,
        bytes: MAX_HTTP_REVIEW_BYTES,
        code: 'HTTP_REFUSED',
        what: 'requests of policies',
      }),
    }
    this.#client = ports.cluster?.(cluster)?.session(this.#budgets.cluster.context)
  }

  /** Requests so far, for the record. */
  get calls(): { cluster: number; http: number } {
    return { cluster: this.#budgets.cluster.calls, http: this.#budgets.http.calls }
  }

  /** The namespace of that name; null when there is none. Throws as ClusterSession does. */
  async namespace(name: string): Promise<JsonRecord | null> {
    return this.#cluster().namespace(name)
  }

  /**
   * The answer to a call of a policy, of this namespace when it is a namespaced one: then that is the only one it sees. Throws an
   * AdmissionError with the reason where there is none.
   */
  async answer({ name, args }: ContextCall, namespace: string | undefined): Promise<JsonValue> {
    const [first = '', second = '', third = '', fourth = null] = args
    const place = (): Place => ({
      apiVersion: String(first),
      resource: String(second),
      namespace: namespace ?? String(third ?? ''),
    })
    switch (name) {
      case 'resource.Get':
        return this.#cluster().get(place(), String(fourth ?? ''))
      case 'resource.List':
        return this.#cluster().list(place(), fourth)
      case 'resource.ToGVR':
        return this.#gvr(String(first), String(second))
      case 'http.Get':
        return this.#send(
          { method: 'GET', url: String(first), headers: second, ca: String(third) },
          namespace,
        )
      case 'http.Post': {
        const call = { url: String(first), body: second, headers: third, ca: String(fourth ?? '') }
        return this.#send({ method: 'POST', ...call }, namespace)
      }
      default:
        return this.#local(name, String(first))
    }
  }

  #cluster(): ClusterSession {
    if (this.#client !== undefined) return this.#client
    throw new AdmissionError(
      'CLUSTER_REFUSED',
      'nothing of the cluster can be read: the config has no clusters[].api for it',
    )
  }

  async #gvr(apiVersion: string, kind: string): Promise<JsonValue> {
    return { apiVersion, resource: await this.#cluster().resourceOf(apiVersion, kind) }
  }

  async #send(call: HttpCall, namespace: string | undefined): Promise<JsonValue> {
    return this.#http(namespace).send(call, this.#budgets.http.context)
  }

  #http(namespace: string | undefined): HttpClient {
    const { http } = this.#options.ports
    if (http === undefined) throw new AdmissionError('HTTP_REFUSED', NO_HTTP)
    if (namespace === undefined || http.inNamespaces) return http
    throw new AdmissionError('HTTP_REFUSED', HTTP_IN_NAMESPACE)
  }

  /** What needs nobody. It is found out once like everything else, so that time and chance are the same until the answer is out. */
  async #local(name: string, argument: string): Promise<JsonValue> {
    try {
      switch (name) {
        case 'time.now':
          return new Date(this.#options.now()).toISOString()
        case 'random':
          return (await RARE_PARTS.random()).randomText(argument)
        case 'yaml.parse':
          return (await RARE_PARTS.yaml()).parseText(argument)
        case 'gzip.compress':
          return await (await RARE_PARTS.gzip()).compress(argument)
        case 'gzip.decompress':
          return await (await RARE_PARTS.gzip()).decompress(argument)
        default:
          throw new TypeError('nobody answers here')
      }
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown)
      throw new AdmissionError('CEL_EVALUATION', reason, { cause: thrown })
    }
  }
}

const NO_HTTP = 'policies make no requests: the config has no http.allow'

/** Upstream's message, with the switch that is ours. */
const HTTP_IN_NAMESPACE =
  'http calls are not allowed in namespaced policies: set http.namespacedPolicies to enable'
