import { type FunctionDeclaration, fn, hostFn, member, overload } from '../declarations.ts'
import type { TypeName } from '../types.ts'
import type { ObjectTypes } from './admission.ts'

/** Kyverno's own libraries (image-validating-policy.md 2.5–2.7), one list each: a policy declares those it has a port for. */

const IMAGE = 'kyverno.Image'
const JSON_TYPE = 'kyverno.Json'
const YAML_TYPE = 'kyverno.Yaml'
const HTTP = 'kyverno.http.Context'
const RESOURCE = 'kyverno.resource.Context'
const GLOBAL_CONTEXT = 'kyverno.globalcontext.Context'
const IMAGE_DATA = 'kyverno.imagedata.Context'
const GVR = 'kyverno.GroupVersionResource'
const SERVICE_ACCOUNT = 'kyverno.ServiceAccount'
const OBJECT = 'map(string, any)'

/** Functions of newer versions are spelled with a small letter, and with a prefix; the older spellings stay. */
type Spelling = 'pascal' | 'camel'
const SPELLINGS: readonly Spelling[] = ['pascal', 'camel']

function spelled(name: string, spelling: Spelling): string {
  return spelling === 'pascal' ? name : name.charAt(0).toLowerCase() + name.slice(1)
}

/** `parseImageReference`, `isImage` and what can be asked of a reference. Needs nothing from outside. */
export const IMAGE_REFERENCE_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('parseImageReference', overload('string_to_image', ['string'], IMAGE)),
  fn('image', overload('string_to_image_deprecated', ['string'], IMAGE)),
  fn('isImage', overload('is_image_string', ['string'], 'bool')),
  fn('containsDigest', member('image_contains_digest', [IMAGE], 'bool')),
  ...['registry', 'repository', 'identifier', 'tag', 'digest'].map((name) =>
    fn(name, member(`image_${name}`, [IMAGE], 'string')),
  ),
]

/** Signatures, attestations and image data: host calls. */
export const IMAGE_VERIFY_FUNCTIONS: readonly FunctionDeclaration[] = [
  hostFn(
    'verifyImageSignatures',
    overload('verify_image_signature_string_stringarray', ['string', 'list(dyn)'], 'int'),
  ),
  hostFn(
    'verifyAttestationSignatures',
    overload(
      'verify_image_attestations_string_string_stringarray',
      ['string', 'string', 'list(dyn)'],
      'int',
    ),
  ),
  hostFn('getImageData', overload('get_image_data_string', ['string'], 'dyn')),
  hostFn('extractPayload', overload('payload_string_string', ['string', 'string'], 'dyn')),
]

/** `image.GetMetadata`: a host call. */
export const IMAGE_DATA_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.map((spelling) =>
  hostFn(
    spelled('GetMetadata', spelling),
    member(`imagedata_get_string_${spelling}`, [IMAGE_DATA, 'string'], 'dyn'),
  ),
)

/** `resource.Get List Post ToGVR` of a cluster policy: host calls. */
export const RESOURCE_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.flatMap((spelling) => {
  const of = (id: string, args: readonly TypeName[], result: TypeName) =>
    member(`${id}_${spelling}`, [RESOURCE, ...args], result)
  const labels = 'map(string, string)'
  return [
    hostFn(
      spelled('Get', spelling),
      of(
        'resource_get_string_string_string_string',
        ['string', 'string', 'string', 'string'],
        OBJECT,
      ),
      of('resource_get_gvr_string_string', [GVR, 'string', 'string'], OBJECT),
    ),
    hostFn(
      spelled('List', spelling),
      of('resource_list_string_string_string', ['string', 'string', 'string'], OBJECT),
      of('resource_list_string_string_string_map', ['string', 'string', 'string', labels], OBJECT),
      of('list_resources_gvr_string', [GVR, 'string'], OBJECT),
      of('list_resources_gvr_string_map', [GVR, 'string', labels], OBJECT),
    ),
    hostFn(
      spelled('Post', spelling),
      of('resource_post_string_string_string_map', ['string', 'string', 'string', OBJECT], OBJECT),
      of('resource_post_string_string_map', ['string', 'string', OBJECT], OBJECT),
    ),
    hostFn(
      spelling === 'pascal' ? 'ToGVR' : 'toGVR',
      of('convert_to_gvr_string_string', ['string', 'string'], GVR),
    ),
  ]
})

