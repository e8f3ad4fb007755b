import type { Guard } from '../implementation.ts'
import { Opaque } from '../values.ts'

/** Names of the types of the variables whose methods Kyverno's libraries are, and of what they return. */
export const KYVERNO = {
  json: 'json.Json',
  yaml: 'yaml.Yaml',
  http: 'http.Context',
  resource: 'resource.Context',
  globalContext: 'globalcontext.Context',
  gvr: 'schema.GroupVersionResource',
  serviceAccount: 'user.ServiceAccount',
} as const

/** The value of a variable whose methods a library is: nothing but its type, and a CA bundle for `http.Client`. */
export class LibraryContext extends Opaque {
  readonly type: string
  /** The CA bundle, PEM; empty for the host's own. */
  readonly key: string
  constructor(type: string, key = '') {
    super()
    this.type = type
    this.key = key
  }
}

/** True for the context of one library: calls of the same name are told apart by it. */
export function contextOf(type: string): Guard<LibraryContext> {
  return (value): value is LibraryContext => value instanceof LibraryContext && value.type === type
}

/** What `resource.ToGVR` gives. */
export class GroupVersionResource extends Opaque {
  readonly type = KYVERNO.gvr
  readonly apiVersion: string
  readonly resource: string
  constructor(apiVersion: string, resource: string) {
    super()
    this.apiVersion = apiVersion
    this.resource = resource
  }
  get key(): string {
    return `${this.apiVersion}/${this.resource}`
  }
}

/** The variables of Kyverno's libraries by name, for the activation. */
export const KYVERNO_CONTEXT_VALUES: Readonly<Record<string, LibraryContext>> = {
  json: new LibraryContext(KYVERNO.json),
  yaml: new LibraryContext(KYVERNO.yaml),
  http: new LibraryContext(KYVERNO.http),
  resource: new LibraryContext(KYVERNO.resource),
  globalContext: new LibraryContext(KYVERNO.globalContext),
}
