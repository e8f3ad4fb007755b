import { isRecord, own, type Path } from './shape.ts'

/** An expression that an attestor has for one of its texts (image-validating-policy.md 4.1). */
export interface AttestorSource {
  /** Below the attestor's entry. */
  path: Path
  source: string
  /** What it gives, as upstream calls it in messages. */
  gives: string
  /** Where the text belongs in the attestor that is made of the entry. */
  at: Path
}

const PLACES: readonly Omit<AttestorSource, 'source'>[] = [
  { path: ['cosign', 'key', 'expression'], gives: 'key', at: ['key', 'data'] },
  { path: ['cosign', 'certificate', 'cert', 'expression'], gives: 'cert', at: ['certificate'] },
  {
    path: ['cosign', 'certificate', 'certChain', 'expression'],
    gives: 'cert chain',
    at: ['chain'],
  },
  { path: ['cosign', 'trustedRoot', 'expression'], gives: 'trustedRoot', at: ['trust', 'root'] },
  { path: ['notary', 'certs', 'expression'], gives: 'notary cert', at: ['certs'] },
  { path: ['notary', 'tsaCerts', 'expression'], gives: 'notary tsa cert', at: ['tsaCerts'] },
]

/** The expressions of one entry of `spec.attestors`, as it stands in the document or as it was read. */
export function attestorSources(entry: unknown): AttestorSource[] {
  const identities = dig(entry, ['cosign', 'keyless', 'identities'])
  const subjects = (Array.isArray(identities) ? identities : []).map((_, index) => ({
    path: ['cosign', 'keyless', 'identities', index, 'subjectExpression'],
    gives: 'subject',
    at: ['identities', index, 'subject'],
  }))
  return [...PLACES, ...subjects].flatMap((place) => {
    const source = dig(entry, place.path)
    return typeof source === 'string' && source.trim() !== '' ? [{ ...place, source }] : []
  })
}

function dig(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((parent, step) => {
    if (typeof step === 'number') return Array.isArray(parent) ? parent[step] : undefined
    return isRecord(parent) ? own(parent, step) : undefined
  }, value)
}
