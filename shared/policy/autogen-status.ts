import { type AutogenTarget, autogenVariants } from './autogen.ts'
import { requestEnvironment } from './environment.ts'
import { isPresent, isRecord, own } from './shape.ts'
import type { AutogenConfig } from './types.ts'

/** `status.autogen` of a policy (image-validating-policy.md 1.6, 5.4): empty when nothing is generated. */
export interface AutogenStatus {
  configs?: Partial<Record<AutogenConfig, { targets: readonly AutogenTarget[]; spec: object }>>
}

/** What Kyverno writes into `status.autogen` of a policy that was applied to a cluster. The document may have faults. */
export function autogenStatus(document: unknown): AutogenStatus {
  const spec = isRecord(document) ? withDefaults(own(document, 'spec')) : undefined
  const variants = autogenVariants(spec, requestEnvironment().macros)
  if (variants.length === 0) return {}
  const configs = variants.map(({ config, targets, spec: variant }) => [
    config,
    { targets, spec: variant },
  ])
  return { configs: Object.fromEntries(configs) }
}

/** The defaults of the CRD's schema, which the API server has filled in before Kyverno sees the policy. */
function withDefaults(spec: unknown): unknown {
  if (!isRecord(spec)) return undefined
  const copy = structuredClone(spec)
  copy.validationConfigurations = {
    ...{ mutateDigest: true, verifyDigest: true, required: true },
    ...filledIn(own(copy, 'validationConfigurations')),
  }
  const evaluation = own(copy, 'evaluation')
  if (isRecord(evaluation)) {
    defaultIn(own(evaluation, 'admission'), 'enabled', true)
    defaultIn(own(evaluation, 'background'), 'enabled', true)
  }
  defaultIn(own(copy, 'credentials'), 'allowInsecureRegistry', false)
  return copy
}

/** Null counts as absent where there is a default. */
function filledIn(value: unknown): Record<string, unknown> {
  const entries = isRecord(value) ? Object.entries(value) : []
  return Object.fromEntries(entries.filter(([, field]) => field !== null))
}

function defaultIn(parent: unknown, name: string, value: boolean): void {
  if (isRecord(parent) && !isPresent(parent, name)) parent[name] = value
}
