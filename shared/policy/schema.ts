import { MAX_MATCH_CONDITIONS } from '../limits.ts'
import { type AttestationFields, attestation } from './attestations.ts'
import { type AttestorFields, attestor } from './attestors.ts'
import { MISSING_CONSTRAINTS, matchConstraints } from './constraints.ts'
import { credentials } from './credentials.ts'
import { compileGlob } from './glob.ts'
import { clusterMetadata, named, namespacedMetadata } from './metadata.ts'
import { isIdentifier, isQualifiedName } from './names.ts'
import type { LoadOptions } from './options.ts'
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
  type ObjectOf,
  object,
  oneOf,
  optional,
  own,
  type Path,
  required,
  type Shape,
  text,
  unsupportedValue,
  words,
} from './shape.ts'
import type { PolicyKind, ValidationAction } from './types.ts'

/** A list of `{name, expression}` whose names differ. */
function namedExpressions(name: Shape<string>, most?: number) {
  return listOf(object({ name: required(name), expression: required(expression) }), {
    unique: (item) => item.name,
    uniqueField: 'name',
    ...(most === undefined ? {} : { most }),
  })
}

const qualifiedName = named(isQualifiedName, 'must be a qualified name')

/** `matchConditions`, of policies and of exceptions. */
export const matchConditions = namedExpressions(qualifiedName, MAX_MATCH_CONDITIONS)

const variableName = named(isIdentifier, 'must be a CEL identifier that is not a reserved word')

/** A glob about images. */
export const glob: Shape<string> = (value, path, faults) => {
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
  key: required(qualifiedName),
  valueExpression: required(expression),
})

const validationConfigurations = object({
  mutateDigest: defaulted(flag, () => true),
  verifyDigest: defaulted(flag, () => true),
  required: defaulted(flag, () => true),
})

/** `Kubernetes`, also when nothing is said, or `JSON` where that can be run (`JSON_MODE`). */
export const evaluationMode: Shape<string> = (value, path, faults) => {
  const mode = text(value, path, faults)
  if (mode === undefined || ['', 'Kubernetes', 'JSON'].includes(mode)) return mode
  return faults.add(path, unsupportedValue(mode, ['Kubernetes', 'JSON']), 'POLICY_UNSUPPORTED')
}

/** Why evaluation mode JSON is refused in a deployment. */
export const JSON_MODE =
  'evaluation mode "JSON" is about files: no webhook is called for them, so that only `countersign test` runs it'

const evaluation = object({
  admission: optional(object({ enabled: defaulted(flag, () => true) })),
  background: optional(object({ enabled: defaulted(flag, () => true) })),
  mode: optional(evaluationMode),
})

const autogen = object({
  // `[]` switches it off and is kept apart from absent, which means every controller.
  podControllers: optional(object({ controllers: optional(listOf(text)) })),
})

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
  matchConditions: defaulted(matchConditions, () => []),
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

const spec = object(specFields)

/** Files are not matched by rules. */
const jsonSpec = object({
  ...specFields,
  matchConstraints: defaulted(matchConstraints, () => ({
    resourceRules: [],
    excludeResourceRules: [],
  })),
})

/** The spec of a policy with its defaults, expressions still as text. */
export type PolicySpec = ObjectOf<typeof specFields>

/** A policy document that is right as far as its shape goes. */
export interface PolicyDocument {
  kind: PolicyKind
  apiVersion: string
  name: string
  namespace?: string
  spec: PolicySpec
}

/** `metadata` and `spec` of a document, with what every object has beside them. */
export function documentOf<M, S>(metadata: Shape<M>, spec: Shape<S>) {
  return object({
    apiVersion: required(text),
    kind: required(text),
    metadata: required(metadata),
    spec: required(spec),
    status: optional(anything),
  })
}

/**
 * Reads a policy of this kind field by field: the document with its defaults, or undefined after every fault was added to `faults`
 * (image-validating-policy.md 1.2–1.5). Expressions and keys are not looked into.
 */
export function readPolicy(
  value: unknown,
  path: Path,
  faults: Faults,
  kind: PolicyKind = 'ImageValidatingPolicy',
  { defaultNamespace, jsonMode = false }: LoadOptions = {},
): PolicyDocument | undefined {
  const isJson = isJsonMode(value)
  if (isJson && !jsonMode) {
    faults.add([...path, 'spec', 'evaluation', 'mode'], JSON_MODE, 'POLICY_UNSUPPORTED')
  }
  const metadata: Shape<{ name: string; namespace?: string | undefined }> =
    kind === 'ImageValidatingPolicy' ? clusterMetadata : namespacedMetadata(kind, defaultNamespace)
  const read = documentOf(metadata, isJson && jsonMode ? jsonSpec : spec)(value, path, faults)
  if (read === undefined) return undefined
  const { name, namespace } = read.metadata
  const { validationActions, ...fields } = read.spec
  return {
    kind,
    apiVersion: read.apiVersion,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    spec: { ...fields, validationActions: actionsOf(validationActions) },
  }
}

/** True for a policy about files instead of requests, whatever is wrong with it. */
export function isJsonMode(value: unknown): boolean {
  const at = (from: unknown, name: string) => (isRecord(from) ? own(from, name) : undefined)
  return at(at(at(value, 'spec'), 'evaluation'), 'mode') === 'JSON'
}

/** No action at all means Deny: silence must not admit. */
function actionsOf(actions: ValidationAction[]): ValidationAction[] {
  return actions.length === 0 ? ['Deny'] : actions
}
