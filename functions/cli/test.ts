import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import { type ConfigFiles, DEFAULT_CONFIG, readConfig } from '#functions/files.ts'
import { loadTrust } from '#functions/trust/store.ts'
import type { LoadOptions } from '#shared/policy/load.ts'
import type { FetchPort } from '#shared/ports.ts'
import type { Cli, ExitCode, Io } from './io.ts'
import { faultList } from './output.ts'
import { clusterOf } from './test/cluster.ts'
import { findTests, TEST_FILE, type TestDocument } from './test/document.ts'
import type { Inputs } from './test/inputs.ts'
import { layoutFetch } from './test/layouts.ts'
import { liveFor, NO_FETCH, vaultOf } from './test/live.ts'
import { recordingFetch } from './test/record.ts'
import { testText, toJunit, totalsOf } from './test/report.ts'
import { type Ran, runTest } from './test/run.ts'

const FORMATS = ['text', 'json', 'junit'] as const

interface TestOptions {
  config?: string
  fileName: string
  registry?: string
  record?: string
  offline?: true
  pin?: true
  strict?: true
  plainHttp?: string[]
  output: (typeof FORMATS)[number]
}

/** `countersign test`: policies against resources whose results are known. */
export function testCommand(cli: Cli): Command {
  return new Command('test')
    .description('Run Kyverno policy tests (kyverno-test.yaml) of image policies.')
    .argument('[path...]', 'folders with tests, or test files (default: .)')
    .option('--config <file>', 'the config (default: infra/countersign.yaml, where it is)')
    .option('--file-name <name>', 'what test files are called', TEST_FILE)
    .option(
      '--registry <folder>',
      'OCI layouts in place of registries: <folder>/<host>/<repository>',
    )
    .option('--record <folder>', 'keep what registries answer as such layouts')
    .option('--offline', 'ask nothing outside: what is in no layout cannot be told')
    .option('--pin', 'pin images first, as the mutating webhook does in a cluster')
    .option('--strict', 'a policy that is not about a resource neither passes nor skips it')
    .option('--plain-http <host...>', 'registries that are spoken to without TLS')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(FORMATS).default('text'))
    .addHelpText('after', HELP)
    .action(
      cli.action('test', (paths: string[], options: TestOptions) => test(cli.io, paths, options)),
    )
}

async function test(io: Io, paths: readonly string[], options: TestOptions): Promise<ExitCode> {
  const files = await findTests(paths.length > 0 ? paths : ['.'], options.fileName)
  const named = options.config ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined)
  const read = named === undefined ? undefined : await readConfig(named)
  const load = read?.policyOptions ?? (await usualOptions(io.env))
  const { pin = false, strict = false } = options
  const tests: Ran[] = []
  const notes = new Set<string>()
  for (const file of files) {
    const engine = engineFor(io, options, read, notes)
    tests.push(await runTest(file, { load, engine, pin, strict, signal: io.signal }))
  }
  for (const note of notes) io.err(`countersign test: ${note}\n`)
  io.err(faultList(read?.trust.notes() ?? []))
  io.out(rendered(io, options.output, tests))
  const { passed, failed, errors } = totalsOf(tests)
  return failed === 0 && errors === 0 && passed > 0 ? 0 : 1
}

/** Without a config, keys and trusted roots are those that `countersign verify` would use. */
async function usualOptions(env: Io['env']): Promise<LoadOptions> {
  const trust = await loadTrust([], '', Date.now())
  const { region, vault } = vaultOf(env)
  return {
    ...trust.options,
    ...(region !== undefined && { kmsRegion: region }),
    ...(vault !== undefined && { kmsVault: vault }),
  }
}

function engineFor(
  io: Io,
  options: TestOptions,
  read: ConfigFiles | undefined,
  notes: Set<string>,
) {
  return async (about: TestDocument, { existing }: Inputs) => {
    const { at } = about
    const now = at === undefined ? Date.now : () => at
    const {
      live,
      http,
      notes: told,
    } = await liveFor({
      fetch: fetchFor(options, about),
      env: io.env,
      config: read?.config,
      plainHttp: options.plainHttp ?? [],
      offline: options.offline === true,
      now,
    })
    for (const note of told) notes.add(note)
    const cluster = clusterOf(existing)
    const context = { cluster: () => cluster, ...(http !== undefined && { http }) }
    return { live: async () => live, context: async () => context, now }
  }
}

function fetchFor({ offline, record, registry }: TestOptions, about: TestDocument): FetchPort {
  const world: FetchPort = offline ? NO_FETCH : (url, init) => fetch(url, init)
  const recorded = record === undefined ? world : recordingFetch(record, world)
  const folder = registry ?? about.registry
  return folder === undefined || record !== undefined ? recorded : layoutFetch(folder, recorded)
}

function rendered(io: Io, output: TestOptions['output'], tests: readonly Ran[]): string {
  switch (output) {
    case 'json':
      return `${JSON.stringify({ ...totalsOf(tests), tests }, null, 2)}\n`
    case 'junit':
      return toJunit(tests)
    case 'text':
      return testText(io, tests)
  }
}

const HELP = `
Every folder below the paths that holds a kyverno-test.yaml is one test: its policies and exceptions
are evaluated on its resources as the validating webhook would when they are created, and each of
its results is compared with what came out. Results of other kinds of policies are left out.

Tags are not pinned unless --pin says so, so that a policy with verifyDigest denies them first.
A result is wrong as well when it names a policy or a resource that the test does not have, and so
is a test without any result about an image policy. With --strict the same goes for a resource
that the policy is not about, which otherwise passes as it does in Kyverno.

Beside kyverno-test.yaml, which Kyverno has to read as well, there may be a countersign-test.yaml:
  apiVersion: countersign.dev/v1
  kind: TestSettings
  registry: images                # a folder as for --registry, seen from this file
  now: 2026-11-30T12:00:00Z       # the time of the test, for certificates and exceptions that end

An image with its signatures and attestations comes into a layout with --record, cosign save, or
oras copy -r --to-oci-layout. A repository that has a layout is not asked for anywhere else.

Exit codes: 0 everything as expected, 1 something is not, or nothing was tested, 2 bad input.

Examples:
  $ countersign test policies/tests
  $ countersign test . --record tests/images
  $ countersign test . --registry tests/images --offline -o junit > results.xml
  $ countersign test tests/signed/kyverno-test.yaml --config infra/countersign.yaml --pin
`
