import { AdmissionError, type Fault, toAdmissionError } from '#shared/errors.ts'
import type { ExceptionOptions } from '#shared/policy/options.ts'
import type { LabelSelector } from '#shared/policy/types.ts'
import type { KmsKey } from '#shared/ports.ts'
import { resolveKmsKey } from '#shared/signature/kms-reference.ts'
import type { RevocationMode } from '#shared/signature/revocation/types.ts'
import { parseRange } from './address.ts'
import { isEndpoint } from './config-schema/endpoint.ts'
import { CONFIG_SCHEMA, type ConfigDocument } from './config-schema.ts'
import {
  type CredentialSource,
  providerFaults,
  type SecretSource,
  toSource,
} from './credentials/sources.ts'
import type { PinnedKeys } from './kms-pinned.ts'
import {
  type PolicyBundleConfig,
  policyBundleFaults,
  toPolicyBundle,
} from './policy-bundle/config.ts'
import { checkSchema, type Formats } from './schema.ts'
import { type EventsConfig, sinkFaults, toEvents } from './sinks/config.ts'
import { isMirror, mirrorOf } from './trust/mirror.ts'

/** A secret by the name of the variable or binding that holds it. */
export interface SecretName {
  id: string
  env: string
}

/** The trusted root of one mirror; files are relative to the config. */
export interface TrustEntry {
  /** Address of the TUF repository; the public-good instance when absent. */
  mirror?: string
  /** The trusted root, as `countersign trust` writes it. */
  trustedRoot: string
  /** The TUF root the mirror is trusted by. */
  root?: string
}

/** Whether certificates of notary attestors are looked up as revoked where a policy does not say. */
export interface RevocationConfig {
  mode: RevocationMode
  /** Hosts that are asked although they are no public names. */
  allow?: readonly string[]
}

/** The read-only connection to the API server of one cluster. */
export interface ClusterApi {
  /** `https://host[:port]`. */
  server: string
  tokenEnv: string
  /** File with the certificates of its authority, relative to the config; public ones count when absent. */
  caFile?: string
  /** What is in that file, once it is read. */
  ca?: string
}

/** Whom policies may ask with `http.get` and `http.post`. */
export interface HttpConfig {
  /** Hosts that are asked over HTTPS. */
  allow: readonly string[]
  /** Hosts that are asked over plain HTTP. */
  plainHttp: readonly string[]
  /** Namespaced policies may ask, too. */
  namespacedPolicies: boolean
}

/** How the ImageReviews of a cluster are answered. */
export interface ImageReviewConfig {
  /** Keys of the policies that count, of those of the cluster; absent means all of them. */
  policies?: readonly string[]
  /** How long its API server keeps answers. For `countersign webhooks` alone; its own defaults when absent. */
  allowTTLSeconds?: number
  denyTTLSeconds?: number
}

/** One cluster that may call. */
export interface ClusterConfig {
  name: string
  /** SHA-256 hex of the URL tokens, one or two. */
  tokens: readonly string[]
  bearer?: readonly string[]
  /** CIDR ranges, v4 and v6. */
  cidrs?: readonly string[]
  /** Keys of its policies, `name` or `namespace/name`; absent means all. */
  policies?: readonly string[]
  /** Policy exceptions that count, `namespace/name`; absent means all. */
  exceptions?: readonly string[]
  /** Client certificates: of each list that is given, the caller's has to be one. */
  mtls?: { fingerprints?: readonly string[]; subjects?: readonly string[] }
  /** `audit`: nothing is denied. `enforce` when absent. */
  mode?: 'enforce' | 'audit'
  limits?: { bodyBytes?: number; concurrentReviews?: number }
  /** `1.31`. */
  kubernetes?: string
  timeouts: { mutateSeconds?: number; validateSeconds?: number }
  /** For `countersign webhooks` alone. */
  webhooks?: {
    namespaceSelector?: LabelSelector
    objectSelector?: LabelSelector
    excludeBootstrap?: boolean
    /** Where this cluster reaches the functions, if not where the others do. */
    endpoint?: Config['endpoint']
    /** Relative to the config. */
    caFile?: string
  }
  /** ImageReviews are answered when present, whatever is in it. */
  imageReview?: ImageReviewConfig
  /** RFC 3339. */
  notAfter?: string
  /** Nothing of the cluster is read when absent. */
  api?: ClusterApi
}

