import { reportDocuments } from '#functions/cli/report/documents.ts'
import { Fold } from '#functions/cli/report/fold.ts'
import { eventsIn } from '#functions/cli/report/read.ts'
import { clusterOf } from '#functions/cli/test/cluster.ts'
import { hashOf } from '#functions/cli/token.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type Admission, createApiServer } from '#functions/local/apiserver.ts'
import type { Submission } from '#functions/local/submission.ts'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'
import { createMutateApp } from '#functions/mutate.ts'
import { startNodeServer } from '#functions/node.ts'
import type { Platform } from '#functions/ports.ts'
import { createValidateApp } from '#functions/validate.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { isJsonObject } from '#shared/json.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import type { PolicyFile } from '#shared/policy/load.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { PolicyFault } from '#shared/policy/types.ts'
import type { FetchPort, LogPort } from '#shared/ports.ts'
import { parseYaml } from '#shared/yaml.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const API_SERVER = 'kubernetes.example.com'
const ENV = { SEAL: Buffer.alloc(32, 7).toString('base64'), KUBERNETES: 'a-token' }

export interface ClusterOptions {
  /** Documents of policies and exceptions. */
  files: readonly PolicyFile[]
  /** Of objects and namespaced documents that name none. */
  namespace: string
  /** What is in the cluster already. */
  existing?: readonly JsonObject[]
  /** Reaches registries. */
  fetch: FetchPort
  /** JSON of the root that stands for Sigstore's public-good instance. */
  trustedRoot?: string
  /** Epoch milliseconds. */
  now: () => number
  /** Names of the webhooks, as denials have them. */
  webhooks?: { mutating?: string; validating?: string }
}

/** A cluster as its users see it: what they create goes through both functions, and is there afterwards if it was admitted. */
export interface Cluster {
  create(submission: Submission, webhooks?: ClusterOptions['webhooks']): Promise<Admission>
  /** Objects that are there, those from the beginning first. */
  readonly stored: readonly JsonObject[]
  /** The reports that the log of the functions amounts to. */
  reports(): JsonObject[]
  close(): Promise<void>
}

/** A cluster with both functions behind TLS, or the faults of its policies. */
export async function createCluster(
  options: ClusterOptions,
): Promise<{ cluster: Cluster; faults: [] } | { faults: readonly PolicyFault[] }> {
  const { fetch, namespace, now, trustedRoot } = options
  const loaded = await loadPolicies(options.files, {
    defaultNamespace: namespace,
    now: now(),
    ...(trustedRoot !== undefined && { trustedRoot: () => trustedRoot }),
  })
  if (loaded.faults.length > 0) return { faults: loaded.faults }
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    events: { log: true },
    clusters: [
      {
        name: 'prod',
        tokens: [await hashOf(TOKEN)],
        api: { server: `https://${API_SERVER}`, tokenEnv: 'KUBERNETES' },
      },
    ],
  })
  // Through the text that bundles hold.
  const deployment = parseDeployment(
    formatDeployment(await createDeployment(config, loaded.policies)),
  )
  const stored = [...(options.existing ?? [])]
  const lines: string[] = []
  const platform: Platform = {
    env: ENV,
    now,
    log: (record: Parameters<LogPort>[0]) => lines.push(JSON.stringify(record)),
    hash: nodeHash,
    maxBodyBytes: MAX_BODY_BYTES,
    fetch: async (url, init) =>
      new URL(url).host === API_SERVER ? answerAsApiServer(stored, url) : fetch(url, init),
  }
  const tls = await certificates()
  const [mutate, validate] = await Promise.all(
    [createMutateApp(deployment, platform), createValidateApp(deployment, platform)].map((app) =>
      startNodeServer({ app, tls, host: '127.0.0.1' }),
    ),
  )
  const isNamespaced = loaded.policies.some((policy) => policy.namespace !== undefined)
  const scope = isNamespaced ? 'nivpol' : 'ivpol'
  const webhook = (verb: 'mutate' | 'validate', port: number, name: string) => ({
    name,
    url: `https://127.0.0.1:${port}/v1/prod/${TOKEN}/${scope}/${verb}`,
    timeoutSeconds: 20,
    failurePolicy: 'Fail' as const,
  })
  return {
    faults: [],
    cluster: {
      stored,
      async create(submission, webhooks = options.webhooks ?? {}) {
        const { mutating = 'mutate.countersign.dev', validating = 'validate.countersign.dev' } =
          webhooks
        const server = createApiServer({
          ca: tls.ca,
          mutating: webhook('mutate', mutate!.port, mutating),
          validating: webhook('validate', validate!.port, validating),
          now,
        })
        try {
          const object = submission.object && inNamespace(submission.object, namespace)
          const admission = await server.admit({ ...submission, object })
          if (admission.allowed && admission.object !== null) stored.push(admission.object)
          return admission
        } finally {
          server.close()
        }
      },
      reports() {
        const fold = new Fold()
        for (const line of lines) for (const event of eventsIn(line).events) fold.add(event)
        return [...reportDocuments('policyreport', fold.results())].flatMap((text) =>
          parseYaml(text).filter(isJsonObject),
        )
      },
      close: async () => {
        await Promise.all([mutate!.close(), validate!.close()])
      },
    },
  }
}

let made: Promise<DevCertificates> | undefined

/** Certificates of this process: making them takes longer than a case. */
function certificates(): Promise<DevCertificates> {
  made ??= createDevCertificates({ hosts: ['127.0.0.1'] })
  return made
}

/** An object as kubectl submits it in a context with this namespace. */
export function inNamespace(object: JsonObject, namespace: string): JsonObject {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {}
  if (object.kind === 'Namespace') return object
  return { ...object, metadata: { ...metadata, namespace: metadata.namespace ?? namespace } }
}

/** What an API server that holds these objects answers to a GET. */
async function answerAsApiServer(stored: readonly JsonObject[], url: string): Promise<Response> {
  const { pathname, searchParams } = new URL(url)
  const [, group, namespace = '', resource = '', name] =
    /^\/(api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?$/.exec(
      pathname,
    ) ?? []
  const apiVersion = (group ?? '').replace(/^apis?\//, '')
  const session = clusterOf(stored).session({
    signal: AbortSignal.timeout(1000),
    limit: (run) => run(),
    onRequest: () => undefined,
    onBytes: () => undefined,
  })
  const place = { apiVersion, resource, namespace }
  if (name === undefined) {
    const labels = Object.fromEntries(
      (searchParams.get('labelSelector') ?? '')
        .split(',')
        .filter(Boolean)
        .map((term) => term.split('=')),
    )
    return Response.json(await session.list(place, labels))
  }
  const found = await session.get(place, decodeURIComponent(name))
  if (found !== null) return Response.json(found)
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'NotFound',
    code: 404,
    details: { name },
  }
  return Response.json(status, { status: 404 })
}
