import type { ClusterConfig } from '#functions/config.ts'
import type { LabelSelector } from '#shared/policy/types.ts'
import type { ImagePolicyPlan } from './image-policy.ts'
import type { PlanOptions } from './plan.ts'

/** Whoever can label a namespace can take it out of image verification; that is what the label is for. */
const BREAK_GLASS_LABEL = 'countersign.dev/break-glass'
const SYSTEM_NAMESPACES = ['kube-node-lease', 'kube-system']

/** Namespaces that must work while the functions do not. */
export const SAFE_NAMESPACES: LabelSelector = {
  matchExpressions: [
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: SYSTEM_NAMESPACES },
    { key: BREAK_GLASS_LABEL, operator: 'DoesNotExist' },
  ],
}

/** Said aloud of webhooks: who is not asked about, and what fails open. */
export function safetyNotes(
  { safeSelectors, forceIgnore, imagePolicy }: PlanOptions,
  { webhooks, imageReview, mode }: ClusterConfig,
): string[] {
  const system = SYSTEM_NAMESPACES.join(' and ')
  const notes = [
    safeSelectors
      ? `nothing in ${system}, and nothing in namespaces with the label ${BREAK_GLASS_LABEL}, is verified: keep the right to label namespaces to few`
      : `${system} are asked about like all namespaces: while the functions are down, policies that fail closed may keep the cluster from mending itself`,
  ]
  if (webhooks?.objectSelector !== undefined) {
    notes.push(
      'webhooks.objectSelector leaves objects out by labels, which whoever makes them may choose',
    )
  }
  if (forceIgnore) {
    notes.push(
      'every webhook fails open: while the functions are down, everything is admitted unverified',
    )
  }
  if (mode === 'audit' && !forceIgnore) {
    notes.push(
      'mode audit: the functions deny nothing, but while they are down, policies that fail closed refuse all the same; --force-ignore writes webhooks that fail open, to be written again before you enforce',
    )
  }
  if (imageReview !== undefined && !imagePolicy) {
    notes.push(
      'imageReview is on, and nothing here makes the API server ask: --image-policy writes that, too',
    )
  }
  return notes
}

/** Said aloud of ImagePolicyWebhook. */
export function imagePolicyNotes(
  { service }: PlanOptions,
  { notes }: ImagePolicyPlan,
): readonly string[] {
  return service === undefined
    ? notes
    : [
        ...notes,
        `calls endpoint itself, and not --service ${service}: a kubeconfig of an API server names no Services`,
      ]
}
