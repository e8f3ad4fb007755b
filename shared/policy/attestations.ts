import type { Attestation } from '../signature/types.ts'
import { object, oneKind, optional, required, type Shape, words } from './shape.ts'

/** Predicate types by the names that cosign and Kyverno have for them (image-validating-policy.md 4.7). */
const ALIASES: Readonly<Record<string, string>> = {
  custom: 'https://cosign.sigstore.dev/attestation/v1',
  slsaprovenance: 'https://slsa.dev/provenance/v0.2',
  slsaprovenance02: 'https://slsa.dev/provenance/v0.2',
  slsaprovenance1: 'https://slsa.dev/provenance/v1',
  spdx: 'https://spdx.dev/Document',
  spdxjson: 'https://spdx.dev/Document',
  cyclonedx: 'https://cyclonedx.org/bom',
  link: 'https://in-toto.io/Link/v1',
  vuln: 'https://cosign.sigstore.dev/attestation/vuln/v1',
  openvex: 'https://openvex.dev/ns',
}

/** Another name could be no predicate type at all, so it is a slip that would refuse every image. */
const predicateType: Shape<string> = (value, path, faults) => {
  const type = words(value, path, faults)
  if (type === undefined || Object.hasOwn(ALIASES, type) || URL.canParse(type)) return type
  const names = Object.keys(ALIASES).join(', ')
  const detail = `must be a URI or one of ${names}`
  return faults.add(path, `Invalid value: ${JSON.stringify(type)}: ${detail}`)
}

/** One entry of `spec.attestations`, as it is written. */
export const attestation = object(
  {
    name: required(words),
    intoto: optional(object({ type: required(predicateType) })),
    referrer: optional(object({ type: required(words) })),
  },
  oneKind('intoto', 'referrer'),
)

/** What `spec.attestations` has for one attestation. */
export interface AttestationFields {
  name: string
  intoto?: { type: string }
  referrer?: { type: string }
}

/** The attestations of a spec, each type by its full name. */
export function attestationsOf(fields: readonly AttestationFields[] = []): Attestation[] {
  return fields.flatMap(({ name, intoto, referrer }): Attestation[] => {
    if (intoto !== undefined) return [{ name, intoto: fullName(intoto.type) }]
    return referrer === undefined ? [] : [{ name, referrer: referrer.type }]
  })
}

/** An own name only: a predicate type comes from a document. */
function fullName(type: string): string {
  return (Object.hasOwn(ALIASES, type) ? ALIASES[type] : undefined) ?? type
}
