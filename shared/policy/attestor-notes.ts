import type { CosignSpec } from './attestors.ts'
import { addNote } from './notes.ts'
import type { PolicySpec } from './schema.ts'
import type { Faults, Path } from './shape.ts'

/** What is right about attestors but means less, or something else, than it may seem to. */
export function addAttestorNotes(spec: PolicySpec, path: Path, notes: Faults): void {
  for (const [index, attestor] of spec.attestors.entries()) {
    if (!('cosign' in attestor)) continue
    for (const [field, message] of notesOf(attestor.cosign)) {
      addNote(notes, [...path, 'attestors', index, 'cosign', ...field], message)
    }
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
  if (certificate?.cert?.value !== undefined && certificate.certChain?.value === undefined) {
    yield [
      ['certificate', 'cert'],
      'without certChain only the key of the certificate counts: neither its end nor who issued it is looked at',
    ]
  }
  if (tuf !== undefined && trustedRoot?.value !== undefined) {
    yield [['tuf'], 'the trusted root is that of trustedRoot.value, so that this is not used']
  }
}
