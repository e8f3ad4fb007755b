import { isJsonObject, type JsonValue } from '../json.ts'
import { createCosignKeyAttestor } from './attestor.ts'
import type { Attestor, AttestorDraft } from './types.ts'

/** A text that a draft lacks, and where in the draft it belongs. */
export interface DraftText {
  at: readonly (string | number)[]
  text: string
}

/**
 * The attestor that a draft describes with these texts in it, checked as one that is written out in a policy. What verifies its kind is
 * loaded for it. Throws what the maker of its kind throws: `KEY_INVALID`, `CONFIG_INVALID`, `POLICY_INVALID`.
 */
export async function resolveAttestor(
  draft: AttestorDraft,
  texts: readonly DraftText[],
): Promise<Attestor> {
  const filled = withTexts(draft, texts)
  switch (filled.kind) {
    case 'notary': {
      const { createNotaryAttestor } = await import('./notary/attestor.ts')
      return createNotaryAttestor(filled)
    }
    case 'cosign-key': {
      const { key, ...fields } = filled
      const attestor = await createCosignKeyAttestor({ ...fields, ...key })
      // Its maker looks at the key only.
      if (attestor.trust !== undefined) await (await sigstore()).loadMaterial(attestor)
      return attestor
    }
    case 'cosign-keyless':
      return (await sigstore()).createKeylessAttestor(filled)
    case 'cosign-certificate':
      return (await sigstore()).createCertificateAttestor(filled)
  }
}

function sigstore() {
  return import('./sigstore/attestor.ts')
}

function withTexts(draft: AttestorDraft, texts: readonly DraftText[]): AttestorDraft {
  // A draft is JSON, and stays what it is with a text in the place of another or of none.
  const json = draft as unknown as JsonValue
  return texts.reduce(
    (value, { at, text }) => withText(value, at, text),
    json,
  ) as unknown as AttestorDraft
}

function withText(
  value: JsonValue | undefined,
  [step, ...rest]: readonly (string | number)[],
  text: string,
): JsonValue {
  if (step === undefined) return text
  if (Array.isArray(value)) {
    return value.map((item, index) => (index === step ? withText(item, rest, text) : item))
  }
  const fields = isJsonObject(value) ? value : {}
  return { ...fields, [step]: withText(fields[step], rest, text) }
}
