import type { HostAnswer } from '../cel/types.ts'
import type { JsonValue } from '../json.ts'
import { MAX_HOST_CALLS } from '../limits.ts'
import type { CompiledPolicy, PolicyAttestor } from '../policy/types.ts'
import { type Inconclusive, unread } from './inconclusive.ts'
import type { Asked, Settled } from './settled.ts'

/** Whom a call is about: an attestor by its name, and what it is in this request where expressions say so. */
export type Who = Pick<Asked, 'attestor' | 'material'>
/** What a call is about. */
export type About = Omit<Asked, keyof Who>
/** What is known of one question: it may still have to be asked, or be one too many. */
export type Found = Settled | 'pending' | 'too many'

/** An error that the expression gets. */
export function failure(message: string): HostAnswer {
  return { kind: 'error', message }
}

/** Answer to whatever is beyond the bound. */
export const TOO_MANY = failure(`more than ${MAX_HOST_CALLS} checks of images for one request`)

/** Why the strict hand-over has no answer about an image. */
export function uncovered(image: string): string {
  return `image ${image} is not covered by the sealed outcomes of the mutate phase`
}

/** True for a signature or an attestation that counts. */
export function isGood(found: Found): boolean {
  return typeof found === 'object' && (found.status === 'verified' || found.status === 'sealed')
}

/** True where only the seal may be asked, and does not say. */
export function isUncovered(found: Found): boolean {
  return typeof found === 'object' && found.status === 'uncovered'
}

/** The error of a policy whose attestor is none, if there is one: it cannot say anything, which is no signature too few. */
export function unusableOf(who: readonly Who[], found: readonly Found[]): HostAnswer | undefined {
  for (const [index, settled] of found.entries()) {
    if (typeof settled !== 'object' || settled.status !== 'unusable') continue
    return failure(`attestor ${who[index]?.attestor} cannot be used: ${settled.error.message}`)
  }
  return undefined
}

/** What could not be told. */
export function unknownOf(
  { image, attestation }: About,
  who: readonly Who[],
  found: readonly Found[],
): Inconclusive[] {
  return found.flatMap((settled, index) => {
    if (typeof settled !== 'object' || settled.status !== 'inconclusive') return []
    const attestor = who[index]?.attestor ?? ''
    return [unread({ image, attestor, ...(attestation && { attestation }) }, settled.error)]
  })
}

/** An attestor as a call names it: by its name, with its texts where it has expressions. */
export interface Named {
  attestor: string
  texts?: readonly string[]
}

/** The attestors of a list that an expression gave, or undefined when something in it is none. */
export function attestorsOf(
  policy: CompiledPolicy,
  list: JsonValue | undefined,
): Named[] | undefined {
  if (!Array.isArray(list)) return undefined
  const named = list.flatMap((each) => attestorOf(policy, each)?.named ?? [])
  return named.length === list.length ? named : undefined
}

/** An attestor of the policy: `name`, or `[name, text, …]` exactly for one with expressions. */
export function attestorOf(
  { attestors }: CompiledPolicy,
  each: JsonValue,
): { known: PolicyAttestor; named: Named } | undefined {
  const [attestor, ...texts] = Array.isArray(each) ? each : [each]
  const known = attestors.find(({ name }) => name === attestor)
  const strings = texts.filter((text) => typeof text === 'string')
  const wanted = known?.kind === 'unresolved' ? known.expressions.length : undefined
  if (known === undefined || Array.isArray(each) !== (wanted !== undefined)) return undefined
  const named = { attestor: known.name }
  if (wanted === undefined) return { known, named }
  return strings.length === wanted ? { known, named: { ...named, texts: strings } } : undefined
}

/** One text for one question. */
export function keyOf({ policy, image, attestor, attestation, material }: Asked): string {
  const whose = material === undefined ? attestor : [attestor, material.hash]
  return JSON.stringify([policy.hash, image, whose, attestation ?? null])
}

/** One text for an image and an attestation of a pass. */
export function passKey(image: string, attestation: string): string {
  return JSON.stringify([image, attestation])
}
