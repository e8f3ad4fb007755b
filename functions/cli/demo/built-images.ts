import { ISSUER, SUBJECT } from '#functions/local/sigstore/authority.ts'

/** Type of a provenance as SLSA defines it. */
export const PROVENANCE = 'https://slsa.dev/provenance/v1'

/** Who has to have built an image. */
export const BUILDER = 'https://ci.example.com/builder'

/** Every image carries a provenance by the release workflow, and that names the right builder. `mirror` is where Sigstore's root is from. */
export function builtImages(mirror: string): string {
  return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: built-images
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers]}
  attestors:
    - name: workflow
      cosign:
        keyless:
          identities:
            - issuer: ${ISSUER}
              subject: ${SUBJECT}
        tuf:
          mirror: ${mirror}
  attestations:
    - name: provenance
      intoto:
        type: ${PROVENANCE}
  variables:
    - name: images
      expression: images.containers + images.initContainers + images.ephemeralContainers
    - name: unproven
      expression: >-
        variables.images.filter(image,
          verifyAttestationSignatures(image, attestations.provenance, [attestors.workflow]) == 0)
    - name: elsewhere
      expression: >-
        variables.images.filter(image,
          extractPayload(image, attestations.provenance).predicate.runDetails.builder.id != "${BUILDER}")
  validations:
    - expression: variables.unproven.size() == 0
      messageExpression: '"no provenance by the release workflow: " + variables.unproven.join(", ")'
    - expression: variables.elsewhere.size() == 0
      messageExpression: >-
        variables.elsewhere.map(image, "built by " +
          string(extractPayload(image, attestations.provenance).predicate.runDetails.builder.id) + ": " + image).join(", ")
`
}
