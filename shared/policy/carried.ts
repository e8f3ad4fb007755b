import { REVIEWED_ANNOTATION } from '../admission/image-review.ts'
import type { Group, Trace } from './trace.ts'

/**
 * How a value changes when images are put into more of the lists of a Pod: `none`, not at all; `up`, it can only become more (a longer list, a higher
 * number, true instead of false); `down`, it can only become less; `any`, nobody knows.
 */
export type Sense = 'none' | 'up' | 'down' | 'any'

/** What is known of the value of an expression without any request. */
export interface Value {
  sense: Sense
  /** A place in the request of which a review carries some fields only. */
  part?: Part
  /** Each item of a list, each value of a map. */
  element?: Value
  isMap?: true
  /** A length is never below zero, and what is added up from lengths and small numbers only never overflows. */
  number?: 'count' | 'small'
  /** The variable `images`: each of its values is a list of images. */
  isImages?: true
  /** The field that it was read from, which not every Pod has: asking for a key of it may be an error. */
  from?: string
  /** Of what has a name: what is gone through wherever it is used. */
  trace?: Trace
}

/** A place in the request. */
export interface Part {
  /** As expressions spell it. */
  name: string
  /** A field of it, or undefined where no review carries it. */
  field(name: string): Field | undefined
}

interface Field {
  value: Value
  /** Of `has()` of it. */
  presence: Sense
  /** Not every Pod has it. */
  isOptional?: true
  /** A list of images. */
  group?: Group
}

/** A value that is the same wherever images are. */
export const FIXED: Value = { sense: 'none' }

function part(name: string, fields: Readonly<Record<string, Value | Field>>): Value {
  const known = new Map(
    Object.entries(fields).map(([key, each]): [string, Field] => [
      key,
      'value' in each ? each : { value: each, presence: 'none' },
    ]),
  )
  return { sense: 'none', part: { name, field: (key) => known.get(key) } }
}

/** Every image is in every list of the Pod that a review is decided as, so that each of them is what it really is, or longer. */
const CONTAINERS: Value = {
  sense: 'up',
  element: part('object.spec.containers[…]', { image: FIXED }),
}

function otherContainers(group: Group): Field {
  return { value: CONTAINERS, presence: 'up', isOptional: true, group }
}

const ANNOTATIONS: Value = {
  sense: 'none',
  from: 'object.metadata.annotations',
  part: {
    name: 'object.metadata.annotations',
    field: (key) =>
      key.includes(REVIEWED_ANNOTATION) ? { value: FIXED, presence: 'none' } : undefined,
  },
}

/** Of `has(object.metadata.annotations)` nothing is known: a Pod may have others. */
const METADATA = part('object.metadata', { namespace: FIXED, annotations: ANNOTATIONS })

/** The variable `object`: what is known of the Pod. */
const OBJECT = part('object', {
  apiVersion: FIXED,
  kind: FIXED,
  metadata: METADATA,
  spec: part('object.spec', {
    containers: { value: CONTAINERS, presence: 'none', group: 'workload' },
    initContainers: otherContainers('workload'),
    ephemeralContainers: otherContainers('ephemeral'),
  }),
})

/** The variable `request`: it is about a Pod, whatever is done to it. */
const REQUEST = part('request', {
  namespace: FIXED,
  kind: FIXED,
  resource: FIXED,
  requestKind: FIXED,
  requestResource: FIXED,
  object: OBJECT,
})

/** The variable `images`: each of its lists is what it really is, or longer. */
const IMAGES: Value = {
  sense: 'none',
  isMap: true,
  isImages: true,
  element: { sense: 'up', element: FIXED },
}

/** The variables of which a review carries only parts, by name. Every other one is there as a whole. */
export const CARRIED: ReadonlyMap<string, Value> = new Map([
  ['object', OBJECT],
  ['request', REQUEST],
  ['images', IMAGES],
])

/** Both together: what goes both ways goes any way. */
export function both(first: Sense, second: Sense): Sense {
  if (first === 'none' || first === second) return second
  return second === 'none' ? first : 'any'
}

/** The other way round. */
export function opposite(sense: Sense): Sense {
  if (sense === 'up') return 'down'
  return sense === 'down' ? 'up' : sense
}

/** Of the value with everything that is in it, where only whether it changes is known to matter. */
export function wholeSense({ sense, element }: Value): Sense {
  return element === undefined ? sense : both(sense, wholeSense(element))
}

/** What one item of a list, or one value of a map, is. */
export function elementOf({ sense, element }: Value): Value {
  return element ?? { sense }
}

/** The value where something else decides, too, what it is. */
export function depending(value: Value, on: Sense): Value {
  return { ...value, sense: both(value.sense, on) }
}
