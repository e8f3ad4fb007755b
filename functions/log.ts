import { toHex, utf8 } from '#shared/bytes.ts'
import type { EngineDecision } from '#shared/engine/types.ts'
import type { HashPort, LogPort } from '#shared/ports.ts'
import type { Call, ReviewAnswer, ReviewCall } from './review.ts'

/** The trace id of a W3C `traceparent` header, or undefined. */
export function traceId(traceparent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent ?? '')?.[1]
}

/**
 * The log record of one answered review. Users appear as a hash that is the same for the same user of the same cluster;
 * objects, tokens and headers do not appear.
 */
export function decisionRecord(
  call: Pick<Call, 'cluster' | 'phase' | 'mode'> & Partial<Pick<ReviewCall, 'scope' | 'policies'>>,
  { request, decision, error, httpStatus }: ReviewAnswer,
  hash: HashPort,
): Record<string, unknown> {
  return {
    cluster: call.cluster,
    phase: call.phase,
    mode: call.mode === 'audit' ? call.mode : undefined,
    scope: call.scope,
    asked: call.policies?.length ? call.policies : undefined,
    uid: request?.uid,
    operation: call.phase === 'image-review' ? undefined : request?.operation,
    kind: request && nameOf(request.kind.group, request.kind.version, request.kind.kind),
    subResource: request?.subResource,
    namespace: request?.namespace,
    name: request?.name,
    dryRun: request?.dryRun || undefined,
    user: request && userHash(call, request.userInfo.username, hash),
    verdict: decision === undefined ? 'unreadable' : decision.allowed ? 'allow' : 'deny',
    cause: decision && causeOf(decision, error !== undefined),
    code: decision?.status?.code ?? (httpStatus === 200 ? undefined : httpStatus),
    message: decision?.status?.message,
    warnings: decision?.warnings.length || undefined,
    ...decision?.record,
    // The full text stays here even where the answer says less.
    ...(error && { error: { code: error.code, message: error.message } }),
  }
}

/** Why a request is denied, or would be outside audit mode: policies say no, or something stood in the way of telling, which is what alarms are about. */
function causeOf(
  { status, audited }: EngineDecision,
  isFault: boolean,
): 'rejected' | 'inconclusive' | undefined {
  const denial = status ?? audited
  if (denial === undefined) return undefined
  const causes = denial.details?.causes ?? []
  return isFault || causes.some(({ reason }) => reason === 'ImageVerificationError')
    ? 'inconclusive'
    : 'rejected'
}

function nameOf(group: string, version: string, kind: string): string {
  return group === '' ? `${version}/${kind}` : `${group}/${version}/${kind}`
}

/** Undefined where nobody is told of who asks. */
function userHash(
  { cluster, phase }: Pick<Call, 'cluster' | 'phase'>,
  username = '',
  hash: HashPort,
): string | undefined {
  if (phase === 'image-review') return undefined
  return toHex(hash.sha256(utf8(`${cluster}\n${username}`))).slice(0, 16)
}

/** A LogPort that writes one JSON line per record. What JSON cannot hold is written as text, never thrown over. */
export function jsonLog(write: (line: string) => void): LogPort {
  return (record) => {
    write(
      JSON.stringify(record, (_, value: unknown) =>
        typeof value === 'bigint' ? value.toString() : value,
      ),
    )
  }
}
