import type { AdmissionRequest, GroupVersionKind, JsonObject } from '../admission/types.ts'
import { AdmissionError, type Fault } from '../errors.ts'
import { getOwn, isJsonObject, type JsonValue } from '../json.ts'
import { MAX_FAULTS, MAX_IMAGES, MAX_LISTED_FAULTS } from '../limits.ts'
import type { ExtractedImage } from './types.ts'

/** The lists of a Pod spec that hold images, by the name of their extractor. */
const LISTS = ['containers', 'initContainers', 'ephemeralContainers'] as const

const POD = ['spec']
const TEMPLATE = ['spec', 'template', 'spec']

/** Where the Pod spec is, by `group/Kind` (specs/image-validating-policy.md 5.1, and what Kyverno's mutate phase adds). */
const POD_SPECS: Readonly<Record<string, readonly string[]>> = {
  '/Pod': POD,
  '/PodTemplate': ['template', 'spec'],
  '/ReplicationController': TEMPLATE,
  'apps/DaemonSet': TEMPLATE,
  'apps/Deployment': TEMPLATE,
  'apps/ReplicaSet': TEMPLATE,
  'apps/StatefulSet': TEMPLATE,
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
  'batch/Job': TEMPLATE,
}

/** The same by `group/resource`, for a request whose kind says nothing. */
const KIND_OF_RESOURCE: Readonly<Record<string, string>> = {
  '/pods': '/Pod',
  '/podtemplates': '/PodTemplate',
  '/replicationcontrollers': '/ReplicationController',
  'apps/daemonsets': 'apps/DaemonSet',
  'apps/deployments': 'apps/Deployment',
  'apps/replicasets': 'apps/ReplicaSet',
  'apps/statefulsets': 'apps/StatefulSet',
  'batch/cronjobs': 'batch/CronJob',
  'batch/jobs': 'batch/Job',
}

/** Kinds of subresources that run nothing, by `group/Kind`. One that is not known to is no proof that nothing would run. */
const RUNS_NOTHING: readonly string[] = ['autoscaling/Scale', 'policy/Eviction', '/Binding']

/** What an object would run. */
export interface Extraction {
  /** Every image with its place, list by list in the object's own order. */
  images: readonly ExtractedImage[]
  /** The CEL variable `images`: all three lists for Pods, their controllers and what is sent to these, no key at all for anything else. */
  map: Readonly<Record<string, readonly string[]>>
}

const NOTHING: Extraction = { images: [], map: {} }
const EMPTY: Extraction = {
  images: [],
  map: { containers: [], initContainers: [], ephemeralContainers: [] },
}

/**
 * The images of a request's object, or of `oldObject` when there is no object (DELETE). Scale, Eviction and
 * Binding of a Pod or a controller run no image, so that their lists are empty; upstream has no lists there, and every expression
 * about images denies. That is so here for the options of CONNECT, which may run anything in a Pod. Throws `IMAGE_LIST_INVALID` with every pointer where a list or an
 * image is not what it must be, so that nothing that may run is passed over. Like Kyverno it reads containers only:
 * image volumes (`spec.volumes[].image.reference`) are not extracted.
 */
export function extractImages(request: AdmissionRequest): Extraction {
  const path = request.operation === 'CONNECT' ? undefined : podSpecPath(request)
  const object = subject(request)
  if (path === undefined) return isAboutPods(request) ? EMPTY : NOTHING
  if (object === undefined) return NOTHING
  const faults: Fault[] = []
  const images: ExtractedImage[] = []
  const map: Record<string, string[]> = {}
  const podSpec = descend(object, path, faults)
  for (const extractor of LISTS) {
    const found = podSpec === undefined ? [] : readList(podSpec, path, extractor, faults)
    map[extractor] = found.map(({ image }) => image)
    images.push(...found)
  }
  if (faults.length > 0) throw invalid(faults)
  if (images.length > MAX_IMAGES) {
    const message = `the object has ${images.length} images, at most ${MAX_IMAGES} may be`
    throw new AdmissionError('IMAGE_LIST_INVALID', message)
  }
  return { images, map }
}

