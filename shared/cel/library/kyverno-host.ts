import { fromBase64, toBase64 } from '../../bytes.ts'
import { isJsonObject, type JsonValue } from '../../json.ts'
import type { Frame } from '../frame.ts'
import { callHost } from '../host.ts'
import {
  any,
  bytes,
  type Guard,
  type Implementation,
  instance,
  type Library,
  overload,
  string,
} from '../implementation.ts'
import { toJson } from '../to-json.ts'
import { CelError, type CelResult, type CelValue, isMap } from '../values.ts'
import { contextOf, GroupVersionResource, KYVERNO, LibraryContext } from './kyverno-context.ts'
import { parseTimestamp } from './time.ts'

const isHttp = contextOf(KYVERNO.http)
const isResource = contextOf(KYVERNO.resource)
const isGlobalContext = contextOf(KYVERNO.globalContext)
const isGvr: Guard<GroupVersionResource> = instance(GroupVersionResource)

/** The pattern of `random()` without one. */
const RANDOM_PATTERN = '[0-9a-z]{8}'

/**
 * Kyverno's functions that the host answers, by overload id. The host is called by one name for all spellings, with plain
 * arguments and every optional one filled in:
 *
 * - `resource.Get` apiVersion, resource, namespace, name · `resource.List` apiVersion, resource, namespace, labels ·
 *   `resource.Post` apiVersion, resource, namespace, object · `resource.ToGVR` apiVersion, kind → `{apiVersion, resource}`;
 *   the namespace is null in namespaced policies, where it is the policy's own
 * - `globalContext.Get` name, projection
 * - `http.Get` url, headers, CA bundle · `http.Post` and `http.Put` url, body, headers, CA bundle
 * - `yaml.parse` text · `gzip.compress` text → base64 · `gzip.decompress` base64 → text
 * - `random` pattern · `time.now` → RFC 3339
 */
export const kyvernoHostFunctions: Library = {
  ...bothSpellings(resourceFunctions),
  ...bothSpellings(namespacedResourceFunctions),
  ...bothSpellings(globalContextFunctions),
  ...bothSpellings(httpFunctions),
  parse_string_dyn: ask('parse', 'yaml.parse', [contextOf(KYVERNO.yaml), string], ([, text]) => [
    text,
  ]),
  compress_any_bytes: overload('gzip.compress', [any], compress),
  decompress_bytes_string: overload('gzip.decompress', [bytes], (value, frame: Frame) =>
    callHost(frame, 'gzip.decompress', [toBase64(value)]),
  ),
  ...randomFunctions('random', 'non_prefixed'),
  ...randomFunctions('random.random', 'prefixed'),
  time_now: overload('time.now', [], now),
}

type Spell = (name: string) => string

/** Functions in their older spelling, with a capital letter, and in the newer one. */
function bothSpellings(make: (spell: Spell, suffix: string) => Library): Library {
  return {
    ...make((name) => name, 'pascal'),
    ...make((name) => name.charAt(0).toLowerCase() + name.slice(1), 'camel'),
  }
}

/** A function that hands its arguments to the host. Those that have no JSON form are an error. */
function ask(
  fn: string,
  call: string,
  args: readonly Guard[],
  arrange: (args: readonly CelValue[]) => readonly (CelValue | undefined)[],
  read: (answer: CelResult) => CelResult = (answer) => answer,
): Implementation {
  const run = (...values: readonly (CelValue | Frame)[]): CelResult => {
    // The arguments have passed their guards; the frame comes last.
    const frame = values.at(-1) as Frame
    const plain: JsonValue[] = []
    for (const value of arrange(values.slice(0, -1) as CelValue[])) {
      const json = toJson(value ?? null)
      if (json instanceof CelError) return json
      plain.push(json)
    }
    return read(callHost(frame, call, plain))
  }
  return { fn, args, call: run as (...values: never[]) => CelResult }
}

function resourceFunctions(spell: Spell, suffix: string): Library {
  const place = [isResource, string, string, string]
  const [get, listing, post] = [spell('Get'), spell('List'), spell('Post')]
  /** The two parts of what `ToGVR` gave, in the place of the two texts. */
  const parts = (args: readonly CelValue[], ...more: readonly CelValue[]) => {
    const gvr = args[1] instanceof GroupVersionResource ? args[1] : undefined
    return [gvr?.apiVersion, gvr?.resource, ...args.slice(2), ...more]
  }
  const asThey = (args: readonly CelValue[], ...more: readonly CelValue[]) => [
    ...args.slice(1),
    ...more,
  ]
  return {
    [`resource_get_string_string_string_string_${suffix}`]: ask(
      get,
      'resource.Get',
      [...place, string],
      (args) => asThey(args),
    ),
    [`resource_get_gvr_string_string_${suffix}`]: ask(
      get,
      'resource.Get',
      [isResource, isGvr, string, string],
      (args) => parts(args),
    ),
    [`resource_list_string_string_string_${suffix}`]: ask(listing, 'resource.List', place, (args) =>
      asThey(args, {}),
    ),
    [`resource_list_string_string_string_map_${suffix}`]: ask(
      listing,
      'resource.List',
      [...place, isMap],
      (args) => asThey(args),
    ),
    [`list_resources_gvr_string_${suffix}`]: ask(
      listing,
      'resource.List',
      [isResource, isGvr, string],
      (args) => parts(args, {}),
    ),
    [`list_resources_gvr_string_map_${suffix}`]: ask(
      listing,
      'resource.List',
      [isResource, isGvr, string, isMap],
      (args) => parts(args),
    ),
    [`resource_post_string_string_string_map_${suffix}`]: ask(
      post,
      'resource.Post',
      [...place, isMap],
      (args) => asThey(args),
    ),
    [`resource_post_string_string_map_${suffix}`]: ask(
      post,
      'resource.Post',
      [isResource, string, string, isMap],
      ([, version, kind, object]) => [version, kind, '', object],
    ),
    [`convert_to_gvr_string_string_${suffix}`]: ask(
      suffix === 'pascal' ? 'ToGVR' : 'toGVR',
      'resource.ToGVR',
      [isResource, string, string],
      (args) => asThey(args),
      gvrOf,
    ),
  }
}

