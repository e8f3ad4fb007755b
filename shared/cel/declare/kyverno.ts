import { type FunctionDeclaration, fn, member, overload, portFn } from '../declarations.ts'
import { KYVERNO } from '../library/kyverno-context.ts'
import type { TypeName } from '../types.ts'
import type { ObjectTypes } from './admission.ts'

/** Kyverno's own libraries (image-validating-policy.md 2.7). What needs something from outside is declared for one port each. */

const OBJECT = 'map(string, any)'

/** Functions of newer versions are spelled with a small letter, and with a prefix; the older spellings stay. */
type Spelling = 'pascal' | 'camel'
const SPELLINGS: readonly Spelling[] = ['pascal', 'camel']

function spelled(name: string, spelling: Spelling): string {
  return spelling === 'pascal' ? name : name.charAt(0).toLowerCase() + name.slice(1)
}

/** `resource.Get List Post ToGVR` of a cluster policy. */
const RESOURCE_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.flatMap((spelling) => {
  const of = (id: string, args: readonly TypeName[], result: TypeName) =>
    member(`${id}_${spelling}`, [KYVERNO.resource, ...args], result)
  const labels = 'map(string, string)'
  return [
    portFn(
      'resource',
      spelled('Get', spelling),
      of(
        'resource_get_string_string_string_string',
        ['string', 'string', 'string', 'string'],
        OBJECT,
      ),
      of('resource_get_gvr_string_string', [KYVERNO.gvr, 'string', 'string'], OBJECT),
    ),
    portFn(
      'resource',
      spelled('List', spelling),
      of('resource_list_string_string_string', ['string', 'string', 'string'], OBJECT),
      of('resource_list_string_string_string_map', ['string', 'string', 'string', labels], OBJECT),
      of('list_resources_gvr_string', [KYVERNO.gvr, 'string'], OBJECT),
      of('list_resources_gvr_string_map', [KYVERNO.gvr, 'string', labels], OBJECT),
    ),
    portFn(
      'resource',
      spelled('Post', spelling),
      of('resource_post_string_string_string_map', ['string', 'string', 'string', OBJECT], OBJECT),
      of('resource_post_string_string_map', ['string', 'string', OBJECT], OBJECT),
    ),
    portFn(
      'resource',
      spelling === 'pascal' ? 'ToGVR' : 'toGVR',
      of('convert_to_gvr_string_string', ['string', 'string'], KYVERNO.gvr),
    ),
  ]
})

/** The same of a namespaced policy: it has one namespace, so nothing says which. */
export const NAMESPACED_RESOURCE_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.flatMap(
  (spelling) => {
    const of = (id: string, args: readonly TypeName[]) =>
      member(`namespaced_${id}_${spelling}`, [KYVERNO.resource, ...args], OBJECT)
    const labels = 'map(string, string)'
    const isShared = ({ name }: FunctionDeclaration) => name === spelled('ToGVR', spelling)
    return [
      portFn(
        'resource',
        spelled('Get', spelling),
        of('resource_get_string_string_string', ['string', 'string', 'string']),
        of('resource_get_gvr_string', [KYVERNO.gvr, 'string']),
      ),
      portFn(
        'resource',
        spelled('List', spelling),
        of('resource_list_string_string', ['string', 'string']),
        of('resource_list_string_string_map', ['string', 'string', labels]),
        of('list_resources_gvr', [KYVERNO.gvr]),
        of('list_resources_gvr_map', [KYVERNO.gvr, labels]),
      ),
      ...RESOURCE_FUNCTIONS.filter(isShared),
    ]
  },
)

/** `globalContext.Get`. */
const GLOBAL_CONTEXT_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.map((spelling) =>
  portFn(
    'globalContext',
    spelled('Get', spelling),
    member(`globalcontext_get_string_${spelling}`, [KYVERNO.globalContext, 'string'], 'dyn'),
    member(
      `globalcontext_get_string_string_${spelling}`,
      [KYVERNO.globalContext, 'string', 'string'],
      'dyn',
    ),
  ),
)

