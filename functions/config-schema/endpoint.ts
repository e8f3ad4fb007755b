import { urlFaults } from '#shared/webhook/client-config.ts'
import type { Schema } from '../schema.ts'

/** A URL that API servers take as the start of one they call. */
export const ENDPOINT_URL = {
  type: 'string',
  pattern: '^https://[^/?#@\\s]+(/[^?#\\s]*)?$',
  format: 'endpoint',
  patternErrorMessage:
    'expected https://host[:port][/path] without user, query or fragment; API servers accept nothing else',
} as const satisfies Schema

/** `endpoint`. */
export const ENDPOINT = {
  description:
    'Where clusters reach the functions: one URL for all of them, or one for each, as Function URLs are.',
  anyOf: [
    ENDPOINT_URL,
    {
      type: 'object',
      additionalProperties: false,
      required: ['mutate', 'validate'],
      properties: {
        mutate: ENDPOINT_URL,
        validate: ENDPOINT_URL,
        imageReview: {
          ...ENDPOINT_URL,
          description: 'Needed where a cluster has imageReview.',
        },
      },
    },
  ],
} as const satisfies Schema

/** True for a URL that API servers can read and call: the format of `ENDPOINT_URL`. */
export function isEndpoint(text: string): boolean {
  return urlFaults(text).length === 0 && URL.canParse(text)
}
