import type { KmsFault } from './kms-error.ts'

/** An answer of Vault that is not 200. Its body is left unread: errors may repeat what was sent. */
export class VaultStatusError extends Error {
  readonly status: number

  constructor(status: number) {
    super(`HTTP ${status}`)
    this.status = status
  }
}

/** An answer that says 200 and is not what Vault answers. */
export class VaultAnswerError extends Error {}

/** What statuses mean that say more than their class. */
const STATUSES: Readonly<Record<number, string>> = {
  400: 'Vault refuses the request, such as for a key that is deleted or a version that is not allowed any more',
  403: 'permission denied; the token may have ended, or its policy lacks read on the key (and update on verify)',
  404: 'no such key, or no transit engine is mounted there',
  412: 'Vault is behind in replication',
  429: 'Vault throttles',
  472: 'it is a standby for disaster recovery',
  473: 'it is a standby',
  503: 'Vault is sealed or in maintenance',
}

/** Statuses below 500 that pass. */
const PASSING: ReadonlySet<number> = new Set([408, 412, 425, 429, 472, 473])

/** The meaning of whatever a call of Vault threw. */
export function describeVaultError(thrown: unknown): KmsFault {
  if (thrown instanceof VaultStatusError) return describeStatus(thrown.status)
  if (thrown instanceof VaultAnswerError) {
    return unavailable(`no usable answer, ${thrown.message}`, false)
  }
  const { name, cause } = Object(thrown) as { name?: unknown; cause?: unknown }
  if (name === 'TimeoutError' || name === 'AbortError') {
    return unavailable('no answer in time', false)
  }
  const { code } = Object(cause) as { code?: unknown }
  const known = typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code)
  return unavailable(`the connection failed${known ? ` (${code})` : ''}`, true)
}

function describeStatus(status: number): KmsFault {
  const said = `HTTP ${status}`
  const known = STATUSES[status]
  const reason = known === undefined ? said : `${known} (${said})`
  if (status >= 200 && status < 300) return unavailable(`no usable answer (${said})`, false)
  if (status < 400) {
    const advice = 'is not followed; give the address of the active node or of a load balancer'
    return unavailable(`a redirect (${said}) ${advice}`, false)
  }
  if (status >= 500 || PASSING.has(status)) return unavailable(reason, true)
  return { code: 'KMS_REFUSED', reason, retry: false }
}

function unavailable(reason: string, retry: boolean): KmsFault {
  return { code: 'KMS_UNAVAILABLE', reason, retry }
}