/** `countersign.yaml`, checked. Holds names of secrets only, so that it can be embedded in a bundle. */
export interface Config {
  policies: string
  /** Read when policies are loaded, as the one after it. */
  ignoreOtherKinds?: boolean
  exceptions?: ExceptionOptions
  /** One place for all functions, or one for each: `endpointsOf` reads it. */
  endpoint: string | { mutate: string; validate: string; imageReview?: string }
  outcomes: {
    key: { kind: 'kms'; key: KmsKey } | { kind: 'secrets'; secrets: readonly SecretName[] }
    lifetimeSeconds: number
    onMissing: 'verify' | 'deny'
  }
  kms: {
    region?: string
    preferRegion?: string
    endpoints: readonly string[]
    verifyRemotely: boolean
    vault?: { address: string; tokenEnv: string; mount: string; namespace?: string }
    /** In bundles that were built with them; no file has any. */
    pinned?: PinnedKeys
  }
  registries: {
    allow?: readonly string[]
    plainHttp: readonly string[]
    credentials: readonly CredentialSource[]
    secrets?: readonly SecretSource[]
  }
  /** Read when policies are loaded, whose attestors hold what they need of it. */
  trust?: readonly TrustEntry[]
  /** Nobody is asked when absent. */
  revocation?: RevocationConfig
  /** Without it, as no file is, nobody is told. */
  events?: EventsConfig
  /** Embedded metrics, where the platform has them. */
  metrics?: boolean
  /** Policies make no requests when absent. */
  http?: HttpConfig
  /** Functions have the policies they were built with when absent. */
  policyBundle?: PolicyBundleConfig
  clusters: readonly ClusterConfig[]
}

/**
 * The Config of an untrusted record (parsed YAML or JSON). Throws `CONFIG_INVALID` with every bad path and its fix at
 * once, unknown keys included.
 */
