import { Command } from 'commander'
import { isAlias, isMap, isNode, isSeq, type Node, visit, type YAMLMap } from 'yaml'
import type { ClusterConfig, Config } from '#functions/config.ts'
import { CLUSTER_NAME } from '#functions/config-schema/cluster.ts'
import { endpointOf, endpointsOf } from '#functions/endpoints.ts'
import { checkConfig, DEFAULT_CONFIG, readYaml, type YamlFile } from '#functions/files.ts'
import { replaceText } from '#functions/write.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { Cli, ExitCode, Format } from './io.ts'
import { formatOption, print } from './output.ts'
import { hashOf, newToken } from './token.ts'
import { textWithHashes } from './token-text.ts'

interface TokenOptions {
  cluster: string
  config: string
  output: Format
  all?: true
}

/** A cluster has at most this many live tokens: the old one and the new one. */
const MAX_TOKENS = 2

/** `countersign tokens`: the caller tokens of a cluster. The file holds hashes only; a token is printed once. */
export function tokensCommand(cli: Cli): Command {
  const tokens = new Command('tokens')
    .description('Make, rotate and revoke the caller token of a cluster.')
    .addHelpText('after', HELP)
  const verbs = [
    ['new', 'Make the first token of a cluster.', issue],
    ['rotate', 'Add a new token and keep the old one working.', rotate],
    ['revoke', 'Drop the older of two tokens.', revoke],
  ] as const
  for (const [name, description, work] of verbs) {
    const command = new Command(name)
      .description(description)
      .requiredOption('--cluster <name>', 'the cluster, as it is named in the URL')
      .option('--config <file>', 'the config that holds the hashes', DEFAULT_CONFIG)
      .addOption(formatOption())
      .addHelpText('after', `\nExamples:\n${EXAMPLES[name].join('\n')}\n`)
    if (name === 'revoke') command.option('--all', 'drop every token: the cluster is locked out')
    command.action(
      cli.action(`tokens ${name}`, async (options: TokenOptions) => {
        checkClusterName(options.cluster)
        return work(cli, options)
      }),
    )
    tokens.addCommand(command)
  }
  return tokens
}

/** A name that no config can hold is a fault of the command line, not of the file. */
function checkClusterName(name: string): void {
  if (new RegExp(CLUSTER_NAME.pattern, 'u').test(name)) return
  const message = `--cluster ${JSON.stringify(name.slice(0, 100))}: ${CLUSTER_NAME.patternErrorMessage}`
  throw new AdmissionError('CONFIG_INVALID', message)
}

async function issue(cli: Cli, options: TokenOptions): Promise<ExitCode> {
  const yaml = await readYaml(options.config)
  const existing = findCluster(yaml, options.cluster)
  if (existing !== undefined && hashesOf(existing).length > 0) {
    throw invalid(
      yaml,
      `cluster ${options.cluster} has a token already; \`tokens rotate\` adds a new one`,
    )
  }
  const token = newToken()
  const config = await setHashes(yaml, existing ?? options.cluster, [await hashOf(token)])
  report(cli, options, {
    yaml,
    config,
    token,
    next: `Deploy, then apply what ${applied(config, options)} writes.`,
  })
  return 0
}

async function rotate(cli: Cli, options: TokenOptions): Promise<ExitCode> {
  const yaml = await readYaml(options.config)
  const cluster = requireCluster(yaml, options.cluster)
  const hashes = hashesOf(cluster)
  if (hashes.length >= MAX_TOKENS) {
    throw invalid(
      yaml,
      `cluster ${options.cluster} has ${hashes.length} live tokens, which is the most; \`tokens revoke\` drops the older one`,
    )
  }
  const token = newToken()
  const config = await setHashes(yaml, cluster, [...hashes, await hashOf(token)])
  const next = `Deploy, apply what ${applied(config, options)} writes, then \`countersign tokens revoke --cluster ${options.cluster}\`.`
  report(cli, options, { yaml, config, token, next })
  return 0
}

async function revoke(cli: Cli, options: TokenOptions): Promise<ExitCode> {
  const yaml = await readYaml(options.config)
  const cluster = requireCluster(yaml, options.cluster)
  const hashes = hashesOf(cluster)
  if (options.all) {
    // A cluster without hashes is no valid config, so the hash of a token that nobody was ever shown takes their place.
    const config = await setHashes(yaml, cluster, [await hashOf(newToken())])
    const next = 'Deploy to lock the cluster out. `tokens rotate` lets it in again.'
    report(cli, options, { yaml, config, revoked: hashes.length, next })
    return 0
  }
  const last = hashes.at(-1)
  if (last === undefined || hashes.length < MAX_TOKENS) {
    throw invalid(
      yaml,
      `cluster ${options.cluster} has one token; \`tokens rotate\` first, or \`--all\` to lock it out`,
    )
  }
  const config = await setHashes(yaml, cluster, [last])
  report(cli, options, {
    yaml,
    config,
    revoked: 1,
    next: 'Deploy: from then on only the newer token is accepted.',
  })
  return 0
}

