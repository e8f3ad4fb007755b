/** The file that the demo's policy ships as. */
export const POLICY_FILE = 'infra/policies/signed-images.yaml'

/** The policy as it ships. The demo holds it, because whoever follows it edits or removes the file, and its story goes on. */
export const POLICY_TEXT = `# Every image of a Pod carries a signature by the release key; whatever does not stays out. It is about Pods, whoever makes them:
# a Deployment of other images gets in, and its Pods do not. A policy whose only resource is pods would stand for the controllers
# of Pods as well (autogen); this one names ephemeral containers too, so nothing is generated from it.
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: signed-images
spec:
  validationActions: [Deny]
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        # Ephemeral containers are added through a subresource of their own.
        resources: [pods, pods/ephemeralcontainers]
  matchConditions:
    # Updates that leave the spec alone run nothing new: labels, finalizers and the end of a Pod need no verification.
    - name: something-new-runs
      expression: oldObject == null || object.spec != oldObject.spec
  # Images this policy is about. Others are not looked at, so start with everything.
  matchImageReferences:
    - glob: "*"
  # Containers are found without help. Volumes made of images are not: these have to be pinned by whoever writes the Pod.
  images:
    - name: volumes
      expression: object.spec.?volumes.orValue([]).filter(v, has(v.image)).map(v, v.image.reference)
  attestors:
    - name: release
      cosign:
        key:
          kms: awskms:///alias/countersign-release
        ctlog:
          # Signatures are checked against the key alone; nothing is looked up in a transparency log.
          insecureIgnoreTlog: true
  variables:
    - name: unsigned
      expression: >-
        (images.containers + images.initContainers + images.ephemeralContainers + images.volumes)
          .filter(image, verifyImageSignatures(image, [attestors.release]) == 0)
  validations:
    - expression: variables.unsigned.size() == 0
      message: an image is not signed by the release key
      messageExpression: '"not signed by the release key: " + variables.unsigned.join(", ")'
`
