/** Every fault the engine can report. Codes are stable; messages may change. */
export type ErrorCode =
  // the wire
  | 'REVIEW_INVALID'
  | 'JSON_INVALID'
  | 'YAML_INVALID'
  | 'PATCH_INVALID'
  | 'RESPONSE_INVALID'
  | 'REQUEST_TOO_LARGE'
  | 'CONTENT_TYPE_UNSUPPORTED'
  | 'TOO_MANY_REVIEWS'
  // what operators write
  | 'CONFIG_INVALID'
  | 'POLICY_INVALID'
  | 'POLICY_UNSUPPORTED'
  | 'POLICY_BUNDLE_REFUSED'
  | 'POLICY_BUNDLE_UNAVAILABLE'
  // expressions
  | 'CEL_PARSE'
  | 'CEL_CHECK'
  | 'CEL_PROGRAM'
  | 'CEL_EVALUATION'
  | 'CEL_COST_EXCEEDED'
  // images and registries
  | 'IMAGE_REFERENCE_INVALID'
  | 'IMAGE_LIST_INVALID'
  | 'REGISTRY_FORBIDDEN_ADDRESS'
  | 'REGISTRY_NOT_FOUND'
  | 'REGISTRY_UNAUTHORIZED'
  | 'REGISTRY_UNREACHABLE'
  | 'REGISTRY_THROTTLED'
  | 'REGISTRY_RESPONSE_INVALID'
  | 'REGISTRY_DIGEST_MISMATCH'
  | 'REGISTRY_TOO_LARGE'
  | 'REGISTRY_BUDGET_SPENT'
  // clusters and what policies ask themselves
  | 'CLUSTER_REFUSED'
  | 'CLUSTER_UNAVAILABLE'
  | 'CLUSTER_RESPONSE_INVALID'
  | 'HTTP_REFUSED'
  | 'HTTP_UNAVAILABLE'
  // keys, signatures and seals
  | 'KEY_INVALID'
  | 'KMS_REFERENCE_INVALID'
  | 'KMS_REFUSED'
  | 'KMS_UNAVAILABLE'
  | 'SIGNATURE_MALFORMED'
  | 'REVOCATION_UNKNOWN'
  | 'SEAL_KEY_UNAVAILABLE'
  | 'SEAL_TOO_LARGE'
  // time
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL'

/** Codes where the same call may succeed a moment later; everything else is final. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'POLICY_BUNDLE_UNAVAILABLE',
  'REGISTRY_UNREACHABLE',
  'REGISTRY_THROTTLED',
  'CLUSTER_UNAVAILABLE',
  'HTTP_UNAVAILABLE',
  'KMS_UNAVAILABLE',
  'REVOCATION_UNKNOWN',
  'DEADLINE_EXCEEDED',
  'TOO_MANY_REVIEWS',
  'SEAL_KEY_UNAVAILABLE',
])

/** One thing wrong with an input: where it is and what is wrong with it. */
export interface Fault {
  /** A JSON path such as `request.kind.group`, or a file location such as `policies/a.yaml:12:5`. */
  path: string
  message: string
}

/**
 * A fault with a code from one closed union. A verdict is never an AdmissionError: "we know: no" is a value,
 * "we could not tell" carries one of these. Only `policy/decide.ts` turns either into allow or deny.
 * Messages hold no token, no credential, no object body and no URL query.
 */
export class AdmissionError extends Error {
  override readonly name = 'AdmissionError'
  readonly code: ErrorCode
  /** Every bad path, when the fault is in a document or a request. */
  readonly faults: readonly Fault[]

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; faults?: readonly Fault[] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.faults = options.faults ?? []
  }

  /** True when the same call may succeed a moment later (throttling, 5xx, no answer). */
  get transient(): boolean {
    return TRANSIENT.has(this.code)
  }
}

/** The given AdmissionError, or any other thrown value wrapped as `INTERNAL` with the original as cause. */
export function toAdmissionError(thrown: unknown, doing: string): AdmissionError {
  if (thrown instanceof AdmissionError) return thrown
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  return new AdmissionError('INTERNAL', `${doing}: ${text}`, { cause: thrown })
}

/** Ends a `switch` over a union: a member without a case does not compile. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable case: ${JSON.stringify(value)}`)
}
