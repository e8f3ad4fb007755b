import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { POLICY_FORMAT } from '#functions/policy-bundle/payload.ts'
import { canonicalJson, type JsonValue } from '#shared/json.ts'
import { loadPolicies } from '#shared/policy/load.ts'

/** SHA-256 of what these documents are compiled to, by format. */
const COMPILED: Readonly<Record<number, string>> = {
  1: '8123ae28ecc674bcd2026e8fd240f985d39fa06e127afe8519db0629d2620157',
}

const DOCUMENTS = `
apiVersion: policies.kyverno.io/v1
kind: NamespacedImageValidatingPolicy
metadata: { name: all, namespace: shop }
spec:
  failurePolicy: Ignore
  validationActions: [Audit, Warn]
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }]
  matchConditions: [{ name: named, expression: "object.metadata.?name.orValue('') != ''" }]
  matchImageReferences: [{ glob: "registry.example.com/*" }, { expression: "ref.contains('a')" }]
  images: [{ name: more, expression: "object.spec.containers.map(c, c.image)" }]
  variables: [{ name: limit, expression: "quantity('1Gi')" }]
  attestors:
    - name: release
      cosign:
        key: { kms: "awskms:///arn:aws:kms:eu-central-1:111122223333:alias/release" }
        ctlog: { insecureIgnoreTlog: true }
    - name: computed
      cosign:
        key: { expression: "object.metadata.annotations['key']" }
        ctlog: { insecureIgnoreTlog: true }
  attestations: [{ name: sbom, intoto: { type: "https://spdx.dev/Document" } }]
  validations:
    - expression: images.containers.all(image, verifyImageSignatures(image, [attestors.release, attestors.computed]) > 0)
      message: not signed
    - expression: images.containers.all(image, verifyAttestationSignatures(image, attestations.sbom, [attestors.release]) > 0)
      messageExpression: "'no SBOM: ' + string(images.containers.size())"
  auditAnnotations: [{ key: limit, valueExpression: "string(variables.limit.asInteger())" }]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: { name: old, namespace: shop }
spec:
  policyRefs: [{ name: all, kind: NamespacedImageValidatingPolicy }]
  matchConditions: [{ name: old, expression: "object.metadata.name == 'old'" }]
`

/** A change of it that a function of the version before would misread needs another POLICY_FORMAT. One that it would read all the same only another hash here. */
test('what policies are compiled to is that of the format', async () => {
  const file = { name: 'all.yaml', text: DOCUMENTS }
  const { policies, faults } = await loadPolicies([file], { kmsRegion: 'eu-central-1' })
  expect(faults).toEqual([])
  const text = canonicalJson(policies as unknown as JsonValue)
  expect(createHash('sha256').update(text).digest('hex')).toBe(COMPILED[POLICY_FORMAT])
})
