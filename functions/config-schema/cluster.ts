import {
  DEFAULT_TIMEOUT_SECONDS,
  MAX_BODY_BYTES,
  MAX_CLIENT_CERTIFICATES,
  MAX_CONCURRENT_REVIEWS,
  MAX_IMAGE_REVIEW_TTL_SECONDS,
  MAX_TIMEOUT_SECONDS,
  MIN_CLUSTER_BODY_BYTES,
} from '#shared/limits.ts'
import type { Schema } from '../schema.ts'
import { ENV_NAME } from './values.ts'
import { WEBHOOKS } from './webhooks.ts'

const TOKEN_HASH = {
  type: 'string',
  pattern: '^[0-9a-f]{64}$',
  patternErrorMessage:
    'expected the SHA-256 of a token as 64 lower-case hex characters; `countersign tokens new` makes one',
} as const satisfies Schema

const POLICY_NAME = {
  type: 'string',
  pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
  patternErrorMessage:
    'expected metadata.name of a policy (lower case letters, digits, - and .), or namespace/name',
} as const satisfies Schema

const EXCEPTION_NAME = {
  type: 'string',
  pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
  patternErrorMessage: 'expected namespace/name of a policy exception',
} as const satisfies Schema

const SECONDS = { type: 'integer', minimum: 1, maximum: MAX_TIMEOUT_SECONDS } as const

/** The name of a cluster. */
export const CLUSTER_NAME = {
  type: 'string',
  description: 'The cluster in the URL, in seals and in the log.',
  pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$',
  patternErrorMessage: 'expected lower-case letters, digits, - and ., at most 63 characters',
} as const satisfies Schema

const API = {
  type: 'object',
  description:
    'Read-only access to the API server of this cluster, for policies that need labels of namespaces, namespaceObject or resource.*. Such policies are refused for a cluster without it.',
  additionalProperties: false,
  required: ['server', 'tokenEnv'],
  properties: {
    server: {
      type: 'string',
      description: 'Where the functions reach it. Redirects are not followed.',
      pattern: '^https://([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\\[[0-9a-f:]+\\])(:[0-9]{1,5})?$',
      patternErrorMessage: 'expected https://host[:port] without a path',
    },
    tokenEnv: {
      ...ENV_NAME,
      description:
        'Variable with the token of a service account that may get and list what the policies read.',
    },
    caFile: {
      type: 'string',
      description:
        "File with the PEM certificates of the cluster's own authority, relative to this one; it becomes part of the bundles. Workers trust public authorities only.",
      pattern: '\\S',
      patternErrorMessage: 'expected a file, such as prod-ca.pem',
    },
  },
} as const satisfies Schema

const MTLS = {
  type: 'object',
  description:
    'If given, callers show a client certificate that the front door has checked: of every list here it has to be one. Needs an AdmissionConfiguration on the API server, and a door with mutual TLS.',
  additionalProperties: false,
  properties: {
    fingerprints: {
      type: 'array',
      description:
        'SHA-256 of the certificates (DER), as `openssl x509 -noout -fingerprint -sha256` prints it, in lower case and without colons.',
      items: {
        type: 'string',
        pattern: '^[0-9a-f]{64}$',
        patternErrorMessage:
          'expected the SHA-256 of a certificate as 64 lower-case hex characters without colons',
      },
      minItems: 1,
      maxItems: MAX_CLIENT_CERTIFICATES,
      uniqueItems: true,
    },
    subjects: {
      type: 'array',
      description:
        'Subjects, compared exactly, as `openssl x509 -noout -subject -nameopt RFC2253` prints them.',
      items: {
        type: 'string',
        pattern: '^(?=.{3,1024}$)[A-Za-z0-9.]+=\\S(.*\\S)?$',
        patternErrorMessage:
          'expected a subject such as CN=kube-apiserver,O=prod, most special first',
      },
      minItems: 1,
      maxItems: MAX_CLIENT_CERTIFICATES,
      uniqueItems: true,
    },
  },
  oneOf: [
    { required: ['fingerprints'], maxProperties: 1 },
    { required: ['subjects'], maxProperties: 1 },
    { required: ['fingerprints', 'subjects'] },
  ],
} as const satisfies Schema

