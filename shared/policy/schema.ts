import { type AttestationFields, attestation } from './attestations.ts'
import { type AttestorFields, attestor } from './attestors.ts'
import { MISSING_CONSTRAINTS, matchConstraints } from './constraints.ts'
import { credentials } from './credentials.ts'
import { compileGlob } from './glob.ts'
import { isIdentifier, isQualifiedName, isSubdomain } from './names.ts'
import {
  anything,
  defaulted,
  expression,
  type Faults,
  flag,
  integer,
  isRecord,
  isSet,
  listOf,
  mapOf,
  type ObjectOf,
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
import type { ValidationAction } from './types.ts'

/** The API group of the documents. */
export const POLICY_GROUP = 'policies.kyverno.io'
/** Served versions of `ImageValidatingPolicy`; all three mean the same (image-validating-policy.md 1.1). */
export const POLICY_VERSIONS: readonly string[] = ['v1', 'v1beta1', 'v1alpha1']

/** The most match conditions that a webhook may have. */
const MAX_MATCH_CONDITIONS = 64

/** `name` that must keep a rule, in the wording of the API server. */
function named(isRight: (name: string) => boolean, what: string): Shape<string> {
  return (value, path, faults) => {
    const name = words(value, path, faults)
    if (name === undefined || isRight(name)) return name
    return faults.add(path, `Invalid value: ${JSON.stringify(name)}: ${what}`)
  }
}

/** A list of `{name, expression}` whose names differ. */
function namedExpressions(name: Shape<string>, most?: number) {
  return listOf(object({ name: required(name), expression: required(expression) }), {
    unique: (item) => item.name,
    uniqueField: 'name',
    ...(most === undefined ? {} : { most }),
  })
}

const conditionName = named(isQualifiedName, 'must be a qualified name')
const variableName = named(isIdentifier, 'must be a CEL identifier that is not a reserved word')

const glob: Shape<string> = (value, path, faults) => {
  const pattern = text(value, path, faults)
  if (pattern === undefined || pattern === '') return pattern
  try {
    return compileGlob(pattern).pattern
  } catch (error) {
    return faults.add(path, error instanceof Error ? error.message : String(error))
  }
}

const imageReference = object(
  { glob: optional(glob), expression: optional(text) },
  (fields, path, faults) => {
    const given = ['glob', 'expression'].filter((name) => isSet(fields, name))
    if (given.length === 0) {
      faults.add(path, 'Required value: either glob or expression must be set')
    }
    if (given.length > 1) {
      faults.add(path, 'Invalid value: only one of glob and expression may be set')
    }
  },
)

const validation = object({
  expression: required(expression),
  message: optional(text),
  messageExpression: optional(text),
  reason: optional(text),
})

const auditAnnotation = object({
  key: required(named(isQualifiedName, 'must be a qualified name')),
  valueExpression: required(expression),
})

const validationConfigurations = object({
  mutateDigest: defaulted(flag, () => true),
  verifyDigest: defaulted(flag, () => true),
  required: defaulted(flag, () => true),
})

const evaluation = object({
  admission: optional(object({ enabled: defaulted(flag, () => true) })),
  background: optional(object({ enabled: defaulted(flag, () => true) })),
  mode: optional((value, path, faults) => {
    const mode = text(value, path, faults)
    return mode === undefined || mode === '' || mode === 'Kubernetes'
      ? mode
      : faults.add(
          path,
          `evaluation mode ${JSON.stringify(mode)} is not supported, only Kubernetes`,
          'POLICY_UNSUPPORTED',
        )
  }),
})

const CONTROLLERS = 'policies for Pod controllers are not generated yet; write controllers: []'

const autogen = object({
  podControllers: optional(object({ controllers: optional(refusedControllers) })),
})

/** `[]` switches autogen off and is kept apart from absent, which means every controller. */
function refusedControllers(value: unknown, path: Path, faults: Faults): [] | undefined {
  return Array.isArray(value) && value.length === 0
    ? []
    : faults.add(path, CONTROLLERS, 'POLICY_UNSUPPORTED')
}

const ACTIONS: readonly ValidationAction[] = ['Deny', 'Audit', 'Warn']

const specFields = {
  attestations: optional(
    listOf(attestation, { unique: (item: AttestationFields) => item.name, uniqueField: 'name' }),
  ),
  attestors: required(
    listOf(attestor, { unique: (item: AttestorFields) => item.name, uniqueField: 'name' }),
  ),
  auditAnnotations: defaulted(
    listOf(auditAnnotation, { unique: (item) => item.key, uniqueField: 'key', most: 20 }),
    () => [],
  ),
  autogen: optional(autogen),
  credentials: optional(credentials),
  evaluation: optional(evaluation),
  failurePolicy: defaulted(oneOf('Ignore', 'Fail'), () => 'Fail' as const),
  images: defaulted(namedExpressions(words), () => []),
  matchConditions: defaulted(namedExpressions(conditionName, MAX_MATCH_CONDITIONS), () => []),
  matchConstraints: required(matchConstraints, MISSING_CONSTRAINTS),
  matchImageReferences: defaulted(listOf(imageReference), () => []),
  validationActions: defaulted(listOf(oneOf(...ACTIONS), { unique: (action) => action }), () => []),
  validationConfigurations: defaulted(validationConfigurations, () => ({
    mutateDigest: true,
    verifyDigest: true,
    required: true,
  })),
  validations: required(listOf(validation)),
  variables: defaulted(namedExpressions(variableName), () => []),
  webhookConfiguration: optional(object({ timeoutSeconds: optional(integer(1, 30)) })),
}

const metadata = object({
  name: required(named(isSubdomain, 'must be a DNS-1123 subdomain')),
  namespace: optional((value, path, faults) =>
    value === ''
      ? undefined
      : faults.add(path, 'Forbidden: an ImageValidatingPolicy belongs to the whole cluster'),
  ),
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
})

const document = object({
  apiVersion: required(text),
  kind: required(text),
  metadata: required(metadata),
  spec: required(object(specFields)),
  status: optional(anything),
})

/** The spec of a policy with its defaults, expressions still as text. */
export type PolicySpec = ObjectOf<typeof specFields>

/** A policy document that is right as far as its shape goes. */
export interface PolicyDocument {
  apiVersion: string
  name: string
  spec: PolicySpec
}

/**
 * Reads an `ImageValidatingPolicy` field by field: the document with its defaults, or undefined after every fault was added
 * to `faults` (image-validating-policy.md 1.2–1.5). Expressions and keys are not looked into.
 */
export function readPolicy(value: unknown, path: Path, faults: Faults): PolicyDocument | undefined {
  const read = document(value, path, faults)
  if (read === undefined) return undefined
  const { validationActions, ...spec } = read.spec
  return {
    apiVersion: read.apiVersion,
    name: read.metadata.name,
    spec: { ...spec, validationActions: actionsOf(validationActions) },
  }
}

/** No action at all means Deny: silence must not admit. */
function actionsOf(actions: ValidationAction[]): ValidationAction[] {
  return actions.length === 0 ? ['Deny'] : actions
}

/** `metadata.name` of any document, for messages, or undefined when it has none. */
export function nameOf(value: unknown): string | undefined {
  const meta = isRecord(value) ? own(value, 'metadata') : undefined
  const name = isRecord(meta) ? own(meta, 'name') : undefined
  return typeof name === 'string' ? name : undefined
}
