import type { TextFile } from '#functions/files.ts'
import { type JsonValue, stringifyJson } from '#shared/json.ts'
import { autogenStatus } from '#shared/policy/autogen-status.ts'
import { objectsOf, readDocuments } from '#shared/policy/documents.ts'
import { POLICY_GROUP } from '#shared/policy/kinds.ts'
import { Faults, isRecord, own } from '#shared/policy/shape.ts'

const KINDS: readonly unknown[] = ['ImageValidatingPolicy', 'NamespacedImageValidatingPolicy']

/**
 * The image policies of these files as an API server holds them: with the defaults of the schema and with the `status.autogen` that Kyverno
 * writes (image-validating-policy.md 1.6, 5.4). Nothing else of the status is known here: who is configured to call is for the cluster to say.
 */
export function withStatus(files: readonly TextFile[]): object[] {
  return files.flatMap(({ text }) =>
    readDocuments(text).documents.flatMap((document) =>
      objectsOf(document, new Faults()).flatMap(({ value }) => {
        const isPolicy = String(own(value, 'apiVersion')).startsWith(`${POLICY_GROUP}/`)
        if (!isPolicy || !KINDS.includes(own(value, 'kind'))) return []
        // A document is JSON; its numbers are kept apart by type, which YAML does not need.
        const policy = JSON.parse(stringifyJson(value as JsonValue)) as Record<string, unknown>
        return [{ ...policy, ...specOf(policy), status: { autogen: autogenStatus(policy) } }]
      }),
    ),
  )
}

function specOf(policy: Record<string, unknown>): object {
  const { spec } = policy
  return isRecord(spec) ? { spec: withDefaults(spec) } : {}
}

/** The only defaults that the schema itself has. */
function withDefaults(spec: Record<string, unknown>): Record<string, unknown> {
  const given = own(spec, 'validationConfigurations')
  const defaults = { mutateDigest: true, verifyDigest: true, required: true }
  return { ...spec, validationConfigurations: { ...defaults, ...(isRecord(given) ? given : {}) } }
}
