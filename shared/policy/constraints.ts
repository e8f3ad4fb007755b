import { named } from './metadata.ts'
import { isLabelValue, isQualifiedName } from './names.ts'
import {
  defaulted,
  isRecord,
  isSet,
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
  words,
} from './shape.ts'

const labelKey = named(isQualifiedName, 'is not a label key')

const labelValue: Shape<string> = (value, path, faults) => {
  const label = text(value, path, faults)
  if (label === undefined || isLabelValue(label)) return label
  return faults.add(path, `Invalid value: ${JSON.stringify(label)}: is not a label value`)
}

const matchLabels: Shape<Record<string, string>> = (value, path, faults) => {
  for (const key of isRecord(value) ? Object.keys(value) : []) {
    labelKey(key, [...path, key], faults)
  }
  return mapOf(labelValue)(value, path, faults)
}

const selectorTerm = object(
  {
    key: required(labelKey),
    operator: required(oneOf('In', 'NotIn', 'Exists', 'DoesNotExist')),
    values: optional(listOf(labelValue)),
  },
  (term, path, faults) => {
    const operator = own(term, 'operator')
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (needsValues && !isSet(term, 'values')) {
      faults.add(
        [...path, 'values'],
        "Required value: must be specified when `operator` is 'In' or 'NotIn'",
      )
    }
    if ((operator === 'Exists' || operator === 'DoesNotExist') && isSet(term, 'values')) {
      faults.add(
        [...path, 'values'],
        "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      )
    }
  },
)

/** A label selector. */
export const labelSelector = object({
  matchLabels: optional(matchLabels),
  matchExpressions: optional(listOf(selectorTerm)),
})

/** A list of names that must not be empty; `*` stands alone in it. */
export function names(kind: string, item: Shape<string> = words): Shape<string[]> {
  return listRule(listOf(item), (items, path, faults, count) => {
    if (count === 0) faults.add(path, 'Required value')
    if (items.length > 1 && items.includes('*')) {
      faults.add(
        path,
        `Invalid value: ${JSON.stringify(items)}: if '*' is present, must not specify other ${kind}`,
      )
    }
  })
}

/** The resources of a rule, subresources among them; none that another one covers. */
export const resources = listRule(listOf(words), (items, path, faults, count) => {
  if (count === 0) faults.add(path, 'Required value')
  const clash = (message: string, at: Path = path) =>
    faults.add(at, `Invalid value: ${JSON.stringify(items)}: ${message}`)
  if (items.length > 1 && items.includes('*/*')) {
    clash("if '*/*' is present, must not specify other resources")
  }
  if (items.includes('*') && items.some((item) => item !== '*' && !item.includes('/'))) {
    clash("if '*' is present, must not specify other resources without subresources")
  }
  items.forEach((item, index) => {
    const covering = items.find((other) => other !== item && coversSubresource(other, item))
    if (covering !== undefined && covering !== '*/*') {
      clash(`if '${covering}' is present, must not specify ${item}`, [...path, index])
    }
  })
})

/** True when a pattern with a wildcard on either side of the slash already says what the item says. */
function coversSubresource(pattern: string, item: string): boolean {
  const [resource, subresource] = split(pattern)
  const [itemResource, itemSubresource] = split(item)
  if (subresource === undefined || itemSubresource === undefined) return false
  return (
    (subresource === '*' && resource === itemResource) ||
    (resource === '*' && subresource === itemSubresource)
  )
}

function split(item: string): [string, string | undefined] {
  const slash = item.indexOf('/')
  return slash < 0 ? [item, undefined] : [item.slice(0, slash), item.slice(slash + 1)]
}

const resourceRule = object({
  apiGroups: required(names('API groups', text)),
  apiVersions: required(names('API versions')),
  operations: required(names('operations', oneOf('CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'))),
  resources: required(resources),
  resourceNames: optional(listOf(words, { unique: (name) => name })),
  scope: optional(oneOf('Cluster', 'Namespaced', '*')),
})

const NEEDS_RULE = 'a matchConstraints with at least one resource rule is required'

/** `spec.matchConstraints`: at least one resource rule. */
export const matchConstraints = object({
  resourceRules: required(
    listRule(listOf(resourceRule), (_rules, path, faults, count) => {
      if (count === 0) faults.add(path, `Required value: ${NEEDS_RULE}`)
    }),
    NEEDS_RULE,
  ),
  excludeResourceRules: defaulted(listOf(resourceRule), () => []),
  objectSelector: optional(labelSelector),
  namespaceSelector: optional(labelSelector),
  matchPolicy: optional(oneOf('Exact', 'Equivalent')),
})

/** What a policy without any `matchConstraints` is told. */
export const MISSING_CONSTRAINTS = NEEDS_RULE
