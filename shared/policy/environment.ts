import { type FunctionDeclaration, fn, hostFn, member, overload } from '../cel/declarations.ts'
import {
  KYVERNO_FUNCTIONS,
  KYVERNO_PORTS,
  KYVERNO_TYPES,
  NAMESPACED_RESOURCE_FUNCTIONS,
} from '../cel/declare/kyverno.ts'
import { createEnvironment, type Environment } from '../cel/environment.ts'
import { KYVERNO } from '../cel/library/kyverno-context.ts'
import type { TypeName } from '../cel/types.ts'

/**
 * What the expressions of an image policy may use (image-validating-policy.md 2). Only the checker needs this; the functions
 * themselves are in `image-library.ts`, so that a deployed policy runs without it.
 */

const IMAGE = 'kyverno.Image'
const VARIABLES = 'kyverno.variables'
const EXCEPTIONS = 'kyverno.Exceptions'

/** Parsing of references: everywhere, it needs nothing from outside. */
const PARSE_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('parseImageReference', overload('parse_image_reference_string', ['string'], IMAGE)),
  fn('image', overload('image_string', ['string'], IMAGE)),
  fn('isImage', overload('is_image_string', ['string'], 'bool')),
  fn('containsDigest', member('image_contains_digest', [IMAGE], 'bool')),
  fn('registry', member('image_registry', [IMAGE], 'string')),
  fn('repository', member('image_repository', [IMAGE], 'string')),
  fn('identifier', member('image_identifier', [IMAGE], 'string')),
  fn('tag', member('image_tag', [IMAGE], 'string')),
  fn('digest', member('image_digest', [IMAGE], 'string')),
]

/** Functions that ask the host: only where an evaluation can be repeated once the answer is there. */
const HOST_FUNCTIONS: readonly FunctionDeclaration[] = [
  hostFn(
    'verifyImageSignatures',
    overload('verify_image_signatures_string_list', ['string', 'list(dyn)'], 'int'),
  ),
  hostFn(
    'verifyAttestationSignatures',
    overload(
      'verify_attestation_signatures_string_string_list',
      ['string', 'string', 'list(dyn)'],
      'int',
    ),
  ),
  hostFn('extractPayload', overload('extract_payload_string_string', ['string', 'string'], 'dyn')),
  hostFn('getImageData', overload('get_image_data_string', ['string'], 'dyn')),
  hostFn('image.GetMetadata', overload('image_get_metadata_string', ['string'], 'dyn')),
  hostFn('image.getMetadata', overload('image_get_metadata_camel_string', ['string'], 'dyn')),
]

const REQUEST_VARIABLES: Readonly<Record<string, TypeName>> = {
  object: 'dyn',
  oldObject: 'dyn',
  request: 'kubernetes.AdmissionRequest',
  namespaceObject: 'kubernetes.Namespace',
  json: KYVERNO.json,
}

/** Libraries whose functions ask the host. */
const CONTEXT_VARIABLES: Readonly<Record<string, TypeName>> = {
  resource: KYVERNO.resource,
  http: KYVERNO.http,
  yaml: KYVERNO.yaml,
}

/** What a policy may ask that is about no image, but for what is in a cluster. */
const CONTEXT_FUNCTIONS: readonly FunctionDeclaration[] = [
  ...KYVERNO_PORTS.http,
  ...KYVERNO_PORTS.yaml,
  ...KYVERNO_PORTS.gzip,
  ...KYVERNO_PORTS.random,
  ...KYVERNO_PORTS.time,
]

const IMAGE_VARIABLES: Readonly<Record<string, TypeName>> = {
  images: 'map(string, list(string))',
  attestors: 'map(string, dyn)',
  attestations: 'map(string, string)',
  exceptions: EXCEPTIONS,
}

const IMAGE_TYPES = {
  ...KYVERNO_TYPES,
  [EXCEPTIONS]: { allowedImages: 'list(string)', allowedValues: 'list(string)' },
}

const FILE_VARIABLES: Readonly<Record<string, TypeName>> = { object: 'dyn', json: KYVERNO.json }

