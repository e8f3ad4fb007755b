import type { Schema } from '../schema.ts'
import { AWS_REGION, ENV_NAME } from './values.ts'

/** A segment of a path, `.` and `..` left out. */
const SEGMENT = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9_.-]+'
const VAULT_PATH = {
  type: 'string',
  pattern: `^${SEGMENT}(?:/${SEGMENT})*$`,
  patternErrorMessage: 'expected names with / between them and not around them',
} as const satisfies Schema

const VAULT = {
  type: 'object',
  description: 'HashiCorp Vault or OpenBao: where keys of hashivault:// and openbao:// are.',
  additionalProperties: false,
  required: ['address', 'tokenEnv'],
  properties: {
    address: {
      type: 'string',
      description: 'The active node or a load balancer: redirects are not followed.',
      pattern:
        '^(https://[a-z0-9.\\[\\]:-]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,5})?)$',
      patternErrorMessage:
        'expected https://host[:port] without a path (http:// only for this machine itself)',
    },
    tokenEnv: {
      ...ENV_NAME,
      description: 'Variable with a token that may read the keys, and verify with verifyRemotely.',
    },
    mount: {
      ...VAULT_PATH,
      description: 'Path of the transit engine.',
      default: 'transit',
    },
    namespace: { ...VAULT_PATH, description: 'Namespace of the engine, where Vault has those.' },
  },
} as const satisfies Schema

/** `kms`. */
export const KMS = {
  type: 'object',
  description:
    'Key services: AWS KMS for attestor keys and the sealing key, Vault for attestor keys.',
  additionalProperties: false,
  default: {},
  properties: {
    region: {
      type: 'string',
      description: 'Region of references that are not ARNs.',
      ...AWS_REGION,
    },
    preferRegion: {
      type: 'string',
      description:
        'Region whose replica is asked for when a reference is the ARN of a multi-region key (mrk-…) in another one.',
      ...AWS_REGION,
    },
    endpoints: {
      type: 'array',
      description:
        'Endpoints that an awskms:// reference may name. Signed requests go there: list only your own.',
      default: [],
      uniqueItems: true,
      items: {
        type: 'string',
        pattern:
          '^(https://[a-z0-9.\\[\\]:-]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,5})?)$',
        patternErrorMessage: 'expected https://host[:port] (http:// only for this machine itself)',
      },
    },
    verifyRemotely: {
      type: 'boolean',
      description:
        'Have the key service verify every signature too (kms:Verify, transit verify), for its audit trail and so that disabling a key counts.',
      default: false,
    },
    vault: VAULT,
  },
} as const satisfies Schema
