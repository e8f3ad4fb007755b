import { existsSync } from 'node:fs'
import path from 'node:path'
import { Command } from 'commander'
import type { TrustEntry } from '#functions/config.ts'
import { checkConfig, DEFAULT_CONFIG, readYaml } from '#functions/files.ts'
import { changesOf, type Material, materialsOf } from '#functions/trust/material.ts'
import {
  metadataFolder,
  type RepositoryState,
  readIfThere,
  readState,
  stateOf,
} from '#functions/trust/metadata.ts'
import { checkMirror, mirrorOf, PUBLIC_GOOD } from '#functions/trust/mirror.ts'
import { type Refreshed, refresh } from '#functions/trust/refresh.ts'
import { publicGoodSeed } from '#functions/trust/seed.ts'
import { concerns } from '#functions/trust/store.ts'
import { writeWhole } from '#functions/write.ts'
import { equal } from '#shared/bytes.ts'
import { AdmissionError, toAdmissionError } from '#shared/errors.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { formatOption, print } from './output.ts'
import { type TrustReport, trustText } from './trust-text.ts'

interface TrustOptions {
  config?: string
  mirror?: string
  root?: string
  out?: string
  check?: true
  offline?: true
  output: Format
}

/** One trusted root to look after; paths as seen from here. */
interface Target {
  mirror: string
  file: string
  root?: string
}

const DEFAULT_OUT = 'trusted_root.json'

/** `countersign trust`: the trusted roots on disk, as their TUF repositories have them now. Nothing else of Countersign asks them. */
export function trustCommand(cli: Cli): Command {
  return new Command('trust')
    .description('Refresh Sigstore trusted roots through TUF: those of the config, or one.')
    .option('--config <file>', `the config with the trust list (default: ${DEFAULT_CONFIG})`)
    .option('--mirror <url>', `one TUF repository (default: ${PUBLIC_GOOD})`)
    .option('--root <file>', 'the TUF root that is trusted to begin with')
    .option(
      '--out <file>',
      `where the trusted root goes (default: as in the config, or ${DEFAULT_OUT})`,
    )
    .option('--check', 'write nothing; exit 1 for a file that is outdated or about to end')
    .option('--offline', 'ask nobody: report on what is there, or write the copy of this package')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(cli.action('trust', (options: TrustOptions) => trust(cli.io, options)))
}

async function trust(io: Io, options: TrustOptions): Promise<ExitCode> {
  const now = Date.now()
  const reports: TrustReport[] = []
  for (const target of await targetsOf(options)) {
    const work = options.offline ? offline(target, options, now) : online(io, target, options, now)
    reports.push(await work)
  }
  print(io, options.output, { trust: reports }, () =>
    reports.map((each) => trustText(io, each)).join(''),
  )
  return reports.every((report) => isFine(report, options)) ? 0 : 1
}

function isFine({ status, notes }: TrustReport, { check }: TrustOptions): boolean {
  if (check) return status === 'unchanged' && notes.length === 0
  return status === 'unchanged' || status === 'updated'
}

/** The one that was named, or all of the config; without either, the public-good one. */
async function targetsOf(options: TrustOptions): Promise<Target[]> {
  const { mirror, root, out } = options
  const configured = await configTargets(options.config)
  if (mirror === undefined && root === undefined && out === undefined) {
    return configured.length > 0 ? configured : [{ mirror: PUBLIC_GOOD, file: DEFAULT_OUT }]
  }
  const wanted = checkMirror(mirror)
  const entry = configured.find((target) => target.mirror === wanted)
  const file = out ?? entry?.file ?? DEFAULT_OUT
  const start = root ?? entry?.root
  return [{ mirror: wanted, file, ...(start === undefined ? {} : { root: start }) }]
}

/** What the config lists. Its files are not looked at: they are what this command is here to repair. */
async function configTargets(file: string | undefined): Promise<Target[]> {
  if (file === undefined && !existsSync(DEFAULT_CONFIG)) return []
  const config = file ?? DEFAULT_CONFIG
  const { trust: entries = [] } = checkConfig(await readYaml(config))
  const from = (name: string) => path.join(path.dirname(config), name)
  return entries.map(({ mirror, trustedRoot, root }: TrustEntry) => ({
    mirror: mirrorOf(mirror),
    file: from(trustedRoot),
    ...(root === undefined ? {} : { root: from(root) }),
  }))
}

