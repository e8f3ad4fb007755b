import { AdmissionError, type ErrorCode } from '../errors.ts'

/** What guarded calls throw, in the words of clusters and of policies' requests. */
const CLUSTER_CODES: Partial<Record<ErrorCode, ErrorCode>> = {
  REGISTRY_UNREACHABLE: 'CLUSTER_UNAVAILABLE',
  REGISTRY_THROTTLED: 'CLUSTER_UNAVAILABLE',
  REGISTRY_TOO_LARGE: 'CLUSTER_RESPONSE_INVALID',
  REGISTRY_RESPONSE_INVALID: 'CLUSTER_RESPONSE_INVALID',
}
const HTTP_CODES: Partial<Record<ErrorCode, ErrorCode>> = {
  REGISTRY_UNREACHABLE: 'HTTP_UNAVAILABLE',
  REGISTRY_THROTTLED: 'HTTP_UNAVAILABLE',
  REGISTRY_TOO_LARGE: 'HTTP_REFUSED',
  REGISTRY_RESPONSE_INVALID: 'HTTP_REFUSED',
}

/** The fault of a guarded call as that of a cluster; anything else as it is. */
export function asClusterFault(thrown: unknown): unknown {
  return recoded(thrown, CLUSTER_CODES)
}

/** The fault of a guarded call as that of a policy's request; anything else as it is. */
export function asHttpFault(thrown: unknown): unknown {
  return recoded(thrown, HTTP_CODES)
}

function recoded(thrown: unknown, codes: Partial<Record<ErrorCode, ErrorCode>>): unknown {
  if (!(thrown instanceof AdmissionError)) return thrown
  const code = codes[thrown.code]
  return code === undefined ? thrown : new AdmissionError(code, thrown.message, { cause: thrown })
}

/** What a status of an API server means that is no answer. Its body is left out: it may name the token's user. */
export function refusal(path: string, status: number): AdmissionError {
  const reasons: Readonly<Record<number, string>> = {
    400: 'the API server does not take the request',
    401: 'the API server does not accept the token',
    403: 'RBAC of the cluster does not let the token read this',
  }
  const reason = reasons[status] ?? 'no usable answer'
  return new AdmissionError('CLUSTER_REFUSED', `GET ${path}: ${reason} (${status})`)
}

/** An answer that is not what an API server answers. */
export function unusable(path: string, why: string): AdmissionError {
  return new AdmissionError('CLUSTER_RESPONSE_INVALID', `GET ${path}: no usable answer: ${why}`)
}
