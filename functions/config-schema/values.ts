import type { Schema } from '../schema.ts'

/** The name of the variable that holds a secret. */
export const ENV_NAME = {
  type: 'string',
  pattern: '^[A-Z_][A-Z0-9_]{0,127}$',
  patternErrorMessage:
    'expected the NAME of an environment variable or binding (A-Z, 0-9, _); secrets never stand in this file',
} as const satisfies Schema

/** A host, with its port where it is not the usual one. */
export const HOST = {
  type: 'string',
  pattern: '^(\\[[0-9a-f:]+\\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?$',
  patternErrorMessage:
    'expected host or host:port in lower case, without https:// and without a path',
} as const satisfies Schema

/** How the name of an AWS region is written. */
export const AWS_REGION = {
  pattern: '^[a-z]{2}(-[a-z]+)+-[0-9]+$',
  patternErrorMessage: 'expected an AWS region such as eu-central-1',
} as const
