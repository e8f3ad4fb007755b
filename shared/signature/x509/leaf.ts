import type { Certificate } from './certificate.ts'
import type { KeyUsage } from './extensions.ts'
import { printName } from './name.ts'

/** Usages no certificate may have that signs artifacts or timestamps. */
const FORBIDDEN_USAGES: readonly KeyUsage[] = [
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
  'encipherOnly',
  'decipherOnly',
]

/** Key usage for signatures of code (RFC 5280 section 4.2.1.12). */
export const CODE_SIGNING = '1.3.6.1.5.5.7.3.3'

/** Key usage for timestamps (RFC 3161 section 2.3). */
export const TIME_STAMPING = '1.3.6.1.5.5.7.3.8'

/** Why a certificate may not sign timestamps, or undefined when it may: its only purpose, and a critical one. */
export function whyNotTimestamper(certificate: Certificate): string | undefined {
  const fault = whyNotLeaf(certificate)
  if (fault !== undefined) return fault
  const { critical, purposes = [] } = certificate.extendedKeyUsage ?? { critical: false }
  if (critical && purposes.length === 1 && purposes[0] === TIME_STAMPING) return undefined
  return `${printName(certificate.subject)} is not for timestamps only`
}

/** Why a certificate may not end a chain that signs artifacts or timestamps, or undefined when it may. */
export function whyNotLeaf({
  basicConstraints,
  keyUsage,
  unhandled,
  subject,
}: Certificate): string | undefined {
  const name = printName(subject)
  if (basicConstraints?.ca === true) return `${name} is a certificate authority`
  if (keyUsage === undefined) return `${name} has no key usage`
  if (!keyUsage.usages.has('digitalSignature')) return `${name} is not for signatures`
  const forbidden = FORBIDDEN_USAGES.find((usage) => keyUsage.usages.has(usage))
  if (forbidden !== undefined) return `${name} has key usage ${forbidden}`
  return unhandled.length > 0 ? `${name} has extension ${unhandled[0]}, not supported` : undefined
}
