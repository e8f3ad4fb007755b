import { type Bytes, equal, fromHex } from '../../bytes.ts'
import { dig, quote, readJson } from '../content.ts'
import type { HashAlgorithm } from '../types.ts'

const STATEMENTS = ['https://in-toto.io/Statement/v1', 'https://in-toto.io/Statement/v0.1']
const ALGORITHMS: readonly HashAlgorithm[] = ['sha512', 'sha384', 'sha256']

/**
 * Why the in-toto statement is not about the artifact, or undefined when one of its subjects is: every digest of that subject which can
 * be compared has to be the artifact's, and at least one has to be there. Throws `JSON_INVALID`.
 */
export async function subjectFault(
  payload: Bytes,
  digestOf: (algorithm: HashAlgorithm) => Promise<Bytes | undefined>,
): Promise<string | undefined> {
  const json = readJson(payload)
  const type = dig(json, '_type')
  if (typeof type !== 'string' || !STATEMENTS.includes(type)) {
    return `payload is of the type ${quote(type)}, expected an in-toto statement`
  }
  const subjects = dig(json, 'subject')
  if (!Array.isArray(subjects)) return 'statement has no subjects'
  const known: [HashAlgorithm, Bytes][] = []
  for (const algorithm of ALGORITHMS) {
    const digest = await digestOf(algorithm)
    if (digest !== undefined) known.push([algorithm, digest])
  }
  for (const subject of subjects) {
    const verdicts = known.flatMap(([algorithm, digest]) => {
      const hex = dig(subject, 'digest', algorithm)
      if (hex === undefined) return []
      const claimed = typeof hex === 'string' ? fromHex(hex) : undefined
      return [claimed !== undefined && equal(claimed, digest)]
    })
    if (verdicts.length > 0 && verdicts.every(Boolean)) return undefined
  }
  return 'statement is about another artifact'
}
