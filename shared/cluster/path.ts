import { AdmissionError } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json.ts'
import type { Place } from './types.ts'

/** A part of a DNS name, as groups, versions, resources and namespaces are. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const GROUP = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const LABEL_KEY =
  /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/
const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/
const MAX_NAME_CHARS = 253

/** The path of an API group version: `/api/v1`, `/apis/apps/v1`. Throws `CLUSTER_REFUSED` for anything that would lead elsewhere. */
export function groupPath(apiVersion: string): string {
  const [version = '', group, ...more] = apiVersion.split('/').reverse()
  const isGroup = group === undefined || GROUP.test(group)
  if (!(LABEL.test(version) && isGroup && more.length === 0)) refuse('an apiVersion', apiVersion)
  return group === undefined ? `/api/${version}` : `/apis/${group}/${version}`
}

/** The path of the objects of a place. Throws `CLUSTER_REFUSED`. */
export function collectionPath({ apiVersion, resource, namespace }: Place): string {
  const base = groupPath(apiVersion)
  if (!LABEL.test(resource)) refuse('a resource', resource)
  if (namespace === '') return `${base}/${resource}`
  if (!LABEL.test(namespace)) refuse('a namespace', namespace)
  return `${base}/namespaces/${namespace}/${resource}`
}

/** The path of one object. Names are whatever a path segment takes: those of RBAC have colons. Throws `CLUSTER_REFUSED`. */
export function objectPath(place: Place, name: string): string {
  const isSegment = name !== '' && name !== '.' && name !== '..' && !/[/%]/.test(name)
  if (!isSegment || name.length > MAX_NAME_CHARS) refuse('the name of an object', name)
  return `${collectionPath(place)}/${encodeURIComponent(name)}`
}

/** The query for objects with all of these labels; empty for none. Throws `CLUSTER_REFUSED` for what would be another selector. */
export function labelQuery(labels: JsonValue): string {
  const terms = Object.entries(isJsonObject(labels) ? labels : {}).map(([key, value]) => {
    if (!LABEL_KEY.test(key)) refuse('a label key', key)
    if (typeof value !== 'string' || !LABEL_VALUE.test(value)) refuse('a label value', `${value}`)
    return `${key}=${value}`
  })
  return terms.length === 0 ? '' : `?labelSelector=${encodeURIComponent(terms.join(','))}`
}

function refuse(what: string, text: string): never {
  const shown = JSON.stringify(text.slice(0, 100))
  throw new AdmissionError('CLUSTER_REFUSED', `${shown} is not ${what}`)
}
