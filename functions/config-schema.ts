import { CLUSTER } from './config-schema/cluster.ts'
import { ENDPOINT } from './config-schema/endpoint.ts'
import { EVENTS } from './config-schema/events.ts'
import { KMS } from './config-schema/kms.ts'
import { OUTCOMES } from './config-schema/outcomes.ts'
import { POLICY_BUNDLE } from './config-schema/policy-bundle.ts'
import { REGISTRIES } from './config-schema/registries.ts'
import { REVOCATION, TRUST } from './config-schema/signatures.ts'
import { HOST } from './config-schema/values.ts'
import type { FromSchema, Schema } from './schema.ts'

const EXCEPTIONS = {
  type: 'object',
  description: 'Which policy exceptions of the folder count.',
  additionalProperties: false,
  properties: {
    namespaces: {
      type: 'array',
      description:
        'Namespaces that may hold exceptions, * for all of them, as when absent. Others are left out with a warning.',
      uniqueItems: true,
      items: {
        type: 'string',
        pattern: '^(\\*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$',
        patternErrorMessage: 'expected the name of a namespace, or *',
      },
    },
    crossNamespace: {
      type: 'boolean',
      description:
        'An exception reaches namespaced policies of every namespace, as in Kyverno, and not of its own alone.',
    },
  },
} as const satisfies Schema

const HTTP = {
  type: 'object',
  description:
    'Whom policies may ask with http.get and http.post; nobody without this section. Whatever a URL is made of, no other host is asked.',
  additionalProperties: false,
  required: ['allow'],
  properties: {
    allow: {
      type: 'array',
      description: 'Hosts that are asked over HTTPS, each exactly.',
      items: HOST,
      uniqueItems: true,
    },
    plainHttp: {
      type: 'array',
      description: 'Hosts that are asked over plain HTTP, for development.',
      items: HOST,
      default: [],
      uniqueItems: true,
    },
    namespacedPolicies: {
      type: 'boolean',
      description:
        'Let namespaced policies ask, too: whoever may write policies in a namespace can then send what is in its requests to these hosts.',
      default: false,
    },
  },
} as const satisfies Schema

/** The JSON Schema of `countersign.yaml`, published as `infra/countersign.schema.json`. */
export const CONFIG_SCHEMA = {
  type: 'object',
  description: 'Countersign: policies, keys, registries and the clusters that call.',
  additionalProperties: false,
  required: ['policies', 'endpoint', 'outcomes', 'clusters'],
  properties: {
    policies: {
      type: 'string',
      description: 'Folder with the policy documents, relative to this file.',
      pattern: '\\S',
      patternErrorMessage: 'expected a folder, such as policies',
    },
    ignoreOtherKinds: {
      type: 'boolean',
      description:
        'Objects of the folder that are neither image policies nor exceptions are left out with a warning. Without it each of them is a fault.',
    },
    exceptions: EXCEPTIONS,
    endpoint: ENDPOINT,
    outcomes: OUTCOMES,
    kms: KMS,
    registries: REGISTRIES,
    trust: TRUST,
    revocation: REVOCATION,
    events: EVENTS,
    metrics: {
      type: 'boolean',
      description:
        'Lambda: metrics of each review in its line of the log, in CloudWatch embedded metric format, by cluster, phase and verdict; true when absent. CloudWatch bills each as a custom metric.',
    },
    http: HTTP,
    policyBundle: POLICY_BUNDLE,
    clusters: {
      type: 'array',
      description: 'Who may call.',
      items: CLUSTER,
      minItems: 1,
      'x-uniqueKeys': ['name'],
    },
  },
} as const satisfies Schema

/** What the file says, with defaults filled in, before the checks that no schema can express. */
export type ConfigDocument = FromSchema<typeof CONFIG_SCHEMA>
