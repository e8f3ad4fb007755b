import path from 'node:path'
import { Command } from 'commander'
import { type Deployment, policiesOf } from '#functions/deployment.ts'
import { knownFileReason } from '#functions/file-reason.ts'
import { DEFAULT_CONFIG } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { kmsFrom } from '#functions/ports.ts'
import { makeFolder, missingFolders, removeAll } from '#functions/write.ts'
import { AdmissionError } from '#shared/errors.ts'
import { policyKeys } from '#shared/policy/types.ts'
import { budgetOf, compare, kilobytes, type Measured, measure } from './budgets.ts'
import { type BundleReport, bundleFunctions, noWorkerBecause } from './bundle.ts'
import { CEL_BUDGETS, type CelBundle, measureCelBundles } from './cel-bundle.ts'
import { onlyClusters } from './clusters.ts'
import { readDeployment } from './deployment.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { faultList, formatOption, print } from './output.ts'

interface BuildCommandOptions {
  config: string
  out: string
  cluster?: readonly string[]
  budgets?: true
  pinKeys?: true
  output: Format
}

/** `countersign build`: config and policies, checked, to bundles that hold everything they need. */
export function buildCommand(cli: Cli): Command {
  return new Command('build')
    .description('Check config and policies and build the Lambda and Worker bundles around them.')
    .option('--config <file>', 'the config', DEFAULT_CONFIG)
    .option('--out <folder>', 'where the bundles go', 'dist')
    .option('--cluster <name...>', 'only these, with their policies (default: all)')
    .option('--pin-keys', 'fetch public keys from AWS KMS now, and put them in')
    .option('--budgets', 'measure load times, too, and fail past a budget')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(cli.action('build', (options: BuildCommandOptions) => run(cli.io, options)))
}

async function run(io: Io, options: BuildCommandOptions): Promise<ExitCode> {
  const { cluster, config, pinKeys } = options
  const { deployment: read, policies, warnings } = await readDeployment(config)
  const wanted = cluster === undefined ? read : await onlyClusters(read, cluster, config)
  const deployment = pinKeys ? await withKeys(io, wanted) : wanted
  if (warnings.length > 0) io.err(`notes on ${policies}:\n${faultList(warnings)}`)
  const withoutWorker = noWorkerBecause(deployment)
  if (withoutWorker !== undefined) io.err(`${withoutWorker}\n`)
  if (deployment.config.policyBundle?.source.kind === 'r2') io.err(`${R2_NOTE}\n`)
  const reports = await writeBundles(deployment, options.out)
  const bundles: Measured[] = []
  // One after the other: two cold loads at once would measure each other.
  for (const report of reports) {
    bundles.push(options.budgets ? await measure(report) : compare(report))
  }
  const cel = options.budgets ? await measureCelBundles() : []
  const data = {
    deployment: deployment.hash,
    policies: policyKeys(deployment.policies),
    clusters: deployment.config.clusters.map(({ name }) => name),
    policySets: Object.fromEntries(
      deployment.config.clusters.map((cluster) => [
        cluster.name,
        policiesOf(deployment, cluster, nodeHash).policySet,
      ]),
    ),
    bundles: bundles.map((bundle) => ({ ...bundle, entry: path.relative('', bundle.entry) })),
    ...(options.budgets ? { cel } : {}),
  }
  print(io, options.output, data, () => text(io, data))
  return options.budgets && [...bundles, ...cel].some(({ over }) => over.length > 0) ? 1 : 0
}

const R2_NOTE =
  'policyBundle.r2 is for the Worker: the Lambda functions cannot read it, and count as functions without a bundle'

/** The deployment with its keys, fetched with the credentials of whoever builds. */
async function withKeys(io: Io, read: Deployment): Promise<Deployment> {
  const { pinKeys } = await import('./pin-keys.ts')
  const deployment = await pinKeys(read, { kms: kmsFrom({ env: io.env }), now: Date.now })
  const { fetchedAt = '', keys = [] } = deployment.config.kms.pinned ?? {}
  io.err(
    `pinned ${counted(
      keys.map(({ keyId }) => keyId),
      'key',
      'keys',
    )} as of ${fetchedAt}: a key that is disabled later counts until the next build\n`,
  )
  return deployment
}

