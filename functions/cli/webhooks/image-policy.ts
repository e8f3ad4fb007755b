import type { ClusterConfig } from '#functions/config.ts'
import type { Endpoints } from '#functions/endpoints.ts'
import { reviewedCluster } from '#functions/image-review-policies.ts'
import type { Fault } from '#shared/errors.ts'
import { reviewNeeds } from '#shared/policy/image-review-needs.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import type { CallerCredential } from '#shared/webhook/caller.ts'
import {
  IMAGE_POLICY_PLUGIN,
  type ImagePolicy,
  imagePolicyFaults,
  imagePolicyKubeconfig,
  imagePolicyOf,
} from '#shared/webhook/image-policy.ts'
import { DEFAULT_BASE_NAME } from '#shared/webhook/names.ts'
import type { PlanOptions } from './plan.ts'

/** What an API server needs to ask for ImageReviews. */
export interface ImagePolicyPlan {
  policy: ImagePolicy
  /** Holds the token of the cluster. */
  kubeconfig: object
  /** Said aloud, a line each: what is not asked about, and what happens when nobody answers. */
  notes: readonly string[]
}

/** What there is to know about one cluster. */
export interface ImagePolicyInput {
  cluster: ClusterConfig
  /** Those of the cluster. */
  policies: readonly CompiledPolicy[]
  endpoints: Endpoints
  token: string
  credentials: readonly CallerCredential[]
  /** Base64 of PEM. */
  caBundle?: string
  /** Where the files will be on the machine of the API server. */
  folder: string
}

/** Why there is no configuration of ImagePolicyWebhook with these options and this config, everything at once. */
export function imagePolicyRefusals(
  options: PlanOptions,
  { name, imageReview }: ClusterConfig,
  index: number,
): Fault[] {
  const faults: Fault[] = []
  if (imageReview === undefined) {
    faults.push({
      path: `${options.config}: clusters[${index}]`,
      message: `the functions answer no ImageReview of ${name}: say imageReview: true there, build and deploy`,
    })
  }
  if (options.flavour !== 'image-policy') return faults
  const forWebhooks: readonly [string, boolean][] = [
    ['--service', options.service !== undefined],
    ['--companion', options.companion === true],
    ['--force-ignore', options.forceIgnore === true],
    ['--no-safe-selectors', !options.safeSelectors],
    ['--base-name', (options.baseName ?? DEFAULT_BASE_NAME) !== DEFAULT_BASE_NAME],
  ]
  for (const [option, isGiven] of forWebhooks) {
    const message = 'is about webhooks, and --flavour image-policy writes none: leave it out'
    if (isGiven) faults.push({ path: option, message })
  }
  return faults
}

/** The plugin's configuration and kubeconfig for a cluster, and what an API server would not take of them. */
export function planImagePolicy(input: ImagePolicyInput): ImagePolicyPlan & { faults: Fault[] } {
  const { cluster, policies, endpoints, token, ...rest } = input
  const { allowTTLSeconds, denyTTLSeconds } = cluster.imageReview ?? {}
  const options = {
    ...rest,
    url: `${endpoints.imageReview ?? ''}/v1/${cluster.name}/${token}/image-review`,
    ...(allowTTLSeconds !== undefined && { allowTTLSeconds }),
    ...(denyTTLSeconds !== undefined && { denyTTLSeconds }),
  }
  const policy = imagePolicyOf(options)
  const faults = imagePolicyFaults(policy, options.url).map(({ path, message }) => ({
    path: `${IMAGE_POLICY_PLUGIN} ${path}`,
    message,
  }))
  return {
    policy,
    kubeconfig: imagePolicyKubeconfig(options),
    notes: [...notesOn(policy, cluster), ...pinningNotes(cluster, policies)],
    faults,
  }
}

function notesOn({ allowTTL, denyTTL }: ImagePolicy, { mode }: ClusterConfig): string[] {
  return [
    'asked about: images of Pods that are created or updated, and of ephemeral containers that are added, in every namespace, kube-system among them',
    'not asked about: Deployments and whatever else makes Pods, so that a bad image shows when its Pod is made; image volumes; and Pods whose images, annotations and namespace have an answer that is kept',
    `an answer is kept ${keptText('yes', allowTTL)}, ${keptText('no', denyTTL)}: what a policy says later counts from then on`,
    'defaultAllow: false: while nobody answers, no Pod is admitted but those an answer is kept for; the way out is to start the API server without the plugin',
    ...(mode === 'audit'
      ? ['mode audit: every answer is yes, and goes on counting for as long as it is kept']
      : []),
  ]
}

/** A review is a question only: what mutate does about tags elsewhere, nobody does here. */
function pinningNotes(cluster: ClusterConfig, policies: readonly CompiledPolicy[]): string[] {
  if (cluster.mode === 'audit') return []
  const listed = reviewedCluster(cluster).policies
  const strict = policies
    .filter(({ verifyDigest, validationActions }) => {
      return verifyDigest && validationActions.includes('Deny')
    })
    .filter((policy) => reviewNeeds(policy).isAsked)
    .map(policyKey)
    .filter((key) => listed?.includes(key) ?? true)
  return strict.length === 0
    ? []
    : [
        `images without a digest are refused by ${strict.join(', ')}, and ImagePolicyWebhook pins none: write digests, have mutating webhooks pin them, or set validationConfigurations.verifyDigest: false there`,
      ]
}

function keptText(answer: string, seconds: number): string {
  return seconds < 0 ? `not at all for ${answer}` : `${seconds} s for ${answer}`
}
