import type { Fault } from '../errors.ts'
import { MAX_IMAGE_REVIEW_TTL_SECONDS } from '../limits.ts'
import { type CallerCredential, userOf } from './caller.ts'
import { urlFaults } from './client-config.ts'

/** What an API server needs to know to ask about images. */
export interface ImagePolicyOptions {
  /** `<endpoint>/v1/<cluster>/<token>/image-review`. */
  url: string
  /** Absolute folder on the machine of the API server where its files are. */
  folder: string
  credentials: readonly CallerCredential[]
  /** Base64 of PEM; system roots count when absent. */
  caBundle?: string
  /** How long a yes and a no are kept, seconds; 0 keeps none. */
  allowTTLSeconds?: number
  denyTTLSeconds?: number
}

/** `imagePolicy` of the plugin's configuration (specs/kubernetes-admission.md 9.3). */
export interface ImagePolicy {
  kubeConfigFile: string
  /** Seconds; -1 keeps nothing. */
  allowTTL: number
  denyTTL: number
  /** Milliseconds. */
  retryBackoff: number
  defaultAllow: boolean
}

/** The plugin, as an AdmissionConfiguration and `--enable-admission-plugins` call it. */
export const IMAGE_POLICY_PLUGIN = 'ImagePolicyWebhook'
/** The kubeconfig of the plugin, beside the AdmissionConfiguration. */
export const IMAGE_POLICY_KUBECONFIG = 'image-policy-kubeconfig.yaml'

/** What the API server itself takes where nothing is said, seconds. */
export const DEFAULT_ALLOW_TTL_SECONDS = 300
export const DEFAULT_DENY_TTL_SECONDS = 30
/** Its own default, milliseconds: five tries take about four seconds together. */
const RETRY_BACKOFF_MS = 500
const MAX_RETRY_BACKOFF_MS = 300_000
const KEEPS_NOTHING = -1

/** The `imagePolicy` of a cluster. Nothing is left to defaults, and nothing is admitted because nobody answered. */
export function imagePolicyOf({
  folder,
  allowTTLSeconds = DEFAULT_ALLOW_TTL_SECONDS,
  denyTTLSeconds = DEFAULT_DENY_TTL_SECONDS,
}: ImagePolicyOptions): ImagePolicy {
  return {
    kubeConfigFile: `${folder}/${IMAGE_POLICY_KUBECONFIG}`,
    // 0 would be the default.
    allowTTL: allowTTLSeconds || KEEPS_NOTHING,
    denyTTL: denyTTLSeconds || KEEPS_NOTHING,
    retryBackoff: RETRY_BACKOFF_MS,
    defaultAllow: false,
  }
}

/** The kubeconfig of the plugin: its `server` is called as it is, and holds the token of the cluster. */
export function imagePolicyKubeconfig(options: ImagePolicyOptions): object {
  const { url, caBundle } = options
  const cluster = {
    server: url,
    ...(caBundle !== undefined && { 'certificate-authority-data': caBundle }),
  }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'countersign', cluster }],
    users: [{ name: 'api-server', user: userOf(options) }],
    contexts: [{ name: 'countersign', context: { cluster: 'countersign', user: 'api-server' } }],
    'current-context': 'countersign',
  }
}

/**
 * What an API server would not start with (specs/kubernetes-admission.md 9.3), and what it would start with and not be safe: everything at once.
 */
export function imagePolicyFaults(policy: ImagePolicy, url: string): Fault[] {
  const { kubeConfigFile, allowTTL, denyTTL, retryBackoff, defaultAllow } = policy
  const faults: Fault[] = urlFaults(url).map((message) => ({ path: 'server', message }))
  const add = (name: string, message: string | undefined) => {
    if (message !== undefined) faults.push({ path: `imagePolicy.${name}`, message })
  }
  if (kubeConfigFile === '') add('kubeConfigFile', 'Required value')
  add('allowTTL', ttlFault(allowTTL))
  add('denyTTL', ttlFault(denyTTL))
  add('retryBackoff', backoffFault(retryBackoff))
  if (defaultAllow) {
    add('defaultAllow', 'Invalid value: true: pods would be admitted whenever nobody answers')
  }
  return faults
}

/** The bounds themselves: the lower one is refused, and so are fractions, which the field cannot hold. */
function ttlFault(seconds: number): string | undefined {
  if (seconds === 0 || seconds === KEEPS_NOTHING) return undefined
  const isKept = Number.isInteger(seconds) && seconds > 1 && seconds <= MAX_IMAGE_REVIEW_TTL_SECONDS
  return isKept
    ? undefined
    : `valid value is between 1s and 30m0s, got ${goDuration(seconds * 1000)}`
}

function backoffFault(ms: number): string | undefined {
  if (ms === 0 || ms === KEEPS_NOTHING) return undefined
  const isKept = Number.isInteger(ms) && ms > 0 && ms <= MAX_RETRY_BACKOFF_MS
  return isKept ? undefined : `valid value is between 1ns and 5m0s, got ${goDuration(ms)}`
}

/** As Go prints a duration of whole milliseconds: `1h0m0s`, `30m1s`, `1.5s`, `250ms`. */
function goDuration(ms: number): string {
  const sign = ms < 0 ? '-' : ''
  const size = Math.abs(ms)
  if (size === 0) return '0s'
  if (size < 1000) return `${sign}${size}ms`
  const [hours, minutes, seconds] = [
    Math.floor(size / 3_600_000),
    Math.floor(size / 60_000) % 60,
    (size % 60_000) / 1000,
  ]
  const larger = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : ''
  return `${sign}${larger}${seconds}s`
}