function namespacedResourceFunctions(spell: Spell, suffix: string): Library {
  const [get, listing] = [spell('Get'), spell('List')]
  /** A place by two texts or by what `ToGVR` gave, then no namespace, then the rest. */
  const place = (args: readonly CelValue[], ...more: readonly CelValue[]) => {
    const [, first = null, second = null, ...rest] = args
    return first instanceof GroupVersionResource
      ? [first.apiVersion, first.resource, null, ...args.slice(2), ...more]
      : [first, second, null, ...rest, ...more]
  }
  const byText = [isResource, string, string]
  const byGvr = [isResource, isGvr]
  const getBy = (args: readonly Guard[]) =>
    ask(get, 'resource.Get', [...args, string], (values) => place(values))
  const listBy = (args: readonly Guard[]) =>
    ask(listing, 'resource.List', args, (values) => place(values, {}))
  const listWith = (args: readonly Guard[]) =>
    ask(listing, 'resource.List', [...args, isMap], (values) => place(values))
  return {
    [`namespaced_resource_get_string_string_string_${suffix}`]: getBy(byText),
    [`namespaced_resource_get_gvr_string_${suffix}`]: getBy(byGvr),
    [`namespaced_resource_list_string_string_${suffix}`]: listBy(byText),
    [`namespaced_resource_list_string_string_map_${suffix}`]: listWith(byText),
    [`namespaced_list_resources_gvr_${suffix}`]: listBy(byGvr),
    [`namespaced_list_resources_gvr_map_${suffix}`]: listWith(byGvr),
  }
}

function gvrOf(answer: CelResult): CelResult {
  if (answer instanceof CelError) return answer
  const { apiVersion, resource } = isPlain(answer) ? answer : {}
  if (typeof apiVersion !== 'string' || typeof resource !== 'string') {
    return new CelError('resource.ToGVR: the host did not answer with apiVersion and resource')
  }
  return new GroupVersionResource(apiVersion, resource)
}

function isPlain(value: CelValue): value is { [key: string]: CelValue } {
  return isJsonObject(value as JsonValue) // narrows by shape alone
}

function globalContextFunctions(spell: Spell, suffix: string): Library {
  const [fn, call] = [spell('Get'), 'globalContext.Get']
  return {
    [`globalcontext_get_string_${suffix}`]: ask(fn, call, [isGlobalContext, string], ([, name]) => [
      name,
      '',
    ]),
    [`globalcontext_get_string_string_${suffix}`]: ask(
      fn,
      call,
      [isGlobalContext, string, string],
      ([, name, projection]) => [name, projection],
    ),
  }
}

function httpFunctions(spell: Spell, suffix: string): Library {
  const withBody = (name: 'Post' | 'Put') => {
    const [fn, call, id] = [spell(name), `http.${name}`, `http_${name.toLowerCase()}_string_any`]
    return {
      [`${id}_${suffix}`]: ask(fn, call, [isHttp, string, any], ([client, url, body]) => [
        url,
        body,
        {},
        client,
      ]),
      [`${id}_headers_${suffix}`]: ask(
        fn,
        call,
        [isHttp, string, any, isMap],
        ([client, url, body, headers]) => [url, body, headers, client],
      ),
    }
  }
  const get = spell('Get')
  return {
    [`http_get_string_${suffix}`]: ask(get, 'http.Get', [isHttp, string], ([client, url]) => [
      url,
      {},
      client,
    ]),
    [`http_get_string_headers_${suffix}`]: ask(
      get,
      'http.Get',
      [isHttp, string, isMap],
      ([client, url, headers]) => [url, headers, client],
    ),
    ...withBody('Post'),
    ...withBody('Put'),
    [`http_client_string_${suffix}`]: overload(
      spell('Client'),
      [isHttp, string],
      (_, bundle) => new LibraryContext(KYVERNO.http, bundle),
    ),
  }
}

function randomFunctions(fn: string, suffix: string): Library {
  return {
    [`random_string_${suffix}`]: ask(fn, 'random', [string], (args) => args),
    [`random_string_default_expr_${suffix}`]: ask(fn, 'random', [], () => [RANDOM_PATTERN]),
  }
}

function compress(value: CelValue, frame: Frame): CelResult {
  if (typeof value !== 'string') return new CelError('gzip.compress takes a string')
  const answer = callHost(frame, 'gzip.compress', [value])
  if (answer instanceof CelError) return answer
  const compressed = typeof answer === 'string' ? fromBase64(answer) : undefined
  return compressed ?? new CelError('gzip.compress: the host did not answer with base64')
}

function now(frame: Frame): CelResult {
  const answer = callHost(frame, 'time.now', [])
  if (answer instanceof CelError) return answer
  return typeof answer === 'string'
    ? parseTimestamp(answer)
    : new CelError('time.now: no timestamp')
}
