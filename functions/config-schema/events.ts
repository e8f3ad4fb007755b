import { DEFAULT_EVENT_BATCH, MAX_QUEUED_EVENTS } from '#shared/limits.ts'
import type { Schema } from '../schema.ts'
import { AWS_REGION, ENV_NAME } from './values.ts'

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
      ...AWS_REGION,
    },
    source: {
      type: 'string',
      description: 'eventbridge: Source of the entries; countersign when absent.',
      pattern: '^(?!aws\\.)[A-Za-z0-9._/-]{1,256}$',
      patternErrorMessage: 'expected letters, digits, ., _, / and -, and nothing of aws.…',
    },
  },
} as const satisfies Schema

/** `events`. */
export const EVENTS = {
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
      description: 'Phases that are told; all of them when absent. mutate decides nothing.',
      minItems: 1,
      uniqueItems: true,
      items: { type: 'string', enum: ['mutate', 'validate', 'image-review'] },
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
