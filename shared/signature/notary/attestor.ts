import { sha256, toHex, utf8 } from '../../bytes.ts'
import { AdmissionError } from '../../errors.ts'
import type { RevocationMode } from '../revocation/types.ts'
import type { NotaryAttestor } from '../types.ts'
import { certificatesFromPem } from '../x509/pem.ts'

/** `attestors[].notary` of a policy. */
export interface NotaryAttestorFields {
  name: string
  /** PEM bundles. */
  certs: string
  tsaCerts?: string
  /** `skip` unless given. */
  revocation?: RevocationMode
}

/**
 * The attestor a policy's certificates describe, with its hash. The certificates are checked here, when the policy loads: throws
 * `KEY_INVALID` for what is not a PEM bundle of at least one.
 */
export async function createNotaryAttestor(fields: NotaryAttestorFields): Promise<NotaryAttestor> {
  const { name, certs, tsaCerts, revocation = 'skip' } = fields
  demandCertificates(certs, 'certs')
  if (tsaCerts !== undefined) demandCertificates(tsaCerts, 'tsaCerts')
  const content = {
    kind: 'notary' as const,
    certs,
    ...(tsaCerts === undefined ? {} : { tsaCerts }),
    ...(revocation === 'skip' ? {} : { revocation }),
  }
  // Members in a fixed order, so that one attestor has one hash. What was found out under one mode says nothing under another.
  const { kind } = content
  const text = JSON.stringify({ certs, kind, revocation, tsaCerts: tsaCerts ?? null })
  return { ...content, name, hash: toHex(await sha256(utf8(text))) }
}

/** Throws `KEY_INVALID` for what is not a PEM bundle of at least one certificate; `field` is for the message. */
export function demandCertificates(pem: string, field: string): void {
  if (certificatesFromPem(pem).length > 0) return
  throw new AdmissionError('KEY_INVALID', `notary.${field}: found no certificate in PEM`)
}
