import type { Schema } from '../schema.ts'
import { ENDPOINT } from './endpoint.ts'

const SELECTOR = {
  type: 'object',
  additionalProperties: false,
  required: ['matchExpressions'],
  properties: {
    matchExpressions: {
      type: 'array',
      description: 'As in Kubernetes; a label with one value is In with that value.',
      minItems: 1,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['key', 'operator'],
        properties: {
          key: {
            type: 'string',
            pattern: '^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$',
            patternErrorMessage: 'expected the key of a label',
          },
          operator: { type: 'string', enum: ['In', 'NotIn', 'Exists', 'DoesNotExist'] },
          values: {
            type: 'array',
            description: 'For In and NotIn.',
            minItems: 1,
            items: {
              type: 'string',
              pattern: '^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$',
              patternErrorMessage: 'expected the value of a label',
            },
          },
        },
      },
    },
  },
} as const satisfies Schema

/** `webhooks` of a cluster. */
export const WEBHOOKS = {
  type: 'object',
  description:
    'What `countersign webhooks` writes for this cluster beside what its policies say. Functions do not look at it.',
  additionalProperties: false,
  properties: {
    namespaceSelector: {
      ...SELECTOR,
      description:
        'Namespaces whose objects the cluster asks about, beside leaving out kube-system, kube-node-lease and namespaces with the label countersign.dev/break-glass.',
    },
    objectSelector: {
      ...SELECTOR,
      description:
        'Objects the cluster asks about, by their labels, which whoever makes them may choose.',
    },
    excludeBootstrap: {
      type: 'boolean',
      description:
        'Nodes and certificate requests never wait for a webhook that fails closed, whatever policies are about.',
    },
    endpoint: {
      ...ENDPOINT,
      description:
        'Where this cluster reaches the functions, if not at the endpoint of all: such as the domain that asks for client certificates.',
    },
    caFile: {
      type: 'string',
      description:
        'File with the PEM certificates that the endpoint is trusted by, all of its hosts where it has several, relative to this one; public authorities when absent.',
      pattern: '\\S',
      patternErrorMessage: 'expected a file, such as endpoint-ca.pem',
    },
  },
} as const satisfies Schema
