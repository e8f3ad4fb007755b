/** What an error of the KMS client means: the code, the reason in words, and whether a second try may help. */
export interface KmsFault {
  code: 'KMS_REFUSED' | 'KMS_UNAVAILABLE'
  reason: string
  retry: boolean
}

/** Errors that stay as they are until somebody changes the key, the policy or the role. */
const REFUSALS: Readonly<Record<string, string>> = {
  NotFoundException: 'no such key or alias',
  DisabledException: 'the key is disabled',
  KMSInvalidStateException: 'the state of the key does not allow it, such as pending deletion',
  InvalidKeyUsageException: 'the key is not for this use',
  UnsupportedOperationException: 'this kind of key cannot do it',
  InvalidArnException: 'the ARN is not valid',
  AccessDeniedException: 'access denied; grant the function this operation on the key',
  InvalidGrantTokenException: 'the grant token is not valid',
}

/** Errors that pass. */
const OUTAGES: Readonly<Record<string, string>> = {
  ThrottlingException: 'KMS throttles',
  KMSInternalException: 'KMS failed',
  DependencyTimeoutException: 'KMS failed, a dependency timed out',
  KeyUnavailableException: 'the key is unavailable for the moment',
}

/**
 * The meaning of whatever the KMS client threw, by error name and HTTP status (specs/signatures.md 4.1). The text of
 * the error is left out: AWS repeats parts of the signed request in some of them.
 */
export function describeKmsError(thrown: unknown): KmsFault {
  const name = nameOf(thrown)
  const status = statusOf(thrown)
  const named = (reason: string) => `${reason} (${name})`
  if (Object.hasOwn(REFUSALS, name)) return refused(named(REFUSALS[name] ?? ''))
  if (Object.hasOwn(OUTAGES, name)) return unavailable(named(OUTAGES[name] ?? ''), true)
  if (status !== undefined && (status >= 500 || status === 429)) {
    return unavailable(named(`HTTP ${status}`), true)
  }
  if (status !== undefined && status >= 400) return refused(named(`HTTP ${status}`))
  // Before the name: the SDK calls a connection that was cut a TimeoutError.
  const network = networkCodeOf(thrown)
  if (network !== undefined) return unavailable(`the connection failed (${network})`, true)
  switch (name) {
    case 'CredentialsProviderError':
      return unavailable('no AWS credentials could be loaded', false)
    case 'TimeoutError':
    case 'AbortError':
      return unavailable('no answer in time', false)
    default:
      // Nothing came back at all, which runtimes without error codes put in prose.
      return unavailable(named('no usable answer'), true)
  }
}

function refused(reason: string): KmsFault {
  return { code: 'KMS_REFUSED', reason, retry: false }
}

function unavailable(reason: string, retry: boolean): KmsFault {
  return { code: 'KMS_UNAVAILABLE', reason, retry }
}

function nameOf(thrown: unknown): string {
  const name = thrown instanceof Error || thrown instanceof DOMException ? thrown.name : ''
  return /^[A-Za-z]{1,80}$/.test(name) ? name : 'unknown error'
}

/** The SDK notes the status of the answer, also of one it could not read. */
function statusOf(thrown: unknown): number | undefined {
  const { $metadata } = Object(thrown) as { $metadata?: { httpStatusCode?: unknown } }
  const status = $metadata?.httpStatusCode
  return typeof status === 'number' ? status : undefined
}

/** `ECONNREFUSED`, `ECONNRESET`, … on Node; a TypeError from `fetch` elsewhere. */
function networkCodeOf(thrown: unknown): string | undefined {
  const { code } = Object(thrown) as { code?: unknown }
  if (typeof code === 'string' && /^E[A-Z]{2,30}$/.test(code)) return code
  return thrown instanceof TypeError ? thrown.name : undefined
}
