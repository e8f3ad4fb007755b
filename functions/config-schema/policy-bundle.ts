import { MAX_POLICY_BUNDLE_AGE_MS, MIN_POLICY_BUNDLE_REFRESH_MS } from '#shared/limits.ts'
import type { Schema } from '../schema.ts'
import { AWS_REGION } from './values.ts'

/** Neither `.` nor `..`, which a URL would not keep. */
const SEGMENT = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9!_.*()~-]{1,128}'
const OBJECT_KEY = `${SEGMENT}(?:/${SEGMENT}){0,15}`

const R2 = {
  type: 'object',
  description: 'Workers only: an object in a bucket that is bound to the Worker.',
  additionalProperties: false,
  required: ['binding', 'key'],
  properties: {
    binding: {
      type: 'string',
      description: 'Name of the binding (`r2_buckets` of the wrangler configuration).',
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
      patternErrorMessage: 'expected the name of a binding, such as POLICIES',
    },
    key: {
      type: 'string',
      description: 'Name of the object.',
      pattern: `^${OBJECT_KEY}$`,
      patternErrorMessage: 'expected the name of an object, such as bundles/prod.json',
    },
  },
} as const satisfies Schema

const KEY = {
  type: 'object',
  description: 'Whose signature counts. It never comes from a bundle.',
  additionalProperties: false,
  oneOf: [{ required: ['kms'] }, { required: ['file'] }],
  properties: {
    kms: {
      type: 'string',
      description: 'A signing key in AWS KMS. Functions read its public key, `bundle` signs there.',
      pattern: '^awskms://\\S+$',
      patternErrorMessage:
        'expected awskms:///<key id, key ARN or alias/name>, or awskms://host/<…>',
    },
    file: {
      type: 'string',
      description:
        'File with the public key in PEM, relative to this one; it becomes part of the functions.',
      pattern: '\\S',
      patternErrorMessage: 'expected a file, such as policies.pub',
    },
  },
} as const satisfies Schema

/** `policyBundle`. */
export const POLICY_BUNDLE = {
  type: 'object',
  description:
    'Policies without a new deployment: functions look for a signed file of `countersign bundle` and go on with what it holds. Without this section they have the policies they were built with.',
  additionalProperties: false,
  required: ['key'],
  oneOf: [{ required: ['url'] }, { required: ['s3'] }, { required: ['r2'] }],
  properties: {
    url: {
      type: 'string',
      description: 'Where the file is. Redirects are not followed.',
      pattern:
        '^(https://[a-zA-Z0-9.\\[\\]:-]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,5})?)(/[^?#@\\s]*)?$',
      patternErrorMessage:
        'expected https://host[:port][/path] without user, query or fragment (http:// only for this machine itself)',
    },
    s3: {
      type: 'string',
      description: 'The file as an object in S3, read with the role of the functions.',
      pattern: `^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/${OBJECT_KEY}$`,
      patternErrorMessage: 'expected s3://bucket/name/of/the/object',
    },
    region: {
      type: 'string',
      description: 's3: region of the bucket; kms.region or that of the function when absent.',
      ...AWS_REGION,
    },
    endpoint: {
      type: 'string',
      description:
        "s3: a store that speaks S3 instead of Amazon's, or a VPC endpoint. Requests that the role signs go there.",
      pattern:
        '^(https://[a-z0-9.\\[\\]:-]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,5})?)$',
      patternErrorMessage:
        'expected https://host[:port] without a path (http:// only for this machine itself)',
    },
    r2: R2,
    key: KEY,
    refreshSeconds: {
      type: 'integer',
      description:
        'How long a function waits before it looks again, with the next review and never in its way.',
      minimum: MIN_POLICY_BUNDLE_REFRESH_MS / 1000,
      maximum: 86_400,
      default: 60,
    },
    maxAgeSeconds: {
      type: 'integer',
      description:
        'When to raise the alarm: policies whose place has not confirmed them for this long. They go on counting.',
      minimum: 60,
      maximum: MAX_POLICY_BUNDLE_AGE_MS / 1000,
      default: 3600,
    },
    minSequence: {
      type: 'integer',
      description:
        'Bundles of a lower sequence are refused by functions that have just started, too; raise it to take an old one out of the world.',
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
    },
    onUnavailable: {
      type: 'string',
      description:
        'What counts while a function has no bundle: the policies it was built with, or nothing: then every review is denied, and also once the bundle it has expires. A bundle that is refused never takes the place of the last good one.',
      enum: ['embedded', 'deny'],
      default: 'embedded',
    },
  },
} as const satisfies Schema
