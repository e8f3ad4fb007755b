import type { JsonValue } from '../../json.ts'
import type { Frame } from '../frame.ts'
import { callHost } from '../host.ts'
import { type Guard, instance, type Library, overload, string } from '../implementation.ts'
import { CelError, type CelResult, isPlainMap, Opaque } from '../values.ts'

/** Who asks: the request's user, or a service account. */
export interface AuthorizerUser {
  name: string
  uid?: string
  groups: readonly string[]
  extra?: Readonly<Record<string, readonly string[]>>
}

/** What is asked, in the words of a SubjectAccessReview; selectors are parsed by whoever answers. */
export interface AuthorizerAttributes {
  path?: string
  group?: string
  resource?: string
  subresource?: string
  namespace?: string
  name?: string
  fieldSelector?: string
  labelSelector?: string
}

/** The value of `authorizer`. Its checks are host calls named `authorize` with one argument: `{user, verb, …attributes}`. */
export class Authorizer extends Opaque {
  readonly type = 'kubernetes.authorization.Authorizer'
  readonly user: AuthorizerUser
  constructor(user: AuthorizerUser) {
    super()
    this.user = user
  }

  get key(): string {
    return JSON.stringify(this.user)
  }
}

class Check extends Opaque {
  readonly type: string
  readonly user: AuthorizerUser
  readonly attributes: AuthorizerAttributes
  constructor(kind: string, user: AuthorizerUser, attributes: AuthorizerAttributes) {
    super()
    this.type = `kubernetes.authorization.${kind}`
    this.user = user
    this.attributes = attributes
  }

  get key(): string {
    return JSON.stringify([this.user, this.attributes])
  }
}

class PathCheck extends Check {
  constructor(user: AuthorizerUser, attributes: AuthorizerAttributes) {
    super('PathCheck', user, attributes)
  }
}

class GroupCheck extends Check {
  constructor(user: AuthorizerUser, attributes: AuthorizerAttributes) {
    super('GroupCheck', user, attributes)
  }
}

/** A check of a resource; `authorizer.requestResource` is one with the request's own attributes. */
export class ResourceCheck extends Check {
  constructor(user: AuthorizerUser, attributes: AuthorizerAttributes) {
    super('ResourceCheck', user, attributes)
  }
}

class Decision extends Opaque {
  readonly type = 'kubernetes.authorization.Decision'
  readonly allowed: boolean
  readonly reason: string
  readonly error: string
  constructor(allowed: boolean, reason: string, error: string) {
    super()
    this.allowed = allowed
    this.reason = reason
    this.error = error
  }

  get key(): string {
    return JSON.stringify([this.allowed, this.reason, this.error])
  }
}

function pathCheck({ user }: Authorizer, path: string): CelResult {
  if (path.trim() === '') return new CelError('path must not be empty')
  return new PathCheck(user, { path })
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function serviceAccount(_: Authorizer, namespace: string, name: string): CelResult {
  if (name.length > 253 || !SUBDOMAIN.test(name)) {
    return new CelError('Invalid service account name')
  }
  if (namespace.length > 63 || !LABEL.test(namespace)) {
    return new CelError('Invalid service account namespace')
  }
  return new Authorizer({
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
  })
}

function resourceCheck({ user, attributes }: GroupCheck, resource: string): CelResult {
  if (resource.trim() === '') return new CelError('resource must not be empty')
  return new ResourceCheck(user, { ...attributes, resource })
}

/** Sets one attribute; a later call overwrites an earlier one. */
function setting(attribute: keyof AuthorizerAttributes) {
  return ({ user, attributes }: ResourceCheck, value: string): CelResult =>
    new ResourceCheck(user, { ...attributes, [attribute]: value })
}

function check({ user, attributes }: Check, verb: string, frame: Frame): CelResult {
  const plainUser: JsonValue = JSON.parse(JSON.stringify(user))
  const answer = callHost(frame, 'authorize', [{ user: plainUser, verb, ...attributes }])
  if (answer instanceof CelError) return answer
  if (!isPlainMap(answer)) return new CelError('the authorizer gave no decision')
  const { allowed, reason, error } = answer
  return new Decision(allowed === true, text(reason), text(error))
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const authorizer: Guard<Authorizer> = instance(Authorizer)
const group: Guard<GroupCheck> = instance(GroupCheck)
const path: Guard<PathCheck> = instance(PathCheck)
const resource: Guard<ResourceCheck> = instance(ResourceCheck)
const decision: Guard<Decision> = instance(Decision)

/** Checks against the cluster's authorizer, answered by the host: `{allowed, reason?, error?}`. */
export const authorizers: Library = {
  authorizer_path: overload('path', [authorizer, string], pathCheck),
  authorizer_group: overload(
    'group',
    [authorizer, string],
    ({ user }, name) => new GroupCheck(user, { group: name }),
  ),
  authorizer_serviceaccount: overload(
    'serviceAccount',
    [authorizer, string, string],
    serviceAccount,
  ),
  groupcheck_resource: overload('resource', [group, string], resourceCheck),
  resourcecheck_subresource: overload('subresource', [resource, string], setting('subresource')),
  resourcecheck_namespace: overload('namespace', [resource, string], setting('namespace')),
  resourcecheck_name: overload('name', [resource, string], setting('name')),
  authorizer_fieldselector: overload('fieldSelector', [resource, string], setting('fieldSelector')),
  authorizer_labelselector: overload('labelSelector', [resource, string], setting('labelSelector')),
  pathcheck_check: overload('check', [path, string], check),
  resourcecheck_check: overload('check', [resource, string], check),
  decision_errored: overload('errored', [decision], (value) => value.error !== ''),
  decision_error: overload('error', [decision], (value) => value.error),
  decision_allowed: overload('allowed', [decision], (value) => value.allowed),
  decision_reason: overload('reason', [decision], (value) => value.reason),
}