async function online(
  io: Io,
  target: Target,
  options: TrustOptions,
  now: number,
): Promise<TrustReport> {
  const { mirror, file } = target
  const root = await rootOf(target)
  const refreshed = await readable(await refresh({ mirror, root, file, signal: io.signal }))
  if (refreshed.status !== 'verified') {
    const metadata = await readState(metadataFolder(file))
    return { mirror, file, ...refreshed, changes: [], metadata, notes: [] }
  }
  const { trustedRoot, state, keep } = refreshed
  const before = await readIfThere(file)
  const isSame = before !== undefined && equal(before, trustedRoot)
  if (!options.check) await keep()
  return {
    mirror,
    file,
    status: isSame ? 'unchanged' : options.check ? 'outdated' : 'updated',
    changes: isSame ? [] : changesOf(materialsIn(before), materialsOf(trustedRoot)),
    metadata: state,
    notes: concerns(trustedRoot, state, now),
  }
}

/** The same, unless the functions could not read the trusted root: then what is on disk stays. */
async function readable(refreshed: Refreshed): Promise<Refreshed> {
  if (refreshed.status !== 'verified') return refreshed
  try {
    await loadTrustedRoot(new Uint8Array(refreshed.trustedRoot))
    return refreshed
  } catch (thrown) {
    const reason = toAdmissionError(thrown, 'reading it').message
    return { status: 'refused', reason: `what it publishes is not usable here: ${reason}` }
  }
}

/** Where trust begins: the file that was named, the package's own copy, or what an earlier refresh began with. */
async function rootOf({ mirror, file, root }: Target): Promise<Uint8Array> {
  if (root !== undefined) {
    const bytes = await readIfThere(root)
    if (bytes !== undefined && stateOf(bytes, 'root') !== undefined) return bytes
    const found = bytes === undefined ? 'there is no such file' : 'it is no TUF root'
    throw new AdmissionError('CONFIG_INVALID', `root ${root}: ${found}`)
  }
  if (mirror === PUBLIC_GOOD) return publicGoodSeed().root
  const kept = await readIfThere(path.join(metadataFolder(file), 'root.json'))
  if (kept !== undefined) return kept
  const message = `${mirror}: its first refresh needs --root, its TUF root from a source you trust`
  throw new AdmissionError('CONFIG_INVALID', message)
}

async function offline(target: Target, options: TrustOptions, now: number): Promise<TrustReport> {
  const { mirror, file } = target
  const report = await onDisk(target, now)
  if (report.status !== 'missing' || options.check || mirror !== PUBLIC_GOOD) return report
  const { root, trustedRoot } = publicGoodSeed()
  await writeWhole([
    { file, content: trustedRoot },
    // All that tells later how old it is.
    { file: path.join(metadataFolder(file), 'root.json'), content: root },
  ])
  const state = stateOf(root, 'root')
  const metadata: RepositoryState = state === undefined ? {} : { root: state }
  const changes = changesOf([], materialsOf(trustedRoot))
  return {
    mirror,
    file,
    status: 'updated',
    changes,
    metadata,
    notes: concerns(trustedRoot, metadata, now),
  }
}

/** What there is, without asking anybody. Throws `CONFIG_INVALID` when the file is no trusted root. */
async function onDisk({ mirror, file }: Target, now: number): Promise<TrustReport> {
  const bytes = await readIfThere(file)
  const metadata = await readState(metadataFolder(file))
  if (bytes === undefined) {
    return {
      mirror,
      file,
      status: 'missing',
      reason: 'there is no such file',
      changes: [],
      metadata,
      notes: [],
    }
  }
  try {
    await loadTrustedRoot(new Uint8Array(bytes))
  } catch (cause) {
    const message = `${file}: ${toAdmissionError(cause, 'reading it').message}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause })
  }
  return {
    mirror,
    file,
    status: 'unchanged',
    changes: [],
    metadata,
    notes: concerns(bytes, metadata, now),
  }
}

/** What an earlier trusted root names; nothing when it is none, so that all of the newer one is new. */
function materialsIn(trustedRoot: Uint8Array | undefined): Material[] {
  if (trustedRoot === undefined) return []
  try {
    return materialsOf(trustedRoot)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return []
    throw thrown
  }
}

const HELP = `
The functions never ask a TUF repository: a trusted root is part of what \`countersign build\` makes.
Beside trusted_root.json the metadata it came with is kept in trusted_root.tuf; commit both. A later
refresh refuses a repository that is older. Nothing is written unless everything verifies.

Exit codes: 0 unchanged or updated, 1 the repository does not verify, has expired or does not answer
(with --check also: the file is outdated, missing, or ends soon), 2 bad input.

GitHub's repository, which vouches for attestations of private repositories, is in no package: its
first root.json is in the source of GitHub's own command line, below
pkg/cmd/attestation/verification/embed.

Examples:
  $ countersign trust
  $ countersign trust --out infra/trusted_root.json
  $ countersign trust --mirror https://tuf-repo.github.com --root github-root.json --out infra/github.json
  $ countersign trust --check --output json
  $ countersign trust --offline --out trusted_root.json
`
