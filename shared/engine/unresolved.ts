import { sha256, toHex, utf8 } from '../bytes.ts'
import type { Cache } from '../cache.ts'
import type { CompiledPolicy, UnresolvedAttestor } from '../policy/types.ts'
import { resolveAttestor } from '../signature/resolve.ts'
import type { Attestor } from '../signature/types.ts'
import type { Material } from './calls.ts'

/** What texts are known by: SHA-256 hex of their list in JSON, so that no two lists run together. */
export async function hashOfTexts(texts: readonly string[]): Promise<string> {
  return toHex(await sha256(utf8(JSON.stringify(texts))))
}

/**
 * The attestor that these texts make of it, or the one that they made before; never what is known under its name alone. Throws
 * AdmissionError for what is no key, certificate or name.
 */
export async function resolved(
  { hash }: CompiledPolicy,
  { name, draft, expressions }: UnresolvedAttestor,
  material: Material,
  cache: Cache<Attestor>,
): Promise<Attestor> {
  const id = JSON.stringify([hash, name, material.hash])
  const known = cache.get(id, 0)
  if (known !== undefined) return known
  const texts = expressions.map(({ at }, index) => ({ at, text: material.texts[index] ?? '' }))
  const attestor = await resolveAttestor(draft, texts)
  cache.set(id, attestor, Number.POSITIVE_INFINITY)
  return attestor
}