export function parseConfig(input: unknown): Config {
  const { value, faults } = checkSchema(CONFIG_SCHEMA, input, FORMATS)
  const all = [
    ...faults,
    ...keyFaults(value),
    ...endpointFaults(value),
    ...keepingFaults(value),
    ...mirrorFaults(value),
    ...metadataFaults(value),
    ...providerFaults(value?.registries?.credentials),
    ...sinkFaults(value?.events?.sinks),
    ...policyBundleFaults(value?.policyBundle),
  ]
  if (all.length > 0) {
    const lines = all.map(({ path, message }) => `${path}: ${message}`)
    throw new AdmissionError('CONFIG_INVALID', `invalid config:\n${lines.join('\n')}`, {
      faults: all,
    })
  }
  return toConfig(value)
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/

/** `Date` takes the 30th of February for the 2nd of March. */
function isTime(text: string): boolean {
  const [, year, month, day] = RFC3339.exec(text)?.map(Number) ?? []
  if (year === undefined || month === undefined || Number.isNaN(Date.parse(text))) return false
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
}

const FORMATS: Formats = {
  endpoint: isEndpoint,
  'ip-range': (text) => parseRange(text) !== undefined,
  mirror: isMirror,
  'date-time': isTime,
}

/** What no JSON Schema can say: whether the keys of the config itself can be addressed with these KMS settings. */
function keyFaults(document: ConfigDocument | null | undefined): Fault[] {
  return [
    ...keyFault('outcomes.key.kms', document?.outcomes?.key?.kms, document),
    ...keyFault('policyBundle.key.kms', document?.policyBundle?.key?.kms, document),
  ]
}

function keyFault(
  path: string,
  // Runs on documents with other faults too, whose parts may be anything.
  reference: unknown,
  document: ConfigDocument | null | undefined,
): Fault[] {
  if (typeof reference !== 'string' || !reference.startsWith('awskms://')) return []
  try {
    const { region, endpoints } = document?.kms ?? {}
    resolveKmsKey(reference, {
      ...(typeof region === 'string' && { region }),
      ...(Array.isArray(endpoints) && { endpoints: endpoints.map(String) }),
    })
    return []
  } catch (thrown) {
    return [{ path, message: toAdmissionError(thrown, 'the key').message }]
  }
}

/** Clusters that ask for image reviews need the place of their function. */
function endpointFaults(document: ConfigDocument | null | undefined): Fault[] {
  // Runs on documents with other faults too, whose parts may be anything.
  const clusters: unknown = document?.clusters
  const faults = new Map<string, Fault>()
  for (const [index, cluster] of (Array.isArray(clusters) ? clusters : []).entries()) {
    const own: unknown = cluster?.webhooks?.endpoint
    const endpoint = own ?? document?.endpoint
    const path = own === undefined ? 'endpoint' : `clusters[${index}].webhooks.endpoint`
    const lacks = typeof endpoint === 'object' && endpoint !== null && !('imageReview' in endpoint)
    if (!cluster?.imageReview || !lacks || faults.has(path)) continue
    const message = `has no imageReview, which clusters[${index}].imageReview asks for: add the URL of that function`
    faults.set(path, { path, message })
  }
  return [...faults.values()]
}

/** API servers keep answers for more than a second, or not at all (specs/kubernetes-admission.md 9.3). */
function keepingFaults(document: ConfigDocument | null | undefined): Fault[] {
  // Runs on documents with other faults too, whose parts may be anything.
  const clusters: unknown = document?.clusters
  if (!Array.isArray(clusters)) return []
  return clusters.flatMap((cluster: Partial<ClusterConfig> | null, index) =>
    (['allowTTLSeconds', 'denyTTLSeconds'] as const).flatMap((key) =>
      cluster?.imageReview?.[key] === 1
        ? [
            {
              path: `clusters[${index}].imageReview.${key}`,
              message: 'API servers do not start with 1: say 2 or more, or 0 to keep nothing',
            },
          ]
        : [],
    ),
  )
}

/** What `x-uniqueKeys` cannot see: no mirror is the public-good one, and a slash at the end makes no other. */
function mirrorFaults(document: ConfigDocument | null | undefined): Fault[] {
  const entries: unknown = document?.trust
  if (!Array.isArray(entries)) return []
  const mirrors = entries.map((entry) => {
    const mirror: unknown = entry?.mirror
    return mirror === undefined || typeof mirror === 'string' ? mirrorOf(mirror) : undefined
  })
  return mirrors.flatMap((mirror, index) => {
    const first = mirrors.indexOf(mirror)
    if (mirror === undefined || first === index) return []
    const message = `is for the same mirror as trust[${first}]: keep the one whose trusted root counts`
    return [{ path: `trust[${index}]`, message }]
  })
}

/** Where clouds give out the credentials of a machine to whoever asks: Kyverno's list of what no policy may ask. */
const METADATA_HOST =
  /^(169\.254\.\d+\.\d+|metadata\.google\.internal|\[fd00:ec2::254\]|\[fe80:.*\])(:\d+)?$/

function metadataFaults(document: ConfigDocument | null | undefined): Fault[] {
  const http: unknown = document?.http
  return (['allow', 'plainHttp'] as const).flatMap((key) => {
    // Runs on documents with other faults too, whose parts may be anything.
    const hosts: unknown = (http as Partial<HttpConfig> | null | undefined)?.[key]
    return (Array.isArray(hosts) ? hosts : []).flatMap((host, index) =>
      METADATA_HOST.test(String(host))
        ? [
            {
              path: `http.${key}[${index}]`,
              message: 'gives out credentials of the machine: no policy may ask it',
            },
          ]
        : [],
    )
  })
}

function toConfig(document: ConfigDocument): Config {
  const { key, ...outcomes } = document.outcomes
  const { credentials, ...registries } = document.registries
  const { policyBundle, ...rest } = document
  return {
    ...rest,
    outcomes: {
      ...outcomes,
      key:
        key.kms === undefined
          ? { kind: 'secrets', secrets: key.secrets ?? [] }
          : { kind: 'kms', key: resolveKmsKey(key.kms, document.kms) },
    },
    registries: { ...registries, credentials: credentials.map(toSource) },
    events: toEvents(document.events),
    ...(policyBundle && { policyBundle: toPolicyBundle(policyBundle) }),
    clusters: document.clusters.map(({ imageReview, ...cluster }) => ({
      ...cluster,
      ...(imageReview && { imageReview: imageReview === true ? {} : imageReview }),
      timeouts: cluster.timeouts ?? {},
    })),
  }
}
