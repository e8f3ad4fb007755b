import { pinnedDigest } from '../image/pin.ts'
import type { Fact, Outcomes } from './types.ts'

/** What a fact is about: two that are about the same are one. */
export type FactAbout = Pick<Fact, 'policyHash' | 'function' | 'image' | 'attestor'> & {
  attestation?: string | undefined
  material?: string | undefined
}

/**
 * Facts by what they are about. A policy whose spec, keys or trust material changed has another hash, so its old facts are
 * not found; neither are those of an image string that differs in a single character.
 */
export class FactSet {
  readonly #facts = new Map<string, Fact>()
  readonly #policies = new Map<string, { policy: string; policyHash: string }>()

  /** What opened outcomes prove. Facts about an image that is not pinned to their digest prove nothing: a tag moves. */
  static of(outcomes: Outcomes): FactSet {
    const set = new FactSet()
    for (const { policy, policyHash } of outcomes.policies) set.addPolicy(policy, policyHash)
    for (const fact of outcomes.facts) if (isLasting(fact)) set.add(fact)
    return set
  }

  get size(): number {
    return this.#facts.size
  }

  add(fact: Fact): void {
    this.#facts.set(factKey(fact), { ...fact })
  }

  /** Notes that a policy was evaluated to its end. */
  addPolicy(policy: string, policyHash: string): void {
    this.#policies.set(policyKey(policy, policyHash), { policy, policyHash })
  }

  /** The fact that this host function succeeded for exactly this image string, attestor and attestation. */
  find(about: FactAbout): Fact | undefined {
    return this.#facts.get(factKey(about))
  }

  /** True when this policy, with this hash, was evaluated to its end by the mutate phase. */
  covers(policy: string, policyHash: string): boolean {
    return this.#policies.has(policyKey(policy, policyHash))
  }

  /** Everything in it, ready to be sealed. */
  outcomes(): Outcomes {
    return { policies: [...this.#policies.values()], facts: [...this.#facts.values()] }
  }
}

/** True when the image string itself ends in the fact's digest, so that the fact stays true. */
export function isLasting(fact: Pick<Fact, 'image' | 'digest'>): boolean {
  return pinnedDigest(fact.image) === fact.digest
}

function factKey(about: FactAbout): string {
  const { policyHash, function: name, image, attestor, attestation, material } = about
  if (attestation === undefined && material === undefined) {
    // Most facts, hundreds in a large seal. With the length of the attestor no two run together, nor is any the JSON of a list.
    return `${policyHash}|${name}|${attestor.length}|${attestor}${image}`
  }
  return JSON.stringify([policyHash, name, image, attestor, attestation ?? null, material ?? null])
}

function policyKey(policy: string, policyHash: string): string {
  return JSON.stringify([policy, policyHash])
}
