import type { CheckedExpression } from '../cel/types.ts'
import { type CosignSpec, isGiven } from './attestors.ts'
import { expressionsOf } from './expressions.ts'
import { addNote } from './notes.ts'
import { Reads } from './reads.ts'
import type { PolicySpec } from './schema.ts'
import { type Faults, formatPath, type Path } from './shape.ts'

/** What is right about attestors but means less, or something else, than it may seem to. `compiled`: checked expressions by path. */
export function addAttestorNotes(
  spec: PolicySpec,
  path: Path,
  compiled: ReadonlyMap<string, CheckedExpression>,
  notes: Faults,
): void {
  for (const [index, attestor] of spec.attestors.entries()) {
    if (!('cosign' in attestor)) continue
    for (const [field, message] of notesOf(attestor.cosign)) {
      addNote(notes, [...path, 'attestors', index, 'cosign', ...field], message)
    }
  }
  addChosenNotes(spec, path, compiled, notes)
}

/** What comes with a request, so that whoever makes it can choose it. */
const CHOSEN = ['object', 'oldObject', 'request', 'images']

/** Says which attestors are what the request makes them. */
function addChosenNotes(
  spec: PolicySpec,
  path: Path,
  compiled: ReadonlyMap<string, CheckedExpression>,
  notes: Faults,
): void {
  const reads = new Reads(CHOSEN)
  for (const { role, name, path: where } of expressionsOf(spec, path)) {
    const ast = compiled.get(formatPath(where))?.ast
    if (ast === undefined) continue
    if (name !== undefined) reads.variable(name, ast)
    const chosen = role === 'attestor' ? [...reads.of(ast)] : []
    if (chosen.length === 0) continue
    addNote(
      notes,
      where,
      `this reads ${chosen.join(' and ')}: whoever makes the request has a say in whose signature counts, and may make it their own`,
    )
  }
}

function* notesOf(cosign: CosignSpec): Generator<[Path, string]> {
  const { ctlog = {}, keyless, certificate, tuf, trustedRoot } = cosign
  if (ctlog.url !== undefined && ctlog.insecureIgnoreTlog !== true) {
    yield [
      ['ctlog', 'url'],
      'nothing is asked online: a signature has to bring its log entry along; Kyverno would search this log for one',
    ]
  }
  if (keyless?.roots !== undefined) {
    yield [
      ['keyless', 'roots'],
      'these take the place of the certificate authorities of the trusted root; Kyverno ignores them beside one',
    ]
  }
  if (isGiven(certificate?.cert) && !isGiven(certificate?.certChain)) {
    yield [
      ['certificate', 'cert'],
      'without certChain only the key of the certificate counts: neither its end nor who issued it is looked at',
    ]
  }
  if (tuf !== undefined && isGiven(trustedRoot)) {
    yield [
      ['tuf'],
      `the trusted root is that of trustedRoot.${trustedRoot?.value === undefined ? 'expression' : 'value'}, so that this is not used`,
    ]
  }
}
