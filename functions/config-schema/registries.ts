import type { Schema } from '../schema.ts'
import { ENV_NAME, HOST } from './values.ts'

/** `registries`. */
export const REGISTRIES = {
  type: 'object',
  description: 'Which registries are talked to, and how.',
  additionalProperties: false,
  default: {},
  properties: {
    allow: {
      type: 'array',
      description:
        'Hosts that are contacted although they are no public names: addresses, single labels, .internal and the like.',
      items: HOST,
      minItems: 1,
      uniqueItems: true,
    },
    plainHttp: {
      type: 'array',
      description: 'Registries without TLS, for development.',
      items: HOST,
      default: [],
      uniqueItems: true,
    },
    credentials: {
      type: 'array',
      description:
        'Logins by the name of the variable that holds them. Hosts are compared exactly.',
      default: [],
      'x-uniqueKeys': ['host'],
      items: {
        type: 'object',
        additionalProperties: false,
        oneOf: [
          { required: ['host', 'usernameEnv', 'passwordEnv'] },
          { required: ['dockerConfigEnv'], maxProperties: 1 },
          { required: ['provider'] },
        ],
        properties: {
          host: { ...HOST, description: 'The registry, such as ghcr.io or index.docker.io.' },
          usernameEnv: ENV_NAME,
          passwordEnv: ENV_NAME,
          tokenHost: {
            ...HOST,
            description:
              'Where the token service of this registry is, if at a host of its own; the login is sent there too.',
          },
          dockerConfigEnv: {
            ...ENV_NAME,
            description: 'Variable that holds a docker config.json (or .dockerconfigjson).',
          },
          provider: {
            type: 'string',
            enum: ['amazon', 'azure', 'google', 'github'],
            description:
              "A cloud that gives out logins for its own registries: amazon for ECR by the function's role, google by a service account's key, azure by an application's secret, github by a token for ghcr.io.",
          },
          hosts: {
            type: 'array',
            description: 'Registries that the provider is asked for; all of its own when absent.',
            items: HOST,
            minItems: 1,
            uniqueItems: true,
          },
          serviceAccountKeyEnv: {
            ...ENV_NAME,
            description: "google: variable that holds the JSON of a service account's key.",
          },
          tenantEnv: { ...ENV_NAME, description: 'azure: directory (tenant) id.' },
          clientIdEnv: { ...ENV_NAME, description: 'azure: id of the application.' },
          clientSecretEnv: { ...ENV_NAME, description: 'azure: secret of the application.' },
          tokenEnv: {
            ...ENV_NAME,
            description: 'github: a token that may read packages.',
          },
        },
      },
    },
    secrets: {
      type: 'array',
      description:
        'Pull secrets that policies name (credentials.secrets, source.PullSecrets), in place of Secrets of a cluster.',
      minItems: 1,
      'x-uniqueKeys': ['name'],
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'dockerConfigEnv'],
        properties: {
          name: {
            type: 'string',
            description: 'As policies write it: name, or namespace/name.',
            pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$',
            patternErrorMessage: 'expected name or namespace/name of a Secret',
          },
          dockerConfigEnv: {
            ...ENV_NAME,
            description: 'Variable that holds its .dockerconfigjson (or .dockercfg).',
          },
        },
      },
    },
  },
} as const satisfies Schema
