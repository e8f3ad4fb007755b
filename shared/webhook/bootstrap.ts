import { UPSTREAM_BASE_NAME } from './names.ts'
import type { WebhookCondition, WebhookOptions } from './types.ts'

/** What a cluster needs before anything else runs in it (specs/image-validating-policy.md 7.9). */
const NO_BOOTSTRAP =
  '!(request.resource.group == "" && request.resource.resource == "nodes") && ' +
  '!(request.resource.group == "certificates.k8s.io" && request.resource.resource == "certificatesigningrequests")'

/** The condition that leaves out what a cluster needs to start, for webhooks that fail closed; undefined where none is wanted. */
export function bootstrapCondition({
  excludeBootstrap,
  baseName,
}: Pick<WebhookOptions, 'excludeBootstrap' | 'baseName'>): WebhookCondition | undefined {
  if (!excludeBootstrap) return undefined
  const prefix = baseName === UPSTREAM_BASE_NAME ? 'kyverno-' : ''
  return { name: `${prefix}exclude-bootstrap-resources`, expression: NO_BOOTSTRAP }
}
