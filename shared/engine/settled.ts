import type { AdmissionError } from '../errors.ts'
import type { CompiledPolicy } from '../policy/types.ts'
import type { AttestationVerification, AttestedBlob, Verification } from '../signature/types.ts'

/**
 * What is known of one (image, attestor) pair in this request, or of one (image, attestation, attestor). `uncovered`: the seal does not
 * say, and only the seal may be asked.
 */
export type Settled =
  | Verification
  | AttestationVerification
  | { status: 'sealed'; blob?: AttestedBlob }
  | { status: 'uncovered' }
  /** What expressions gave the attestor is no key, no certificate: nobody can be asked with it. */
  | { status: 'unusable'; error: AdmissionError }

/** Texts that expressions gave an attestor in this request, and what they are known by. */
export interface Material {
  texts: readonly string[]
  /** SHA-256 hex of the list in JSON, in which no two lists are the same. */
  hash: string
}

/** What an attestor is asked about: the signature of an image, or an attestation of the policy, by its name. */
export interface Asked {
  policy: CompiledPolicy
  image: string
  attestor: string
  /** Exactly for an attestor with expressions. */
  material?: Material
  attestation?: string
}

/** What was learned of one question. */
export interface Learned {
  asked: Asked
  settled: Settled
}

/** What is settled, by policy, image, and whom it is about. A review asks it once for every policy, image and attestor. */
export class SettledCalls {
  readonly #all = new Map<CompiledPolicy, Map<string, Map<string, Learned>>>()

  get(asked: Asked): Settled | undefined {
    return this.#all.get(asked.policy)?.get(asked.image)?.get(keyOf(asked))?.settled
  }

  set(asked: Asked, settled: Settled): void {
    const { policy, image } = asked
    const images = this.#all.get(policy) ?? new Map<string, Map<string, Learned>>()
    this.#all.set(policy, images)
    const known = images.get(image) ?? new Map<string, Learned>()
    images.set(image, known)
    known.set(keyOf(asked), { asked, settled })
  }

  /** All about one image for a policy: signatures, then attestations, by attestor, whatever the order they came in. */
  about(policy: CompiledPolicy, image: string): readonly Learned[] {
    const known = this.#all.get(policy)?.get(image)
    if (known === undefined) return []
    const found = [...known.values()]
    return found.length < 2 ? found : found.sort((a, b) => compare(policy, a.asked, b.asked))
  }
}

function keyOf({ attestor, attestation, material }: Asked): string {
  // No name of an attestor is the JSON of a list.
  if (attestation === undefined && material === undefined && !attestor.startsWith('[')) {
    return attestor
  }
  return JSON.stringify([attestor, attestation ?? null, material?.hash ?? null])
}

function compare({ attestors, attestations }: CompiledPolicy, a: Asked, b: Asked): number {
  const place = (list: readonly { name: string }[], wanted: string | undefined) =>
    list.findIndex(({ name }) => name === wanted)
  const [left, right] = [a.material?.hash ?? '', b.material?.hash ?? '']
  return (
    place(attestations, a.attestation) - place(attestations, b.attestation) ||
    place(attestors, a.attestor) - place(attestors, b.attestor) ||
    (left < right ? -1 : Number(left > right))
  )
}