/** Whether the request is about an object that has a Pod template. */
export function hasPodTemplate(request: AdmissionRequest): boolean {
  return request.operation !== 'CONNECT' && podSpecPath(request) !== undefined
}

/** The kind decides, because it is what the object looks like; a subresource may have a kind of its own. */
function podSpecPath(request: AdmissionRequest): readonly string[] | undefined {
  const byKind = podSpecOf(request.kind)
  if (byKind !== undefined || request.subResource !== undefined) return byKind
  const kind = kindOfResource(request)
  return kind === undefined ? undefined : POD_SPECS[kind]
}

/** True for what is sent to a Pod or a controller and runs nothing itself. */
function isAboutPods(request: AdmissionRequest): boolean {
  const { group, kind } = request.kind
  return RUNS_NOTHING.includes(`${group}/${kind}`) && kindOfResource(request) !== undefined
}

function kindOfResource(request: AdmissionRequest): string | undefined {
  const { group, resource } = request.requestResource ?? request.resource
  const key = `${group}/${resource}`
  return Object.hasOwn(KIND_OF_RESOURCE, key) ? KIND_OF_RESOURCE[key] : undefined
}

function podSpecOf({ group, kind }: GroupVersionKind): readonly string[] | undefined {
  const key = `${group}/${kind}`
  return Object.hasOwn(POD_SPECS, key) ? POD_SPECS[key] : undefined
}

/** On DELETE the object that goes away: an empty object stands for no object, as Go decodes null. */
function subject({ operation, object, oldObject }: AdmissionRequest): JsonObject | undefined {
  const isEmpty = object === null || (operation === 'DELETE' && Object.keys(object).length === 0)
  return (isEmpty ? oldObject : object) ?? undefined
}

function descend(
  object: JsonObject,
  path: readonly string[],
  faults: Fault[],
): JsonObject | undefined {
  let at = object
  for (const [depth, key] of path.entries()) {
    const next = getOwn(at, key)
    if (!isJsonObject(next)) {
      faults.push(fault(path.slice(0, depth + 1), 'an object', next))
      return undefined
    }
    at = next
  }
  return at
}

function readList(
  podSpec: JsonObject,
  path: readonly string[],
  extractor: (typeof LISTS)[number],
  faults: Fault[],
): ExtractedImage[] {
  const list = getOwn(podSpec, extractor)
  if (list === undefined && extractor !== 'containers') return []
  if (!Array.isArray(list)) {
    faults.push(fault([...path, extractor], 'a list', list))
    return []
  }
  const out: ExtractedImage[] = []
  for (const [index, container] of list.entries()) {
    if (faults.length >= MAX_FAULTS) break
    const place = [...path, extractor, String(index)]
    if (!isJsonObject(container)) {
      faults.push(fault(place, 'an object', container))
      continue
    }
    const image = getOwn(container, 'image')
    const imagePlace = [...place, 'image']
    if (typeof image === 'string' && image !== '') {
      out.push({ extractor, pointer: pointer(imagePlace), image })
    } else faults.push(fault(imagePlace, 'an image reference', image))
  }
  return out
}

/** No key of these paths has a character that a JSON pointer escapes. */
function pointer(path: readonly string[]): string {
  return `/${path.join('/')}`
}

function fault(path: readonly string[], expected: string, found: JsonValue | undefined): Fault {
  return { path: pointer(path), message: `must be ${expected}, is ${describe(found)}` }
}

function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (value === '') return 'empty'
  if (Array.isArray(value)) return 'a list'
  return isJsonObject(value)
    ? 'an object'
    : `a ${typeof value === 'object' ? 'number' : typeof value}`
}

function invalid(faults: readonly Fault[]): AdmissionError {
  const listed = faults.slice(0, MAX_LISTED_FAULTS).map(({ path, message }) => `${path} ${message}`)
  const rest = faults.length - listed.length
  const message = `images cannot be read: ${listed.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`
  return new AdmissionError('IMAGE_LIST_INVALID', message, { faults })
}
