import { Command, Option } from 'commander'
import { DEFAULT_CONFIG } from '#functions/files.ts'
import { AdmissionError, unreachable } from '#shared/errors.ts'
import { DEFAULT_BASE_NAME, UPSTREAM_BASE_NAME } from '#shared/webhook/names.ts'
import { type Cli, type ExitCode, FORMATS, type Format, type Io } from './io.ts'
import { faultList } from './output.ts'
import { filesOf, type OutputFile, yamlOf } from './webhooks/files.ts'
import { FLAVOURS, type Plan, type PlanOptions, planWebhooks } from './webhooks/plan.ts'
import { planText } from './webhooks/text.ts'
import { TOKEN_VARIABLE } from './webhooks/token.ts'
import { differingFiles, staleFiles, writeFiles } from './webhooks/write.ts'

interface WebhooksOptions extends PlanOptions {
  output?: Format
  out?: string
  check?: true
}

/** `countersign webhooks`: the webhook configurations of one cluster, from its policies. */
export function webhooksCommand(cli: Cli): Command {
  return new Command('webhooks')
    .description('Write what one cluster has to apply: webhook configurations for its policies.')
    .requiredOption('--cluster <name>', 'the cluster, as the config names it')
    .option('--config <file>', 'the config', DEFAULT_CONFIG)
    .option(
      '--token-file <file>',
      'the token of the cluster, - for standard input (default: $COUNTERSIGN_TOKEN)',
    )
    .option(
      '--token-placeholder [text]',
      `write this in its place, \${${TOKEN_VARIABLE}} when absent`,
    )
    .addOption(
      new Option(
        '--flavour <flavour>',
        'url: objects for kubectl. static: files of manifest-based admission. kustomize: a base. image-policy: files of ImagePolicyWebhook',
      )
        .choices(FLAVOURS)
        .default('url'),
    )
    .option(
      '--base-name <name>',
      `what names end in; ${UPSTREAM_BASE_NAME} names all as Kyverno does`,
      DEFAULT_BASE_NAME,
    )
    .option(
      '--ca-bundle <file>',
      'PEM certificates that the endpoint is trusted by (default: those of the config)',
    )
    .option(
      '--service <namespace/name>',
      'call a Service of the cluster that leads to the endpoint, :port after it',
    )
    .option(
      '--kubernetes <version>',
      'version of the API server, such as 1.36 (default: that of the config)',
    )
    .option('--companion', 'policies of the API server itself about the annotations, too')
    .option('--image-policy', 'files of ImagePolicyWebhook, too, for clusters with imageReview')
    .option('--force-ignore', 'fail open everywhere, whatever policies say')
    .option(
      '--no-safe-selectors',
      'ask about kube-system, kube-node-lease and break-glass namespaces, too',
    )
    .option(
      '--server-folder <folder>',
      'where files of the API server will be on its machine',
      '/etc/kubernetes/countersign',
    )
    .option('--out <folder>', 'write files')
    .option('--check', 'write nothing: exit with 1 when the files in --out are not these')
    .addOption(
      new Option('-o, --output <format>', 'how to print (default: yaml, with --out text)').choices(
        FORMATS,
      ),
    )
    .addHelpText('after', HELP)
    .action(cli.action('webhooks', (options: WebhooksOptions) => run(cli.io, options)))
}

async function run(io: Io, options: WebhooksOptions): Promise<ExitCode> {
  const { out, check, serverFolder } = options
  if (out?.trim() === '') {
    throw new AdmissionError('CONFIG_INVALID', '--out: expected the name of a folder')
  }
  if (check && out === undefined) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      '--check compares with the files of --out: name the folder',
    )
  }
  if (!/^\/[^\s\p{C}]*[^\s\p{C}/]$/u.test(serverFolder)) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      `--server-folder ${serverFolder}: expected an absolute path, as API servers do`,
    )
  }
  const plan = await planWebhooks(io, options, Date.now())
  const files = filesOf(plan, serverFolder)
  if (out !== undefined && check) return compare(io, files, out)
  if (out !== undefined) {
    await writeFiles(out, files)
    for (const name of await staleFiles(out, files)) {
      io.err(`${out}/${name} is left from an earlier run: remove it\n`)
    }
  }
  const format = options.output ?? (out === undefined ? 'yaml' : 'text')
  print(io, format, { plan, files, out })
  return 0
}

async function compare(io: Io, files: readonly OutputFile[], out: string): Promise<ExitCode> {
  const differing = await differingFiles(out, files)
  const stale = await staleFiles(out, files)
  for (const name of differing) io.out(`${out}/${name} is not what would be written\n`)
  for (const name of stale) io.out(`${out}/${name} would not be written\n`)
  if (differing.length + stale.length > 0) return 1
  io.out(`${out}: all ${files.length} files are what would be written\n`)
  return 0
}

function print(
  io: Io,
  format: Format,
  { plan, files, out }: { plan: Plan; files: readonly OutputFile[]; out: string | undefined },
): void {
  // What goes to kubectl: the rest is for machines with API servers, and would be refused.
  const printed =
    plan.flavour === 'static' || plan.flavour === 'image-policy'
      ? files
      : files.filter(({ name, isForServer }) => !isForServer && name !== 'kustomization.yaml')
  switch (format) {
    case 'text':
      io.out(planText(io, plan, files, out))
      return
    case 'yaml':
      io.err(aloud(plan, files, printed, out))
      io.out(printed.map(yamlOf).join('---\n'))
      return
    case 'json': {
      io.err(aloud(plan, files, printed, out))
      const items = printed.flatMap(({ objects }) => objects)
      io.out(`${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)}\n`)
      return
    }
    default:
      unreachable(format)
  }
}

function aloud(
  { notes }: Plan,
  files: readonly OutputFile[],
  printed: readonly OutputFile[],
  out: string | undefined,
): string {
  const rest = files.filter((file) => !printed.includes(file)).map(({ name }) => name)
  const hidden =
    rest.length === 0 || out !== undefined
      ? ''
      : `not printed: ${rest.join(', ')}; --out writes them\n`
  return `${faultList(notes)}${hidden}`
}

const HELP = `
The config has only hashes of tokens, and the URLs of webhooks hold a token: give the one of this
cluster, or a placeholder for whoever deploys. Policies are those of the cluster. What the API
server would refuse is not printed, and every fault is told at once.

What is never asked about: kube-system, kube-node-lease, and namespaces with the label
countersign.dev/break-glass, so that a cluster can start and be mended while the functions are down.
webhooks of the cluster in the config adds selectors of its own.

A cluster with mtls or bearer in the config gets an AdmissionConfiguration and a kubeconfig beside
its webhooks, which take an API server that one can start with them. So does ImagePolicyWebhook, for
clusters with imageReview: --flavour image-policy writes its files alone, --image-policy beside the
webhooks of another flavour, with all plugins in the one AdmissionConfiguration that an API server
reads. It fails closed, and asks about Pods alone, in every namespace.

Exit codes: 0 written, 1 with --check: other files, 2 faults, nothing is written.

Examples:
  $ countersign webhooks --cluster prod-eu --token-file token.txt | kubectl apply -f -
  $ countersign webhooks --cluster prod-eu --token-placeholder --flavour kustomize --out deploy/prod-eu
  $ countersign webhooks --cluster prod-eu --token-placeholder --flavour kustomize --out deploy/prod-eu --check
  $ countersign webhooks --cluster edge --token-file - --flavour static --kubernetes 1.37 --out edge
  $ countersign webhooks --cluster edge --token-file - --flavour image-policy --out edge
  $ countersign webhooks --cluster prod-eu --token-placeholder --companion -o text
`
