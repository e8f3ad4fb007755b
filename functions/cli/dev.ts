import { existsSync, type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import { Hono } from 'hono/tiny'
import type { App } from '#functions/app.ts'
import { trustingFetch } from '#functions/cluster/https.ts'
import { compose } from '#functions/compose.ts'
import type { Config } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { DEFAULT_CONFIG } from '#functions/files.ts'
import { ALL_FLOWS } from '#functions/flows.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { type NodeServer, type NodeServerOptions, startNodeServer } from '#functions/node.ts'
import { toBase64, utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { policyKey, policyKeys } from '#shared/policy/types.ts'
import type { LogPort } from '#shared/ports.ts'
import { type DeploymentFiles, readDeployment } from './deployment.ts'
import { type DevIdentity, devIdentity } from './dev-identity.ts'
import { devLog } from './dev-log.ts'
import type { Cli, ExitCode, Io } from './io.ts'
import { faultList, printError } from './output.ts'
import { hashOf } from './token.ts'

interface DevOptions {
  config: string
  port: string
  host?: string[]
  state: string
}

/** Names under which a machine calls itself, also from its containers. */
const HOSTS = ['localhost', '127.0.0.1', '::1', 'host.docker.internal']
/** Editors write a file in several steps; this long without another one is the end of it. Milliseconds. */
const SETTLE_MS = 100
const SEAL_SECRET = 'COUNTERSIGN_DEV_SEAL'

/** `countersign dev`: both functions over TLS on this machine, with the policies as they are on disk. */
export function devCommand(cli: Cli): Command {
  return new Command('dev')
    .description('Serve both functions over HTTPS on this machine and reload policies on change.')
    .option('--config <file>', 'the config', DEFAULT_CONFIG)
    .option('--port <number>', 'port to listen on, on every interface', '8443')
    .option('--host <name...>', 'more names and addresses for the certificate')
    .option('--state <folder>', 'where the certificate and token are kept', '.countersign')
    .addHelpText('after', HELP)
    .action(cli.action('dev', (options: DevOptions) => dev(cli.io, options)))
}

async function dev(io: Io, options: DevOptions): Promise<ExitCode> {
  const port = portOf(options.port)
  const files = await readDeployment(options.config)
  const identity = await devIdentity(options.state, [...HOSTS, ...(options.host ?? [])])
  const server = new DevServer(io, identity)
  await server.use(files)
  const { certificates } = identity
  const listening = await listen({ app: server.front, tls: certificates, port })
  io.out(introduction(io, { files, identity, port: listening.port, state: options.state }))
  const named = [options.config, ...files.trustedRoots]
  const stopWatching = watchFiles(named, files.policies, () => server.reload(options.config))
  await aborted(io.signal)
  stopWatching()
  await listening.close()
  return 0
}

async function listen(options: NodeServerOptions & { port: number }): Promise<NodeServer> {
  try {
    return await startNodeServer(options)
  } catch (thrown) {
    const reasons: Record<string, string> = {
      EADDRINUSE: 'is in use',
      EACCES: 'is not ours to take',
    }
    const reason = reasons[(thrown as { code?: string }).code ?? '']
    if (reason === undefined) throw thrown
    const message = `port ${options.port} ${reason}; choose another with --port`
    throw new AdmissionError('CONFIG_INVALID', message, { cause: thrown })
  }
}

/** The app of the last deployment that loaded, behind one that stays the same. */
class DevServer {
  readonly front: App = new Hono()
  readonly #io: Io
  readonly #identity: DevIdentity
  readonly #env: Readonly<Record<string, unknown>>
  readonly #log: LogPort
  #app: App | undefined

  constructor(io: Io, identity: DevIdentity) {
    this.#io = io
    this.#identity = identity
    this.#log = devLog(io)
    this.#env = { ...io.env, [SEAL_SECRET]: toBase64(crypto.getRandomValues(new Uint8Array(32))) }
    this.front.all('*', (c) => this.#app?.fetch(c.req.raw, c.env) ?? c.body(null, 503))
  }

  async use({ deployment, warnings }: DeploymentFiles): Promise<void> {
    const config = await forDevelopment(deployment.config, this.#identity.token)
    const local: Deployment = await createDeployment(config, deployment.policies)
    const platform = {
      env: this.#env,
      log: this.#log,
      hash: nodeHash,
      trustingFetch,
      maxBodyBytes: MAX_BODY_BYTES,
      awsCredentials: async () => (await import('#functions/kms.ts')).defaultAwsCredentials(),
    }
    this.#app = compose(local, platform, ALL_FLOWS)
    this.#io.err(faultList(warnings))
  }

  /** Takes over what is on disk now; with a fault in it, the last good deployment goes on. */
  async reload(config: string): Promise<void> {
    try {
      const files = await readDeployment(config)
      await this.use(files)
      const names = policyKeys(files.deployment.policies).join(', ')
      this.#io.out(this.#io.colors.green(`reloaded: ${names || 'no policy'}\n`))
    } catch (thrown) {
      printError(this.#io, 'not reloaded, the last good policies stay', thrown)
    }
  }
}

/**
 * The config with one more token for every cluster, and with a sealing key that lives as long as this process: seals of a
 * development machine must not count in production, and need no KMS.
 */
async function forDevelopment(config: Config, token: string): Promise<Config> {
  const hash = await hashOf(token)
  const clusters = config.clusters.map((cluster) => ({
    ...cluster,
    tokens: [...cluster.tokens, hash],
  }))
  const key = { kind: 'secrets', secrets: [{ id: 'dev', env: SEAL_SECRET }] } as const
  // What is on disk is what somebody works on.
  const { policyBundle: _, ...rest } = config
  return { ...rest, clusters, outcomes: { ...config.outcomes, key } }
}

/** Calls `changed` after every change of these files or of a policy, never twice at once. Returns what ends it. */
function watchFiles(
  files: readonly string[],
  policies: string,
  changed: () => Promise<void>,
): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  let watchers: FSWatcher[] = []
  // Folders are watched, each by itself: editors replace files instead of writing into them, which Node's recursive
  // watch on Linux sees only once. New folders get their watch with the change that made them.
  const rewatch = () => {
    for (const watcher of watchers) watcher.close()
    watchers = [
      ...files
        .filter(isFolderThere)
        .map((name) =>
          watch(path.dirname(name), (_, file) => file === path.basename(name) && soon()),
        ),
      ...foldersOf(policies).map((folder) => watch(folder, soon)),
    ]
  }
  const soon = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = running.then(rewatch).then(changed)
    }, SETTLE_MS)
  }
  rewatch()
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers) watcher.close()
  }
}

