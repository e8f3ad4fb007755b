import { MAX_PREDICATE_TYPES } from '../limits.ts'
import { annotationOf } from './metadata.ts'
import type { Faults, Path } from './shape.ts'

/**
 * The annotation of a policy that lets attestations count as signatures of the image: a list of predicate types, with commas between them.
 * Without it an attestation is none, whoever made it: a failed scan is one too (specs/signatures.md 1.3).
 */
const PREDICATE_TYPES = 'countersign.dev/signature-predicate-types'

/** A URI as predicate types are: a scheme, and nothing that could be meant to part two of them. */
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s,]{1,500}$/

/** Types of attestations that count as signatures by every cosign attestor of the policy; what is none is added to `faults`. */
export function signaturePredicates(
  document: Record<string, unknown>,
  path: Path,
  faults: Faults,
): readonly string[] {
  const value = annotationOf(document, PREDICATE_TYPES)
  if (value === undefined) return []
  const where = [...path, 'metadata', 'annotations', PREDICATE_TYPES]
  const types = value.split(',').map((type) => type.trim())
  for (const type of types) {
    if (URI.test(type)) continue
    faults.add(
      where,
      `Invalid value: ${JSON.stringify(type.slice(0, 100))}: not the URI of a predicate type`,
    )
  }
  if (types.length > MAX_PREDICATE_TYPES) {
    faults.add(where, `Too many: ${types.length}: must have at most ${MAX_PREDICATE_TYPES} items`)
  }
  return [...new Set(types)].sort()
}
