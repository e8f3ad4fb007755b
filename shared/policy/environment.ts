import { type FunctionDeclaration, fn, hostFn, member, overload } from '../cel/declarations.ts'
import { KYVERNO_FUNCTIONS, KYVERNO_TYPES } from '../cel/declare/kyverno.ts'
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
  json: KYVERNO.json,
}

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

const baseEnvironment = once(() =>
  createEnvironment({
    profile: 'kyverno',
    variables: {
      ...REQUEST_VARIABLES,
      ...IMAGE_VARIABLES,
    },
    objectTypes: IMAGE_TYPES,
    declare: [...PURE_FUNCTIONS, ...HOST_FUNCTIONS],
  }),
)

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

/** For variables, validations, messages and audit annotations. `variables` are those compiled so far, with their types. */
export function policyEnvironment(variables: ReadonlyMap<string, TypeName>): Environment {
  return baseEnvironment().extend(
    { variables: VARIABLES },
    { [VARIABLES]: Object.fromEntries(variables) },
  )
}

/** Environments are immutable and the same for every policy, so that one of each kind is enough. */
function once(make: () => Environment): () => Environment {
  let made: Environment | undefined
  return () => {
    made ??= make()
    return made
  }
}

const CLUSTER = 'is not supported: the engine has no access to the cluster'
const LATER = 'is not supported yet'

/** Names that Kyverno has and the engine does not, and why: a reference to one is not a spelling mistake. */
export const UNSUPPORTED_NAMES: ReadonlyMap<string, string> = new Map([
  ['namespaceObject', 'is not supported: a review does not carry the namespace'],
  ['authorizer', 'is not available in image policies'],
  ['resource', CLUSTER],
  ['globalContext', CLUSTER],
  ['http', 'is not supported: policies make no requests of their own'],
  ['time', 'has only toCron and truncate so far'],
  ...['random', 'yaml', 'gzip'].map((name): [string, string] => [name, LATER]),
])
