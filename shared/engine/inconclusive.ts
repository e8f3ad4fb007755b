import type { AdmissionError } from '../errors.ts'

/** A check of a signature or an attestation that could not be finished, and why. */
export interface Inconclusive {
  image: string
  attestor: string
  attestation?: string
  error: AdmissionError
}

/** Checks that one message describes. The cause is mostly the same for all of them. */
const MAX_DESCRIBED = 3

/** What could not be told of one attestor. */
export function unread(
  { image, attestor, attestation }: Omit<Inconclusive, 'error'>,
  error: AdmissionError,
): Inconclusive {
  return { image, attestor, error, ...(attestation === undefined ? {} : { attestation }) }
}

/** Inconclusive checks for a message: the first few, each once, with their faults. */
export function describe(unknown: readonly Inconclusive[]): string {
  const told = new Set(
    unknown.map(({ image, attestor, attestation, error }) => {
      const what = attestation === undefined ? '' : `attestation ${attestation}, `
      return `image ${image}, ${what}attestor ${attestor}: ${error.message}`
    }),
  )
  const shown = [...told].slice(0, MAX_DESCRIBED)
  return [...shown, ...(told.size > shown.length ? [`${told.size - shown.length} more`] : [])].join(
    '; ',
  )
}
