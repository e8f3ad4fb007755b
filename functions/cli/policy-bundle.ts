import path from 'node:path'
import { Command } from 'commander'
import type { Config } from '#functions/config.ts'
import type { Deployment } from '#functions/deployment.ts'
import { DEFAULT_CONFIG, readConfig } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import type { PolicyBundleConfig } from '#functions/policy-bundle/config.ts'
import { kmsFrom, type Platform } from '#functions/ports.ts'
import { writeWhole } from '#functions/write.ts'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { readDeployment } from './deployment.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { faultList, formatOption, print } from './output.ts'
import { type BundleVerdict, examineBundle, readBundleFile } from './policy-bundle/check.ts'
import { signerOf } from './policy-bundle/sign.ts'
import { bundleText } from './policy-bundle/text.ts'
import { type BundleTimes, payloadOf, signedBundle } from './policy-bundle/write.ts'

interface BundleOptions {
  config: string
  out: string
  key?: string
  sequence?: string
  expiresIn?: string
  pinKeys?: true
  check?: string
  output: Format
}

/** `countersign bundle`: the policies, checked and compiled, as one signed file that running functions take over. */
export function bundleCommand(cli: Cli): Command {
  return new Command('bundle')
    .description(
      'Sign policies as one file that running functions take over, or check such a file.',
    )
    .option('--config <file>', 'the config; its policyBundle says who signs', DEFAULT_CONFIG)
    .option('--out <file>', 'where the bundle goes', 'dist/policies.json')
    .option('--key <file>', 'PEM private key, where policyBundle.key is a file')
    .option('--sequence <number>', 'grows from bundle to bundle (default: the seconds since 1970)')
    .option('--expires-in <time>', 'how long it counts, such as 36h or 30d (default: no end)')
    .option('--pin-keys', 'fetch public keys from AWS KMS now, and put them in')
    .option('--check <file>', 'make nothing: verify this file, and say what is in it')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(
      cli.action('bundle', (options: BundleOptions) =>
        options.check === undefined
          ? make(cli.io, options, Date.now())
          : check(cli.io, { ...options, check: options.check }, Date.now()),
      ),
    )
}

async function make(io: Io, options: BundleOptions, now: number): Promise<ExitCode> {
  const { out, pinKeys } = options
  const { deployment: read, policies, warnings } = await readDeployment(options.config)
  const settings = settingsOf(read.config, options.config)
  const times = timesOf(options, now)
  const signer = await signerOf(settings, read.config, { keyFile: options.key, env: io.env })
  const deployment = pinKeys ? await withKeys(io, read, now) : read
  if (warnings.length > 0) io.err(`notes on ${policies}:\n${faultList(warnings)}`)
  const text = await signedBundle(payloadOf(deployment, times), signer)
  const context = { config: read.config, platform: platformOf(io), now }
  const verdict = await examineBundle(out, utf8(text), context)
  // Nothing is written that no function would take.
  if (verdict.verdict === 'refused') throw new AdmissionError('CONFIG_INVALID', verdict.reason)
  await writeWhole([{ file: out, content: text }])
  report(io, options.output, verdict)
  return 0
}

async function check(
  io: Io,
  options: BundleOptions & { check: string },
  now: number,
): Promise<ExitCode> {
  const { config } = await readConfig(options.config)
  settingsOf(config, options.config)
  const verdict = await verdictOn(options.check, { config, platform: platformOf(io), now })
  report(io, options.output, verdict)
  return verdict.verdict === 'accepted' ? 0 : 1
}

async function verdictOn(
  file: string,
  context: Parameters<typeof examineBundle>[2],
): Promise<BundleVerdict> {
  try {
    return await examineBundle(file, await readBundleFile(file), context)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError) || thrown.code !== 'POLICY_BUNDLE_REFUSED') throw thrown
    return { verdict: 'refused', reason: thrown.message, summary: undefined }
  }
}

function settingsOf({ policyBundle }: Config, file: string): PolicyBundleConfig {
  if (policyBundle !== undefined) return policyBundle
  const message = `${file} has no policyBundle: it says where functions find bundles, and whose signature counts`
  throw new AdmissionError('CONFIG_INVALID', message)
}

function timesOf({ sequence, expiresIn }: BundleOptions, now: number): BundleTimes {
  const number = sequence === undefined ? Math.floor(now / 1000) : Number(sequence)
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new AdmissionError('CONFIG_INVALID', '--sequence: expected a whole number above 0')
  }
  const lifetimeMs = expiresIn === undefined ? undefined : lifetimeOf(expiresIn)
  return {
    sequence: number,
    issuedAt: now,
    ...(lifetimeMs !== undefined && { expiresAt: now + lifetimeMs }),
  }
}

function lifetimeOf(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,4})(m|h|d)$/.exec(text) ?? []
  const ms = { m: 60_000, h: 3_600_000, d: 86_400_000 }[unit ?? '']
  if (ms !== undefined) return Number(count) * ms
  throw new AdmissionError(
    'CONFIG_INVALID',
    '--expires-in: expected minutes, hours or days, such as 30d',
  )
}

/** The deployment with its keys, fetched with the credentials of whoever signs. */
async function withKeys(io: Io, read: Deployment, now: number): Promise<Deployment> {
  const { pinKeys } = await import('./pin-keys.ts')
  return pinKeys(read, { kms: kmsFrom({ env: io.env }), now: () => now })
}

function platformOf(io: Io): Platform {
  return { env: io.env, log: () => undefined, hash: nodeHash, maxBodyBytes: MAX_BODY_BYTES }
}

function report(io: Io, format: Format, verdict: BundleVerdict): void {
  const { summary, ...rest } = verdict
  const data = summary && { ...summary, file: path.relative('', summary.file) || summary.file }
  print(io, format, { ...rest, ...data }, () =>
    bundleText(io, data === undefined ? verdict : { ...verdict, summary: data }),
  )
}

const HELP = `
Policies are checked and compiled as for \`build\`; what no function of this config would take is not
written. Put the file where policyBundle says. Functions look there every refreshSeconds, take what
is signed by policyBundle.key, is for their endpoint and clusters and has a higher sequence than
what they have, and keep the last good one otherwise. What clusters send is not changed by it: after
new rules or selectors apply what \`webhooks\` prints as well.

Exit codes: 0 written or accepted, 1 refused, 2 bad input.

Examples:
  $ countersign bundle && aws s3 cp dist/policies.json s3://countersign-policies/bundles/prod.json
  $ countersign bundle --key policies.key --expires-in 30d --out prod.json
  $ countersign bundle --check prod.json --output json
`