const LIMITS = {
  type: 'object',
  description: 'How much one cluster may ask for.',
  additionalProperties: false,
  properties: {
    bodyBytes: {
      type: 'integer',
      description:
        'Largest AdmissionReview, bytes; never more than the platform takes. Larger ones are denied.',
      minimum: MIN_CLUSTER_BODY_BYTES,
      maximum: MAX_BODY_BYTES,
    },
    concurrentReviews: {
      type: 'integer',
      description:
        'Reviews under way at once in one isolate; what is more is denied with 429. Best effort: a hard limit is the concurrency of the function or the throttle of its front door.',
      minimum: 1,
      maximum: MAX_CONCURRENT_REVIEWS,
    },
  },
} as const satisfies Schema

/** 1 is refused, too, by whoever reads the config. */
const REVIEW_TTL = {
  type: 'integer',
  minimum: 0,
  maximum: MAX_IMAGE_REVIEW_TTL_SECONDS,
} as const satisfies Schema

const IMAGE_REVIEW = {
  description:
    'Answer the ImageReviews of this cluster, which its API server asks when ImagePolicyWebhook is on: with true, or with what follows.',
  anyOf: [
    { type: 'boolean', const: true },
    {
      type: 'object',
      additionalProperties: false,
      properties: {
        policies: {
          type: 'array',
          description:
            'The policies that reviews are asked about, of those of the cluster; all of them when absent. None may need what a review does not carry: it has images, a namespace and a few annotations.',
          items: POLICY_NAME,
          minItems: 1,
          uniqueItems: true,
        },
        allowTTLSeconds: {
          ...REVIEW_TTL,
          description:
            'How long the API server keeps a yes, 2 to 1800 or 0 for not at all; 300 when absent. Functions do not look at it.',
        },
        denyTTLSeconds: {
          ...REVIEW_TTL,
          description:
            'How long the API server keeps a no, 2 to 1800 or 0 for not at all; 30 when absent. Functions do not look at it.',
        },
      },
    },
  ],
} as const satisfies Schema

/** An entry of `clusters`. */
export const CLUSTER = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'tokens'],
  properties: {
    name: CLUSTER_NAME,
    tokens: {
      type: 'array',
      description:
        'SHA-256 of the tokens in the webhook URL. Two while rotating, the old and the new one.',
      items: TOKEN_HASH,
      minItems: 1,
      maxItems: 2,
      uniqueItems: true,
    },
    bearer: {
      type: 'array',
      description:
        'If given, callers also send one of these as `Authorization: Bearer` (needs an AdmissionConfiguration).',
      items: TOKEN_HASH,
      minItems: 1,
      maxItems: 2,
      uniqueItems: true,
    },
    mtls: MTLS,
    cidrs: {
      type: 'array',
      description: 'If given, calls come from one of these address ranges.',
      items: {
        type: 'string',
        format: 'ip-range',
        patternErrorMessage:
          'expected a range such as 203.0.113.0/24 or 2001:db8::/32, with its host bits zero',
      },
      minItems: 1,
      uniqueItems: true,
    },
    policies: {
      type: 'array',
      description: 'The policies of this cluster; all of the folder when absent.',
      items: POLICY_NAME,
      minItems: 1,
      uniqueItems: true,
    },
    exceptions: {
      type: 'array',
      description:
        'The policy exceptions that count in this cluster, none of them for []; all of the folder when absent.',
      items: EXCEPTION_NAME,
      uniqueItems: true,
    },
    mode: {
      type: 'string',
      description:
        'audit: every verdict is reached and nothing is denied; what would be is a warning, an audit annotation and a line of the log. enforce when absent.',
      enum: ['enforce', 'audit'],
    },
    limits: LIMITS,
    kubernetes: {
      type: 'string',
      description: 'Version of its API server, for what `countersign webhooks` may make use of.',
      pattern: '^1\\.(0|[1-9][0-9]?)$',
      patternErrorMessage: "expected major.minor in quotes, such as '1.31'",
    },
    timeouts: {
      type: 'object',
      description: `timeoutSeconds of the two webhooks in this cluster. The API server uses ${DEFAULT_TIMEOUT_SECONDS} when a webhook names none.`,
      additionalProperties: false,
      properties: { mutateSeconds: SECONDS, validateSeconds: SECONDS },
    },
    webhooks: WEBHOOKS,
    imageReview: IMAGE_REVIEW,
    api: API,
    notAfter: {
      type: 'string',
      description: 'From then on the cluster is unknown.',
      format: 'date-time',
      patternErrorMessage: 'expected a time such as 2027-01-31T00:00:00Z',
    },
  },
} as const satisfies Schema