/** Throws `CONFIG_INVALID` where nothing can be written to the folder. */
async function writeBundles(deployment: Deployment, outDir: string): Promise<BundleReport[]> {
  if (outDir.trim() === '') {
    throw new AdmissionError('CONFIG_INVALID', '--out: expected the name of a folder')
  }
  const begun = await missingFolders(outDir)
  try {
    // Before anything is bundled, which takes a while.
    await makeFolder(outDir)
    return await bundleFunctions({ deployment, outDir })
  } catch (thrown) {
    await removeAll(begun)
    const reason = thrown instanceof AdmissionError ? thrown.message : knownFileReason(thrown)
    if (reason === undefined) throw thrown
    const message = `--out ${JSON.stringify(outDir)}: ${reason}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause: thrown })
  }
}

interface BuildData {
  deployment: string
  policies: readonly string[]
  clusters: readonly string[]
  /** By cluster, as the audit annotation image-policy-set of its answers has it. */
  policySets: Readonly<Record<string, string>>
  bundles: readonly Measured[]
  cel?: readonly CelBundle[]
}

function text(io: Io, { deployment, policies, clusters, bundles, cel = [] }: BuildData): string {
  const { bold, dim } = io.colors
  const head = `deployment ${deployment.slice(0, 12)}: ${counted(policies, 'policy', 'policies')}, ${counted(clusters, 'cluster', 'clusters')}`
  const rows = bundles.map((bundle) => row(io, bundle))
  const size = kilobytes(bundles[0]?.deploymentBytes ?? 0)
  const legend = `start: loaded at the start; all: every chunk; KMS: its client, loaded when first needed; the deployment adds ${size}`
  const celRows = cel.map((bundle) => celRow(io, bundle))
  return `${bold(head)}\n${rows.join('')}${dim(legend)}\n${celRows.join('')}`
}

function celRow(io: Io, { name, bytes, loadMs, over }: CelBundle): string {
  const budget = CEL_BUDGETS[name]
  const size = budget.bytes === undefined ? '' : ` of ${kilobytes(budget.bytes)}`
  const load = `load ${loadMs.toFixed(1)} ms of ${budget.loadMs} ms`
  return `  ${name.padEnd(16)} ${kilobytes(bytes)}${size}, ${load}\n${overText(io, over)}`
}

function overText(io: Io, over: readonly string[]): string {
  return over.map((what) => `    ${io.colors.red(`over budget: ${what}`)}\n`).join('')
}

function row(io: Io, bundle: Measured): string {
  const { name, entry, eagerBytes, ownBytes, totalBytes, loadMs, over } = bundle
  const budget = budgetOf(bundle)
  const kms = totalBytes - ownBytes
  const sizes = [
    `start ${kilobytes(eagerBytes)}${limit(budget.eagerBytes)}`,
    `all ${kilobytes(ownBytes)}${limit(budget.ownBytes)}`,
    kms > 0 ? `with KMS ${kilobytes(totalBytes)}${limit(budget.totalBytes)}` : 'no KMS client',
    ...(loadMs === undefined ? [] : [`load ${loadMs.toFixed(1)} ms of ${budget.loadMs} ms`]),
  ]
  return `  ${name.padEnd(16)} ${sizes.join(', ')}\n    ${io.colors.dim(entry)}\n${overText(io, over)}`
}

function limit(bytes: number | undefined): string {
  return bytes === undefined ? '' : ` of ${kilobytes(bytes)}`
}

function counted(items: readonly string[], one: string, many: string): string {
  return `${items.length} ${items.length === 1 ? one : many} (${items.join(', ')})`
}

const HELP = `
Every fault of the config and the policies is reported with its file, line and path, and nothing is
built. The bundles hold names of secrets, never secrets: Lambda and Node find them in the
environment, Workers in their bindings.

Examples:
  $ countersign build
  $ countersign build --config prod/countersign.yaml --out build/prod
  $ countersign build --cluster prod-eu --out build/prod-eu   # functions of its own for one cluster
  $ countersign build --budgets --output json
  $ countersign build --pin-keys --out build/edge     # functions need no credentials for these keys
`
