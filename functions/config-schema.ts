import {
  DEFAULT_EVENT_BATCH,
  DEFAULT_TIMEOUT_SECONDS,
  MAX_BODY_BYTES,
  MAX_CLIENT_CERTIFICATES,
  MAX_CONCURRENT_REVIEWS,
  MAX_QUEUED_EVENTS,
  MAX_SEAL_TTL_MS,
  MAX_TIMEOUT_SECONDS,
  MIN_CLUSTER_BODY_BYTES,
} from '#shared/limits.ts'
import type { FromSchema, Schema } from './schema.ts'

const ENV_NAME = {
  type: 'string',
  pattern: '^[A-Z_][A-Z0-9_]{0,127}$',
  patternErrorMessage:
    'expected the NAME of an environment variable or binding (A-Z, 0-9, _); secrets never stand in this file',
} as const satisfies Schema

const HOST = {
  type: 'string',
  pattern: '^(\\[[0-9a-f:]+\\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?$',
  patternErrorMessage:
    'expected host or host:port in lower case, without https:// and without a path',
} as const satisfies Schema

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

const OUTCOMES = {
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

const KMS = {
  type: 'object',
  description:
    'Key services: AWS KMS for attestor keys and the sealing key, Vault for attestor keys.',
  additionalProperties: false,
  default: {},
  properties: {
    region: {
      type: 'string',
      description: 'Region of references that are not ARNs.',
      pattern: '^[a-z]{2}(-[a-z]+)+-[0-9]+$',
      patternErrorMessage: 'expected an AWS region such as eu-central-1',
    },
    preferRegion: {
      type: 'string',
      description:
        'Region whose replica is asked for when a reference is the ARN of a multi-region key (mrk-…) in another one.',
      pattern: '^[a-z]{2}(-[a-z]+)+-[0-9]+$',
      patternErrorMessage: 'expected an AWS region such as eu-central-1',
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

const REGISTRIES = {
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

const TRUST = {
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

const REVOCATION = {
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

const SINK = {
  type: 'object',
  additionalProperties: false,
  required: ['kind'],
  properties: {
    kind: {
      type: 'string',
      description: 'http: POST to an endpoint of yours. eventbridge: PutEvents to an event bus.',
      enum: ['http', 'eventbridge'],
    },
    url: {
      type: 'string',
      description: 'http: where events go. Redirects are not followed.',
      pattern:
        '^(https://[a-zA-Z0-9.\\[\\]:-]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,5})?)(/[^?#@\\s]*)?$',
      patternErrorMessage:
        'expected https://host[:port][/path] without user, query or fragment (http:// only for this machine itself)',
    },
    format: {
      type: 'string',
      description:
        'http: one JSON object a line, a JSON array, or a CloudEvents batch; ndjson when absent.',
      enum: ['ndjson', 'json', 'cloudevents'],
    },
    headers: {
      type: 'array',
      description: 'http: headers such as Authorization, by the variable that holds the value.',
      maxItems: 10,
      'x-uniqueKeys': ['name'],
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'valueEnv'],
        properties: {
          name: {
            type: 'string',
            pattern:
              '^(?!(?:[Hh]ost|[Cc]onnection|[Tt]ransfer-[Ee]ncoding|[Cc]ontent-[A-Za-z]+)$)[A-Za-z0-9-]{1,64}$',
            patternErrorMessage:
              'expected the name of a header, and none of Host, Connection, Transfer-Encoding and Content-…',
          },
          valueEnv: { ...ENV_NAME, description: 'Variable with the whole value.' },
        },
      },
    },
    bus: {
      type: 'string',
      description:
        'eventbridge: name or ARN of the event bus. The function needs events:PutEvents.',
      pattern: '^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}$',
      patternErrorMessage: 'expected the name or the ARN of an event bus',
    },
    region: {
      type: 'string',
      description: 'eventbridge: that of the ARN, kms.region or the function when absent.',
      pattern: '^[a-z]{2}(-[a-z]+)+-[0-9]+$',
      patternErrorMessage: 'expected an AWS region such as eu-central-1',
    },
    source: {
      type: 'string',
      description: 'eventbridge: Source of the entries; countersign when absent.',
      pattern: '^(?!aws\\.)[A-Za-z0-9._/-]{1,256}$',
      patternErrorMessage: 'expected letters, digits, ., _, / and -, and nothing of aws.…',
    },
  },
} as const satisfies Schema

const EVENTS = {
  type: 'object',
  description:
    'One event for each policy that was applied to a request: to the log, and to sinks. They never delay or change a verdict.',
  additionalProperties: false,
  default: {},
  properties: {
    log: {
      type: 'boolean',
      description: 'Each event is a line of the log, which `countersign report` reads.',
      default: true,
    },
    include: {
      type: 'array',
      description: 'Results that are told; all of them when absent. Reports need all.',
      minItems: 1,
      uniqueItems: true,
      items: { type: 'string', enum: ['fail', 'error', 'warn', 'skip', 'pass'] },
    },
    phases: {
      type: 'array',
      description: 'Phases that are told; both when absent. Only validate decides.',
      minItems: 1,
      uniqueItems: true,
      items: { type: 'string', enum: ['mutate', 'validate'] },
    },
    batch: {
      type: 'integer',
      description: 'Events of one delivery at most; EventBridge takes ten.',
      minimum: 1,
      maximum: MAX_QUEUED_EVENTS,
      default: DEFAULT_EVENT_BATCH,
    },
    sinks: {
      type: 'array',
      description: 'Where events go beside the log.',
      default: [],
      maxItems: 5,
      items: SINK,
    },
  },
} as const satisfies Schema

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

/** The name of a cluster. */
export const CLUSTER_NAME = {
  type: 'string',
  description: 'The cluster in the URL, in seals and in the log.',
  pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$',
  patternErrorMessage: 'expected lower-case letters, digits, - and ., at most 63 characters',
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

const WEBHOOKS = {
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
    caFile: {
      type: 'string',
      description:
        'File with the PEM certificates that the endpoint is trusted by, relative to this one; public authorities when absent.',
      pattern: '\\S',
      patternErrorMessage: 'expected a file, such as endpoint-ca.pem',
    },
  },
} as const satisfies Schema

const CLUSTER = {
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
    api: API,
    notAfter: {
      type: 'string',
      description: 'From then on the cluster is unknown.',
      format: 'date-time',
      patternErrorMessage: 'expected a time such as 2027-01-31T00:00:00Z',
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
    endpoint: {
      type: 'string',
      description: 'Where clusters reach the functions.',
      pattern: '^https://[^/?#@\\s]+(/[^?#\\s]*)?$',
      patternErrorMessage:
        'expected https://host[:port][/path] without user, query or fragment; API servers accept nothing else',
    },
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
