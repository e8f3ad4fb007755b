/** Name of the policy that the exceptions of the demo are about. */
export const EXCUSED_POLICY = 'signed-images-excused'
/** The repository whose image is excused. */
export const EXCUSED_REPOSITORY = 'shop/legacy'
/** The namespace where the policy is skipped. */
export const SKIPPED_NAMESPACE = 'lab'

/** Exceptions from that policy: one for an image, one for all of a namespace. */
export function exceptionTexts(): string {
  const policyRefs = [{ kind: 'ImageValidatingPolicy', name: EXCUSED_POLICY }]
  const document = (name: string, namespace: string, spec: object) =>
    JSON.stringify({
      apiVersion: 'policies.kyverno.io/v1',
      kind: 'PolicyException',
      metadata: { name, namespace },
      spec: { policyRefs, ...spec },
    })
  const inLab = [{ name: 'lab', expression: `request.namespace == "${SKIPPED_NAMESPACE}"` }]
  return [
    document('legacy-image', 'shop', { images: [`*/${EXCUSED_REPOSITORY}:1.0`] }),
    document('lab', SKIPPED_NAMESPACE, { matchConditions: inLab }),
  ].join('\n---\n')
}
