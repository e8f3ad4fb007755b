/** HTTP status of the errors that are not 400, as the service model gives them. */
const STATUS: Readonly<Record<string, number>> = {
  KMSInternalException: 500,
  DependencyTimeoutException: 503,
  KeyUnavailableException: 503,
}

/** An error the way KMS answers it: an HTTP status, `__type` and a message. */
export class KmsError extends Error {
  /** The exception's name on the wire. */
  readonly type: string
  readonly status: number

  constructor(type: string, message: string, status: number = STATUS[type] ?? 400) {
    super(message)
    this.type = type
    this.status = status
  }
}
