import { packageVersion } from '../package.ts'
import { messageOf } from './documents.ts'
import { placeOf, type Result } from './fold.ts'
import { resourceText } from './text.ts'

/** SARIF 2.1.0, written piece by piece: a rule for every policy, a result for every resource. */
export function* sarifLines(results: readonly Result[]): Generator<string> {
  const policies = [...new Set(results.map(({ policy }) => policy))]
  const driver = {
    name: 'countersign',
    version: packageVersion(),
    rules: policies.map((id) => ({ id, shortDescription: { text: `Image policy ${id}` } })),
  }
  yield `{"version":"2.1.0","$schema":"https://json.schemastore.org/sarif-2.1.0.json","runs":[{"tool":${json({ driver })},"columnKind":"utf16CodeUnits","results":[`
  const index = new Map(policies.map((policy, at) => [policy, at]))
  for (const [at, result] of results.entries()) {
    yield `${at === 0 ? '\n' : ',\n'}${json(resultOf(result, index.get(result.policy) ?? 0))}`
  }
  yield '\n]}]}\n'
}

function resultOf(result: Result, ruleIndex: number): Record<string, unknown> {
  const { policy, cluster, images, action, verdict, operation, uid, time } = result
  const name = resourceText(result)
  const text = messageOf(result) || result.status
  return {
    ruleId: policy,
    ruleIndex,
    ...severityOf(result),
    message: { text: `${name}: ${text}` },
    locations: [
      {
        // No file, but some readers take no result without one.
        physicalLocation: { artifactLocation: { uri: uriOf(result) }, region: { startLine: 1 } },
        logicalLocations: [{ fullyQualifiedName: name, kind: 'resource' }],
      },
    ],
    partialFingerprints: { 'countersignResource/v1': `${name}#${policy}` },
    properties: {
      cluster,
      status: result.status,
      action,
      verdict,
      operation,
      time,
      reviewUid: uid,
      images: images.map(({ image }) => image),
      ...(result.exceptions && { exceptions: result.exceptions }),
    },
  }
}

/** Level and kind: only a `fail` may have a level (SARIF 3.27.9, 3.27.10). */
function severityOf({ status, action }: Result): { kind: string; level: string } {
  switch (status) {
    case 'pass':
      return { kind: 'pass', level: 'none' }
    case 'skip':
      return { kind: 'notApplicable', level: 'none' }
    case 'warn':
      return { kind: 'fail', level: 'warning' }
    case 'fail':
    case 'error':
      return { kind: 'fail', level: action === 'deny' ? 'error' : 'warning' }
  }
}

function uriOf(result: Result): string {
  const { namespace, kind, group } = result.resource
  const parts = [result.cluster, namespace, group, kind, placeOf(result)]
  const segments = parts.filter((part): part is string => part !== undefined && part !== '')
  return segments.map((part) => encodeURIComponent(part.replaceAll(/\p{Cs}/gu, '\uFFFD'))).join('/')
}

function json(value: unknown): string {
  return JSON.stringify(value)
}