/** `http.Get Post Put Client`. */
const HTTP_FUNCTIONS: readonly FunctionDeclaration[] = SPELLINGS.flatMap((spelling) => {
  const headers = 'map(string, string)'
  const withBody = (name: 'Post' | 'Put') => {
    const id = `http_${name.toLowerCase()}_string_any`
    return portFn(
      'http',
      spelled(name, spelling),
      member(`${id}_${spelling}`, [KYVERNO.http, 'string', 'any'], 'any'),
      member(`${id}_headers_${spelling}`, [KYVERNO.http, 'string', 'any', headers], 'any'),
    )
  }
  return [
    portFn(
      'http',
      spelled('Get', spelling),
      member(`http_get_string_${spelling}`, [KYVERNO.http, 'string'], 'any'),
      member(`http_get_string_headers_${spelling}`, [KYVERNO.http, 'string', headers], 'any'),
    ),
    withBody('Post'),
    withBody('Put'),
    portFn(
      'http',
      spelled('Client', spelling),
      member(`http_client_string_${spelling}`, [KYVERNO.http, 'string'], KYVERNO.http),
    ),
  ]
})

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

/** `random` and `random.random`. */
const RANDOM_FUNCTIONS: readonly FunctionDeclaration[] = [
  ...prefixed('random', 'random', 'random_string', ['string'], 'string'),
  ...prefixed('random', 'random', 'random_string_default_expr', [], 'string'),
].map((declaration) => ({ ...declaration, host: 'random' }))

/** Functions that need nothing from outside. */
export const KYVERNO_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('unmarshal', member('unmarshal_string_dyn', [KYVERNO.json, 'dyn'], 'dyn')),
  fn('marshal', member('marshal_dyn_string', [KYVERNO.json, 'dyn'], 'string')),
  ...['sha1', 'sha256', 'md5'].flatMap((name) =>
    prefixed('hash', name, `${name}_string`, ['string'], 'string'),
  ),
  ...prefixed(
    'user',
    'parseServiceAccount',
    'parse_service_account_string',
    ['string'],
    KYVERNO.serviceAccount,
  ),
  ...prefixed(
    'transform',
    'listObjToMap',
    'list_of_object_to_map',
    ['list', 'list', 'string', 'string'],
    'map',
  ),
  fn('math.round', overload('math_round_float_int', ['double', 'int'], 'double')),
  fn('time.toCron', overload('time_to_cron', ['timestamp'], 'string')),
  fn('time.truncate', overload('time_truncate', ['timestamp', 'duration'], 'timestamp')),
]

/** What the host of an evaluation may answer. A policy that calls one has the port among the needs of its program. */
export type KyvernoPort =
  | 'resource'
  | 'globalContext'
  | 'http'
  | 'yaml'
  | 'gzip'
  | 'random'
  | 'time'

/** Functions by the port that answers them: only those are declared that somebody answers. */
export const KYVERNO_PORTS: Readonly<Record<KyvernoPort, readonly FunctionDeclaration[]>> = {
  resource: RESOURCE_FUNCTIONS,
  globalContext: GLOBAL_CONTEXT_FUNCTIONS,
  http: HTTP_FUNCTIONS,
  yaml: [portFn('yaml', 'parse', member('parse_string_dyn', [KYVERNO.yaml, 'string'], 'dyn'))],
  gzip: [
    portFn('gzip', 'gzip.compress', overload('compress_any_bytes', ['dyn'], 'bytes')),
    portFn('gzip', 'gzip.decompress', overload('decompress_bytes_string', ['bytes'], 'string')),
  ],
  random: RANDOM_FUNCTIONS,
  time: [portFn('time', 'time.now', overload('time_now', [], 'timestamp'))],
}

/** The variables whose methods the libraries are; their values are `KYVERNO_CONTEXT_VALUES`. */
export const KYVERNO_CONTEXTS: Readonly<Record<string, TypeName>> = {
  resource: KYVERNO.resource,
  globalContext: KYVERNO.globalContext,
  http: KYVERNO.http,
  json: KYVERNO.json,
  yaml: KYVERNO.yaml,
}

/** Fields of what the libraries return. */
export const KYVERNO_TYPES: ObjectTypes = {
  [KYVERNO.serviceAccount]: { Name: 'string', Namespace: 'string' },
}
