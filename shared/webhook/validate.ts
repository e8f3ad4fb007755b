import { compile } from '../cel/compile.ts'
import type { Environment } from '../cel/environment.ts'
import type { RegexEngine } from '../cel/types.ts'
import type { Fault } from '../errors.ts'
import { MAX_MATCH_CONDITIONS, MAX_TIMEOUT_SECONDS } from '../limits.ts'
import { labelSelector, names, resources } from '../policy/constraints.ts'
import { named } from '../policy/metadata.ts'
import { isLabelValue, isQualifiedName, isSubdomain } from '../policy/names.ts'
import {
  expression,
  Faults,
  formatPath,
  integer,
  isRecord,
  listOf,
  listRule,
  mapOf,
  object,
  oneOf,
  optional,
  own,
  type Path,
  required,
  type Shape,
  text,
} from '../policy/shape.ts'
import { clientConfig } from './client-config.ts'
import { webhookEnvironment } from './conditions.ts'

/** How a configuration gets to the API server, and which one that is. */
export interface ValidateOptions {
  regex: RegexEngine
  /** Minor version of Kubernetes; the oldest supported one when absent. */
  minor?: number
  /** A file of manifest-based admission, and no object of the API. */
  isStatic?: boolean
}

/** The suffix of names in manifest-based admission, reserved for it. */
export const STATIC_SUFFIX = '.static.k8s.io'

/**
 * Every fault of a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration, as the API server would find it when the object is
 * created (specs/kubernetes-admission.md 3.2); none when it would be stored. Paths begin with the kind.
 */
export function validateWebhookConfiguration(value: unknown, options: ValidateOptions): Fault[] {
  const kind = isRecord(value) ? own(value, 'kind') : undefined
  const faults = new Faults()
  configuration(kind === 'MutatingWebhookConfiguration', options)(value, [], faults)
  const prefix = typeof kind === 'string' ? `${kind} ` : ''
  return faults.found.map(({ path, message }) => ({
    path: `${prefix}${formatPath(path)}`,
    message,
  }))
}

function configuration(isMutating: boolean, { regex, minor, isStatic = false }: ValidateOptions) {
  const environment = webhookEnvironment(minor, regex)
  const webhook = object({
    name: required(fullyQualified),
    clientConfig: required(clientConfig(isStatic)),
    rules: optional(listOf(rule)),
    failurePolicy: optional(oneOf('Fail', 'Ignore')),
    matchPolicy: optional(oneOf('Exact', 'Equivalent')),
    namespaceSelector: optional(labelSelector),
    objectSelector: optional(labelSelector),
    sideEffects: required(oneOf('None', 'NoneOnDryRun'), 'must specify one of None, NoneOnDryRun'),
    timeoutSeconds: optional(seconds),
    admissionReviewVersions: required(reviewVersions),
    matchConditions: optional(conditions(environment)),
    ...(isMutating ? { reinvocationPolicy: optional(oneOf('Never', 'IfNeeded')) } : {}),
  })
  return object({
    apiVersion: required(oneOf('admissionregistration.k8s.io/v1')),
    kind: required(oneOf('MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration')),
    metadata: required(
      object({
        name: required(configurationName(isStatic)),
        labels: optional(labels),
        annotations: optional(annotations),
      }),
    ),
    webhooks: optional(listOf(webhook, { unique: ({ name }) => name, uniqueField: 'name' })),
  })
}

function configurationName(isStatic: boolean): Shape<string> {
  return (value, path, faults) => {
    const name = named(isSubdomain, 'must be a DNS-1123 subdomain')(value, path, faults)
    if (name === undefined || name.endsWith(STATIC_SUFFIX) === isStatic) return name
    return faults.add(
      path,
      isStatic
        ? `Invalid value: ${JSON.stringify(name)}: names in manifest-based admission end in ${STATIC_SUFFIX}`
        : `Invalid value: ${JSON.stringify(name)}: ${STATIC_SUFFIX} is reserved for manifest-based admission`,
    )
  }
}

const fullyQualified = named(
  (name) => isSubdomain(name) && name.split('.').length >= 3,
  'should be a domain with at least three segments separated by dots',
)

const labels: Shape<Record<string, string>> = (value, path, faults) => {
  const read = mapOf(text)(value, path, faults)
  for (const [key, label] of Object.entries(read ?? {})) {
    if (isQualifiedName(key) && isLabelValue(label)) continue
    faults.add([...path, key], 'Invalid value: must be a qualified name with a label value')
  }
  return read
}

/** The API server reads keys of annotations in lower case. */
const annotations: Shape<Record<string, string>> = (value, path, faults) => {
  const read = mapOf(text)(value, path, faults)
  for (const key of Object.keys(read ?? {})) {
    if (isQualifiedName(key.toLowerCase())) continue
    faults.add([...path, key], 'Invalid value: must be a qualified name')
  }
  return read
}

const seconds: Shape<number> = (value, path, faults) => {
  const read = integer(-Infinity, Infinity)(value, path, faults)
  if (read === undefined || (read >= 1 && read <= MAX_TIMEOUT_SECONDS)) return read
  const message = `Invalid value: ${read}: the timeout value must be between 1 and ${MAX_TIMEOUT_SECONDS} seconds`
  return faults.add(path, message)
}

/** `pods/*` twice is refused like `pods/*` before `pods/status`; names without a wildcard may be there as often as they like. */
function repeatedWildcards(items: readonly string[], path: Path, faults: Faults): void {
  for (const [index, item] of items.entries()) {
    const isWild = item !== '*/*' && (item.startsWith('*/') || item.endsWith('/*'))
    if (!isWild || items.indexOf(item) === index) continue
    const message = `Invalid value: ${JSON.stringify(items)}: if '${item}' is present, must not specify ${item}`
    faults.add([...path, index], message)
  }
}

const rule = object({
  operations: required(names('operations', oneOf('CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'))),
  apiGroups: required(names('API groups', text)),
  apiVersions: required(names('API versions')),
  resources: required(listRule(resources, repeatedWildcards)),
  scope: optional(oneOf('Cluster', 'Namespaced', '*')),
})

const reviewVersions = listRule(
  listOf(
    named(
      (version) => /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(version),
      'must be a DNS-1035 label',
    ),
    {
      unique: (version) => version,
    },
  ),
  (versions, path, faults) => {
    if (versions.some((version) => version === 'v1' || version === 'v1beta1')) return
    faults.add(
      path,
      `Invalid value: ${JSON.stringify(versions)}: must include at least one of v1, v1beta1`,
    )
  },
)

function conditions(environment: Environment) {
  const source: Shape<string> = (value, path, faults) => {
    const read = expression(value, path, faults)
    if (read === undefined) return undefined
    const compiled = compile(read, environment, { allowedTypes: ['bool'] })
    if (compiled.ok) return read
    const said = compiled.issues.map(({ message }) => message).join('; ')
    return faults.add(path, `Invalid value: compilation failed: ${said}`)
  }
  return listOf(
    object({
      name: required(named(isQualifiedName, 'must be a qualified name')),
      expression: required(source),
    }),
    { unique: ({ name }) => name, uniqueField: 'name', most: MAX_MATCH_CONDITIONS },
  )
}
