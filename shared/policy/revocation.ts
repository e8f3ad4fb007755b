import type { RevocationMode } from '../signature/revocation/types.ts'
import { annotationOf } from './metadata.ts'
import { addNote } from './notes.ts'
import type { PolicySpec } from './schema.ts'
import { type Faults, type Path, unsupportedValue } from './shape.ts'

/** The annotation that says how the notary attestors of one policy look up revocation, whatever the config says for the others. */
export const NOTARY_REVOCATION = 'countersign.dev/notary-revocation'

const MODES: readonly RevocationMode[] = ['skip', 'softfail', 'strict']

/** What the annotation says, undefined without one; what is no mode is added to `faults`. */
export function notaryRevocation(
  document: Record<string, unknown>,
  path: Path,
  faults: Faults,
): RevocationMode | undefined {
  const value = annotationOf(document, NOTARY_REVOCATION)
  if (value === undefined) return undefined
  const mode = MODES.find((each) => each === value)
  if (mode !== undefined) return mode
  const where = [...path, 'metadata', 'annotations', NOTARY_REVOCATION]
  return faults.add(where, unsupportedValue(value.slice(0, 100), MODES))
}

/** Says of every notary attestor that nobody is asked, where that is so: Kyverno asks. */
export function addRevocationNotes(spec: PolicySpec, path: Path, notes: Faults): void {
  for (const [index, attestor] of spec.attestors.entries()) {
    if (!('notary' in attestor)) continue
    addNote(
      notes,
      [...path, 'attestors', index, 'notary'],
      `whether certificates are revoked is not looked up, as Kyverno does on every verification; annotation ${NOTARY_REVOCATION}: strict, or revocation.mode of the config, asks OCSP responders and CRLs`,
    )
  }
}