const isFolderThere = (file: string) => existsSync(path.dirname(file))

/** A folder with all below it; for a file, or for what is gone, the folder it is in. */
function foldersOf(where: string): string[] {
  if (!statSync(where, { throwIfNoEntry: false })?.isDirectory()) return [path.dirname(where)]
  const below = readdirSync(where, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(entry.parentPath, entry.name))
  return [where, ...below]
}

function introduction(
  io: Io,
  {
    files,
    identity,
    port,
    state,
  }: { files: DeploymentFiles; identity: DevIdentity; port: number; state: string },
): string {
  const { bold, dim } = io.colors
  const { clusters } = files.deployment.config
  const names = policyKeys(files.deployment.policies).join(', ') || 'none'
  const namespaced = new Set(
    files.deployment.policies.filter((each) => each.namespace !== undefined).map(policyKey),
  )
  const urls = clusters.flatMap(({ name, policies, imageReview }) => {
    const base = `https://localhost:${port}/v1/${name}/${identity.token}`
    const granted = policies ?? [...namespaced]
    const routes = granted.some((key) => namespaced.has(key)) ? ['ivpol', 'nivpol'] : ['ivpol']
    const lines = routes.flatMap((route) => [
      `  mutate    ${base}/${route}/mutate`,
      `  validate  ${base}/${route}/validate`,
    ])
    const reviews = imageReview === undefined ? [] : [`  images    ${base}/image-review`]
    return [bold(`cluster ${name}`), ...lines, ...reviews]
  })
  return [
    `policies  ${names} ${dim(`(${files.policies}, reloaded on change)`)}`,
    ...urls,
    `${bold('caBundle')} ${dim(`(also as PEM in ${path.join(state, 'ca.pem')})`)}`,
    toBase64(utf8(identity.certificates.ca)),
    dim('Seals are made with a key of this process. Stop with Ctrl-C.'),
    '',
  ].join('\n')
}

function portOf(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new AdmissionError('CONFIG_INVALID', `--port ${text}: expected a number from 0 to 65535`)
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

const HELP = `
Every cluster of the config also accepts the token printed here, which is kept with the certificate
so that both stay the same after a restart. When a policy or the config has a fault, it is printed
and the last good set goes on.

Examples:
  $ countersign dev
  $ countersign dev --config infra/countersign.yaml --port 9443 --host 192.168.1.20
`
