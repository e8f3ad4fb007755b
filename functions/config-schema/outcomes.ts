import { MAX_SEAL_TTL_MS } from '#shared/limits.ts'
import type { Schema } from '../schema.ts'
import { ENV_NAME } from './values.ts'

/** `outcomes`. */
export const OUTCOMES = {
  type: 'object',
  description: 'How what mutate proved is sealed for validate.',
  additionalProperties: false,
  required: ['key'],
  properties: {
    key: {
      type: 'object',
      description: 'Where the sealing key comes from: an HMAC key in AWS KMS, or secrets by name.',
      additionalProperties: false,
      oneOf: [{ required: ['kms'] }, { required: ['secrets'] }],
      properties: {
        kms: {
          type: 'string',
          description: 'An HMAC_256 key. One key per hour is derived from it by GenerateMac.',
          pattern: '^awskms://\\S+$',
          patternErrorMessage:
            'expected awskms:///<key id, key ARN or alias/name>, or awskms://host/<…>',
        },
        secrets: {
          type: 'array',
          description:
            'The first seals, all of them open. To rotate, put the new one first and drop the old one minutes later.',
          minItems: 1,
          maxItems: 4,
          'x-uniqueKeys': ['id', 'env'],
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['id', 'env'],
            properties: {
              id: {
                type: 'string',
                description: 'Name of the secret inside seals; never use one again.',
                pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
                patternErrorMessage:
                  'expected 1 to 32 characters of a-z, 0-9 and -, such as 2026-08',
              },
              env: { ...ENV_NAME, description: 'Variable with at least 32 random bytes, base64.' },
            },
          },
        },
      },
    },
    lifetimeSeconds: {
      type: 'integer',
      description: 'How long a seal counts; both phases of one request take less than a minute.',
      minimum: 10,
      maximum: MAX_SEAL_TTL_MS / 1000,
      default: 120,
    },
    onMissing: {
      type: 'string',
      description:
        'What validate does with what no seal covers: verify it live, or deny. Never a pass.',
      enum: ['verify', 'deny'],
      default: 'verify',
    },
  },
} as const satisfies Schema