/** What writes all that holds a token of the cluster: webhooks of namespaced policies have URLs of their own, and of each policy its name. */
function applied(config: Config, { cluster: name, config: file }: TokenOptions): string {
  const asks = imageReviewOf(config, name) ? ' --image-policy' : ''
  const where = file === DEFAULT_CONFIG ? '' : ` --config ${shellWord(file)}`
  return `\`countersign webhooks --cluster ${name}${where} --token-file -${asks}\` with this token`
}

/** A text as one word of a command line. */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

function imageReviewOf(config: Config, cluster: string): ClusterConfig['imageReview'] {
  return clusterIn(config, cluster)?.imageReview
}

function clusterIn({ clusters }: Config, cluster: string): ClusterConfig | undefined {
  return clusters.find(({ name }) => name === cluster)
}

function report(
  cli: Cli,
  options: TokenOptions,
  outcome: { yaml: YamlFile; config: Config; token?: string; revoked?: number; next: string },
): void {
  const { token, next, yaml, config } = outcome
  const { mutate, validate, imageReview } = endpointsOf(
    endpointOf(config, clusterIn(config, options.cluster)),
  )
  const base = `v1/${options.cluster}/${token}`
  const urls = {
    mutate: `${mutate}/${base}/ivpol/mutate`,
    validate: `${validate}/${base}/ivpol/validate`,
    ...(imageReviewOf(config, options.cluster) && {
      imageReview: `${imageReview}/${base}/image-review`,
    }),
  }
  const data =
    token === undefined
      ? { cluster: options.cluster, revoked: outcome.revoked }
      : { cluster: options.cluster, token, ...urls }
  const { bold, dim } = cli.io.colors
  print(cli.io, options.output, { ...data, config: yaml.file }, () =>
    token === undefined
      ? `${yaml.file}: ${outcome.revoked} token(s) of ${options.cluster} revoked.\n${next}\n`
      : [
          `${bold('token')}     ${token}  ${dim('shown once; the file holds its hash')}`,
          `${bold('mutate')}    ${urls.mutate}`,
          `${bold('validate')}  ${urls.validate}`,
          ...(urls.imageReview === undefined ? [] : [`${bold('images')}    ${urls.imageReview}`]),
          `${yaml.file} written. ${next}\n`,
        ].join('\n'),
  )
}

function findCluster(yaml: YamlFile, name: string): YAMLMap | undefined {
  const clusters = yaml.document.get('clusters')
  if (!isSeq(clusters)) return undefined
  const cluster = clusters.items.filter(isMap).find((item) => item.get('name') === name)
  const tokens = cluster?.get('tokens', true)
  if (!isNode(tokens) || !isShared(tokens)) return cluster
  throw invalid(
    yaml,
    `the tokens of cluster ${name} are written with an anchor (&) or an alias (*), by which another cluster may have the same: write the hashes out`,
  )
}

/** True for a node that is, or has, what other places of the document may be as well: whoever changes it would change those. */
function isShared(node: Node): boolean {
  let found = false
  visit(node, {
    Node: (_, each) => {
      found ||= isAlias(each) || each.anchor !== undefined
    },
  })
  return found
}

function requireCluster(yaml: YamlFile, name: string): YAMLMap {
  const cluster = findCluster(yaml, name)
  if (cluster !== undefined) return cluster
  throw invalid(yaml, `no cluster ${name}; \`tokens new\` adds it`)
}

function hashesOf(cluster: YAMLMap): string[] {
  const tokens = cluster.get('tokens')
  // toJSON of a sequence is an array; whether its items are hashes is checked before anything is written.
  return isSeq(tokens) ? (tokens.toJSON() as string[]) : []
}

/** The config of the file with these hashes, written unless it is no valid one: then throws `CONFIG_INVALID` and writes nothing. */
async function setHashes(
  yaml: YamlFile,
  cluster: YAMLMap | string,
  hashes: readonly string[],
): Promise<Config> {
  const text = textWithHashes(yaml, cluster, hashes)
  const config = checkConfig(yaml)
  await replaceText(yaml.file, text)
  return config
}

function invalid(yaml: YamlFile, message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `${yaml.file}: ${message}`)
}

const EXAMPLES = {
  new: ['  $ countersign tokens new --cluster prod-eu'],
  rotate: ['  $ countersign tokens rotate --cluster prod-eu --config infra/countersign.yaml'],
  revoke: [
    '  $ countersign tokens revoke --cluster prod-eu',
    '  $ countersign tokens revoke --cluster prod-eu --all',
  ],
} as const

const HELP = `
Examples:
${Object.values(EXAMPLES).flat().join('\n')}
`