/** Functions that need nothing from outside. */
export const PURE_FUNCTIONS: readonly FunctionDeclaration[] = [
  ...PARSE_FUNCTIONS,
  ...KYVERNO_FUNCTIONS,
]

/** For match conditions and image extractors: they run before images are known, so they see neither them nor `variables`. */
export const requestEnvironment = once(() =>
  createEnvironment({
    profile: 'kyverno',
    variables: REQUEST_VARIABLES,
    objectTypes: KYVERNO_TYPES,
    declare: PURE_FUNCTIONS,
  }),
)

/** For `matchImageReferences`: one reference, and how to take it apart. */
export const referenceEnvironment = once(() =>
  createEnvironment({
    profile: 'kyverno',
    variables: { ref: 'string' },
    declare: PARSE_FUNCTIONS,
  }),
)

const baseEnvironment = once(() => environmentWith(KYVERNO_PORTS.resource))

const namespacedEnvironment = once(() => environmentWith(NAMESPACED_RESOURCE_FUNCTIONS))

function environmentWith(resources: readonly FunctionDeclaration[]): Environment {
  return createEnvironment({
    profile: 'kyverno',
    variables: { ...REQUEST_VARIABLES, ...IMAGE_VARIABLES, ...CONTEXT_VARIABLES },
    objectTypes: IMAGE_TYPES,
    declare: [...PURE_FUNCTIONS, ...HOST_FUNCTIONS, ...CONTEXT_FUNCTIONS, ...resources],
  })
}

/** For match conditions and extractors of policies about files: there is no request. */
export const fileEnvironment = once(() =>
  createEnvironment({
    profile: 'kyverno',
    variables: FILE_VARIABLES,
    objectTypes: KYVERNO_TYPES,
    declare: PURE_FUNCTIONS,
  }),
)

/** For everything else in policies about files; variables they have none (image-validating-policy.md 2.3). */
export const filePolicyEnvironment = once(() =>
  createEnvironment({
    profile: 'kyverno',
    variables: { ...FILE_VARIABLES, ...IMAGE_VARIABLES },
    objectTypes: IMAGE_TYPES,
    declare: [...PURE_FUNCTIONS, ...HOST_FUNCTIONS],
  }),
)

/**
 * For variables, validations, messages and audit annotations. `variables` are those compiled so far, with their types. In a namespaced
 * policy `resource` has one namespace, the policy's.
 */
export function policyEnvironment(
  variables: ReadonlyMap<string, TypeName>,
  isNamespaced = false,
): Environment {
  const base = isNamespaced ? namespacedEnvironment() : baseEnvironment()
  return base.extend({ variables: VARIABLES }, { [VARIABLES]: Object.fromEntries(variables) })
}

/** Environments are immutable and the same for every policy, so that one of each kind is enough. */
function once(make: () => Environment): () => Environment {
  let made: Environment | undefined
  return () => {
    made ??= make()
    return made
  }
}

const EARLY =
  'is not available here: nothing outside is asked before it is known which images the policy is about; use it in variables or validations'

/** Names that Kyverno has and the engine does not, or not everywhere, and why: a reference to one is not a spelling mistake. */
export const UNSUPPORTED_NAMES: ReadonlyMap<string, string> = new Map([
  ['namespaceObject', 'is not available here'],
  ['authorizer', 'is not available in image policies'],
  [
    'globalContext',
    'is not supported: nothing watches the cluster between two requests; resource.list and resource.get read it',
  ],
  ['time', 'has only toCron and truncate here: time.now is for variables and validations'],
  ...['resource', 'http', 'random', 'yaml', 'gzip'].map((name): [string, string] => [name, EARLY]),
])

/** Overloads that are declared so that whoever calls them learns why they are refused, by how their ids start. */
export const REFUSED_CALLS: ReadonlyMap<string, string> = new Map([
  ['resource_post_', 'resource.post is not supported: the connection to the cluster only reads'],
  ['http_put_', 'http.put is not supported: policies of Kyverno have get and post'],
])
