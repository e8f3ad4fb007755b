import { readFileSync } from 'node:fs'
import path from 'node:path'
import { canonicalJson, isJsonObject, type JsonValue, parseJson } from '#shared/json.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { generateWebhooks } from '#shared/webhook/generate.ts'
import type { WebhookOptions } from '#shared/webhook/types.ts'
import { parseYaml } from '#shared/yaml.ts'
import { type SuiteResult, Tally } from '#test/conformance/cel.ts'
import { foldersWith } from '#test/conformance/kyverno.ts'

/** How Kyverno's own chart sets it up, where its cases were written. */
const KYVERNO: WebhookOptions = {
  baseName: 'kyverno.svc',
  target: { kind: 'service', namespace: 'kyverno', name: 'kyverno-svc' },
  labels: { 'webhook.kyverno.io/managed-by': 'kyverno' },
  annotations: { 'admissions.enforcer/disabled': 'true' },
  namespaceSelector: {
    matchExpressions: ['kube-system', 'kyverno'].map((name) => ({
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn',
      values: [name],
    })),
  },
}

const GROUP = 'image-validating-policies/webhook-configuration'
const AGAIN =
  'IfNeeded: what another webhook changes after us is looked at again, instead of being verified by the validate phase alone'
const MUTATING = 'MutatingWebhookConfiguration webhooks[0]'

/** What comes out differently, and why. */
const DEVIATIONS: ReadonlyMap<string, string> = new Map([
  ...[
    'basic/single',
    'ephemeral-containers/single',
    'fine-grained/match-conditions',
    'fine-grained/match-constraints',
  ].map((name): [string, string] => [`${GROUP}/${name}: ${MUTATING}.reinvocationPolicy`, AGAIN]),
  [
    `${GROUP}/fine-grained/match-constraints: ${MUTATING}.matchPolicy`,
    'Exact, as the policy says: Kyverno loses it on its way to the mutating webhook',
  ],
])

/** Webhook configurations of Kyverno's cases, compared member by member with those made from the same policies. */
export async function runWebhooks(casesDir: string): Promise<SuiteResult> {
  const dir = path.join(casesDir, 'kyverno', 'chainsaw')
  const tally = new Tally(DEVIATIONS)
  for (const folder of foldersWith(dir, 'webhooks.yaml')) {
    const read = (file: string) => readFileSync(path.join(dir, folder, file), 'utf8')
    const files = [{ name: 'policy.yaml', text: read('policy.yaml') }]
    const { policies, faults } = await loadPolicies(files)
    tally.record(`${folder}: policy`, '[]', JSON.stringify(faults))
    const { mutating, validating, faults: wrong } = await generateWebhooks(policies, KYVERNO)
    tally.record(`${folder}: rules of the API server`, '[]', JSON.stringify(wrong))
    for (const expected of parseYaml(read('webhooks.yaml'))) {
      const kind = isJsonObject(expected) ? String(expected.kind) : 'document'
      const made = parseJson(JSON.stringify(kind === mutating.kind ? mutating : validating))
      for (const [at, wanted, got] of membersOf(expected, made)) {
        tally.record(`${folder}: ${kind} ${at}`, wanted, got)
      }
    }
  }
  return tally.result()
}

/** Every member of a configuration and of its webhooks, on either side. */
function membersOf(expected: JsonValue, got: JsonValue): [string, string, string][] {
  const sides = [expected, got].map(flat)
  const names = [...new Set(sides.flatMap((side) => [...side.keys()]))].sort()
  return names.map((name) => [
    name,
    sides[0]?.get(name) ?? 'absent',
    sides[1]?.get(name) ?? 'absent',
  ])
}

function flat(configuration: JsonValue): Map<string, string> {
  if (!isJsonObject(configuration)) return new Map([['document', canonicalJson(configuration)]])
  const { webhooks, ...rest } = configuration
  const members = Object.entries(rest).map(([name, value]): [string, JsonValue] => [name, value])
  const entries = (Array.isArray(webhooks) ? webhooks : []).flatMap((webhook, index) =>
    isJsonObject(webhook)
      ? Object.entries(webhook).map(([name, value]): [string, JsonValue] => [
          `webhooks[${index}].${name}`,
          value,
        ])
      : [],
  )
  return new Map([...members, ...entries].map(([name, value]) => [name, canonicalJson(value)]))
}
