import type { Schema } from '../schema.ts'
import { HOST } from './values.ts'

/** `trust`. */
export const TRUST = {
  type: 'array',
  description:
    'Sigstore trusted roots that policies name by their mirror. The public-good one comes with this program; an entry brings a newer one.',
  minItems: 1,
  maxItems: 16,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['trustedRoot'],
    properties: {
      mirror: {
        type: 'string',
        description: 'Address of the TUF repository; the public-good instance when absent.',
        format: 'mirror',
        patternErrorMessage:
          'expected https://host[/path] without user, query or fragment (http:// only for this machine itself)',
      },
      trustedRoot: {
        type: 'string',
        description:
          'File with the trusted root, relative to this one; `countersign trust` writes and refreshes it.',
        pattern: '\\S',
        patternErrorMessage: 'expected a file, such as trusted_root.json',
      },
      root: {
        type: 'string',
        description:
          'File with the TUF root the mirror is trusted by, relative to this one. Policies that name a TUF root have to name the same.',
        pattern: '\\S',
        patternErrorMessage: 'expected a file, such as root.json',
      },
    },
  },
} as const satisfies Schema

/** `revocation`. */
export const REVOCATION = {
  type: 'object',
  description:
    'Whether certificates of Notary Project signatures are looked up as revoked, with the OCSP responders and CRLs they name.',
  additionalProperties: false,
  required: ['mode'],
  properties: {
    mode: {
      type: 'string',
      description: `skip, as without this section: nobody is asked, since admissions would wait for services of others. softfail: what is revoked is refused, but where nobody answers, the signature counts. strict: it does not. A policy may say otherwise in its annotation countersign.dev/notary-revocation.`,
      enum: ['skip', 'softfail', 'strict'],
    },
    allow: {
      type: 'array',
      description:
        'Hosts of responders and CRLs that are asked although they are no public names, over HTTP or HTTPS as certificates say.',
      items: HOST,
      minItems: 1,
      uniqueItems: true,
    },
  },
} as const satisfies Schema
