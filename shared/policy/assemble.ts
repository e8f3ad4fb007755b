import type { CheckedExpression } from '../cel/types.ts'
import { attestationsOf } from './attestations.ts'
import { moreNeverHurts } from './counts.ts'
import { credentialNames } from './credentials.ts'
import type { PolicyDocument } from './schema.ts'
import { formatPath, type Path } from './shape.ts'
import type { CompiledPolicy, PolicyAttestor } from './types.ts'

/** What goes into a compiled policy beside its document. */
export interface Parts {
  source: string
  hash: string
  attestors: readonly PolicyAttestor[]
  /** Checked expressions by path. */
  compiled: ReadonlyMap<string, CheckedExpression>
  specPath: Path
}

/** The compiled policy: the document with checked expressions in the places of their sources. */
export function assemble(
  { kind, apiVersion, name, namespace, spec }: PolicyDocument,
  parts: Parts,
): CompiledPolicy {
  const checked = (...path: (string | number)[]): CheckedExpression => {
    const found = parts.compiled.get(formatPath([...parts.specPath, ...path]))
    if (found === undefined) throw new TypeError(`no checked expression at ${formatPath(path)}`)
    return found
  }
  const named = (list: 'matchConditions' | 'images' | 'variables') =>
    spec[list].map((item, i) => ({ name: item.name, expression: checked(list, i, 'expression') }))
  const { timeoutSeconds } = spec.webhookConfiguration ?? {}
  const variables = named('variables')
  const validations = spec.validations.map(({ message, messageExpression }, i) => ({
    expression: checked('validations', i, 'expression'),
    ...(message === undefined ? {} : { message }),
    ...(messageExpression === undefined || messageExpression.trim() === ''
      ? {}
      : { messageExpression: checked('validations', i, 'messageExpression') }),
  }))
  return {
    kind,
    apiVersion,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(spec.evaluation?.mode === 'JSON' ? { mode: 'JSON' as const } : {}),
    hash: parts.hash,
    source: parts.source,
    failurePolicy: spec.failurePolicy,
    validationActions: spec.validationActions,
    matchConstraints: spec.matchConstraints,
    matchConditions: named('matchConditions'),
    matchImageReferences: spec.matchImageReferences.map((reference, i) =>
      reference.glob !== undefined && reference.glob !== ''
        ? { glob: reference.glob }
        : { expression: checked('matchImageReferences', i, 'expression') },
    ),
    images: named('images'),
    variables,
    attestors: parts.attestors,
    attestations: attestationsOf(spec.attestations),
    validations,
    auditAnnotations: spec.auditAnnotations.map(({ key }, i) => ({
      key,
      valueExpression: checked('auditAnnotations', i, 'valueExpression'),
    })),
    ...(spec.credentials === undefined ? {} : { credentials: credentialNames(spec.credentials) }),
    moreNeverHurts: moreNeverHurts({ variables, validations }),
    ...spec.validationConfigurations,
    exceptions: [],
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  }
}