/** `globalContext.Get`: a host call. */
export const GLOBAL_CONTEXT_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.map((spelling) =>
  hostFn(
    spelled('Get', spelling),
    member(`globalcontext_get_string_${spelling}`, [GLOBAL_CONTEXT, 'string'], 'dyn'),
    member(
      `globalcontext_get_string_string_${spelling}`,
      [GLOBAL_CONTEXT, 'string', 'string'],
      'dyn',
    ),
  ),
)

/** `http.Get Post Put Client`: host calls. */
export const HTTP_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.flatMap((spelling) => {
  const headers = 'map(string, string)'
  const withBody = (name: 'Post' | 'Put') => {
    const id = `http_${name.toLowerCase()}_string_any`
    return hostFn(
      spelled(name, spelling),
      member(`${id}_${spelling}`, [HTTP, 'string', 'any'], 'any'),
      member(`${id}_headers_${spelling}`, [HTTP, 'string', 'any', headers], 'any'),
    )
  }
  return [
    hostFn(
      spelled('Get', spelling),
      member(`http_get_string_${spelling}`, [HTTP, 'string'], 'any'),
      member(`http_get_string_headers_${spelling}`, [HTTP, 'string', headers], 'any'),
    ),
    withBody('Post'),
    withBody('Put'),
    hostFn(
      spelled('Client', spelling),
      member(`http_client_string_${spelling}`, [HTTP, 'string'], HTTP),
    ),
  ]
})

/** JSON and YAML as text. */
export const TEXT_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('unmarshal', member('unmarshal_string_dyn', [JSON_TYPE, 'dyn'], 'dyn')),
  fn('marshal', member('marshal_dyn_string', [JSON_TYPE, 'dyn'], 'string')),
  fn('parse', member('parse_string_dyn', [YAML_TYPE, 'string'], 'dyn')),
]

/** A function and its newer spelling with a prefix. */
function prefixed(
  prefix: string,
  name: string,
  id: string,
  args: readonly TypeName[],
  result: TypeName,
): FunctionDeclaration[] {
  return [
    fn(name, overload(`${id}_non_prefixed`, args, result)),
    fn(`${prefix}.${name}`, overload(`${id}_prefixed`, args, result)),
  ]
}

/** Everything else that needs nothing but a clock and a source of chance. */
export const KYVERNO_FUNCTIONS: readonly FunctionDeclaration[] = [
  ...['sha1', 'sha256', 'md5'].flatMap((name) =>
    prefixed('hash', name, `${name}_string`, ['string'], 'string'),
  ),
  ...prefixed('random', 'random', 'random_string', ['string'], 'string'),
  ...prefixed('random', 'random', 'random_string_default_expr', [], 'string'),
  ...prefixed(
    'user',
    'parseServiceAccount',
    'parse_service_account_string',
    ['string'],
    SERVICE_ACCOUNT,
  ),
  ...prefixed(
    'transform',
    'listObjToMap',
    'list_of_object_to_map',
    ['list', 'list', 'string', 'string'],
    'map',
  ),
  fn('math.round', overload('math_round_float_int', ['double', 'int'], 'double')),
  fn('time.now', overload('time_now', [], 'timestamp')),
  fn('time.toCron', overload('time_to_cron', ['timestamp'], 'string')),
  fn('time.truncate', overload('time_truncate', ['timestamp', 'duration'], 'timestamp')),
  fn('gzip.compress', overload('compress_any_bytes', ['dyn'], 'bytes')),
  fn('gzip.decompress', overload('decompress_bytes_string', ['bytes'], 'string')),
]

/** The variables whose methods the libraries are. */
export const KYVERNO_CONTEXTS: Readonly<Record<string, TypeName>> = {
  image: IMAGE_DATA,
  resource: RESOURCE,
  globalContext: GLOBAL_CONTEXT,
  http: HTTP,
  json: JSON_TYPE,
  yaml: YAML_TYPE,
}

/** Fields of what the libraries return. */
export const KYVERNO_TYPES: ObjectTypes = {
  [SERVICE_ACCOUNT]: { Name: 'string', Namespace: 'string' },
}
