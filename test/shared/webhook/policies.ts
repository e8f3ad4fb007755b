import { loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'

/** What a document of a test says; everything else is the least that a policy needs. */
export interface PolicyText {
  name?: string
  namespace?: string
  spec?: Record<string, unknown>
}

export const POD_RULE = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE', 'UPDATE'],
  resources: ['pods'],
}

/** A policy document about Pods; with a namespace, a namespaced one. */
export function policyDocument({ name = 'p', namespace, spec = {} }: PolicyText): object {
  return {
    apiVersion: 'policies.kyverno.io/v1beta1',
    kind: namespace === undefined ? 'ImageValidatingPolicy' : 'NamespacedImageValidatingPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      validationActions: ['Deny'],
      matchConstraints: { resourceRules: [POD_RULE] },
      attestors: [],
      validations: [{ expression: 'true' }],
      ...spec,
    },
  }
}

/** The policies of these documents, compiled. Fails where one has a fault. */
export async function compiled(...documents: readonly PolicyText[]): Promise<CompiledPolicy[]> {
  const files = documents.map((document, index) => ({
    name: `${index}.yaml`,
    text: JSON.stringify(policyDocument(document)),
  }))
  const { policies, faults } = await loadPolicies(files)
  if (faults.length > 0) throw new TypeError(JSON.stringify(faults))
  return [...policies]
}
