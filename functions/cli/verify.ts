import { Command } from 'commander'
import type { Config } from '#functions/config.ts'
import { loadPolicyFolder, readConfig, readText } from '#functions/files.ts'
import { loadTrust, type TrustStore } from '#functions/trust/store.ts'
import { AdmissionError } from '#shared/errors.ts'
import { parseReference } from '#shared/image/reference.ts'
import type { LoadOptions } from '#shared/policy/load.ts'
import { type PolicyAttestor, policyKey } from '#shared/policy/types.ts'
import type { KmsSettings } from '#shared/signature/kms-reference.ts'
import { readDockerLogins } from './docker-config.ts'
import { examineImage, type Findings, type NamedAttestor } from './examine.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { faultList, formatOption, print } from './output.ts'
import { attestorOf, type SignerOptions, withSignerOptions } from './signer-options.ts'

interface VerifyOptions extends SignerOptions {
  policy?: string
  config?: string
  attestor?: string
  any?: true
  plainHttp?: true
  region?: string
  kmsEndpoint?: string[]
  vaultAddress?: string
  vaultMount?: string
  vaultNamespace?: string
  output: Format
}

/** `countersign verify IMAGE`: who signed an image, by the attestors of a policy or by one signer. */
export function verifyCommand(cli: Cli): Command {
  const command = new Command('verify')
    .description("Verify an image against a policy's attestors and say which signature said what.")
    .argument('<image>', 'image reference, by tag or digest')
    .option('--policy <file>', 'policy document or folder whose attestors are asked')
  return withSignerOptions(command)
    .option(
      '--config <file>',
      'the config whose trusted roots and key services are used (default: the public-good root only)',
    )
    .option('--attestor <name>', 'ask only the attestor of this name')
    .option('--any', 'one attestor that verifies is enough; without it all of them have to')
    .option('--plain-http', 'talk to the registry without TLS')
    .option('--region <name>', 'KMS region of references without one (default: $AWS_REGION)')
    .option('--kms-endpoint <url...>', 'endpoints that awskms:// references may name')
    .option('--vault-address <url>', 'Vault of hashivault:// keys (default: $VAULT_ADDR)')
    .option('--vault-mount <path>', 'its transit engine (default: transit)')
    .option('--vault-namespace <path>', 'its namespace (default: $VAULT_NAMESPACE)')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(
      cli.action('verify', (image: string, options: VerifyOptions) =>
        verify(cli.io, image, options),
      ),
    )
}

async function verify(io: Io, image: string, options: VerifyOptions): Promise<ExitCode> {
  const reference = parseReference(image)
  const settings = await settingsOf(options, io.env)
  const attestors = await chosenAttestors(options, settings)
  io.err(faultList(settings.notes()))
  const { credentials, notes } = await readDockerLogins(io.env)
  for (const note of notes) io.err(`countersign verify: ${note}\n`)
  const findings = await examineImage(reference, attestors, {
    credentials,
    plainHttp: options.plainHttp === true,
    kmsSettings: settings.kms,
    env: io.env,
    any: options.any === true,
    signal: io.signal,
  })
  print(io, options.output, findings, () => findingsText(io, findings))
  return findings.verdict === 'verified' ? 0 : 1
}

/** What the command line and the config, if one was named, say about keys and trusted roots; the command line comes first. */
interface Settings {
  kms: KmsSettings
  /** For the loader of policies. */
  policies: LoadOptions
  notes: TrustStore['notes']
}

async function settingsOf(options: VerifyOptions, env: Io['env']): Promise<Settings> {
  const settings = await configured(options, env)
  // A policy means the same wherever it is tried.
  const usual = options.policy === undefined ? env.COUNTERSIGN_TRUSTED_ROOT : undefined
  const file = options.trustedRoot ?? usual
  if (!file) return settings
  const { text } = await readText(file, 'CONFIG_INVALID')
  const others = settings.policies.trustedRoot
  const trustedRoot = (mirror: string | undefined) =>
    mirror === undefined ? text : others?.(mirror)
  return { ...settings, policies: { ...settings.policies, trustedRoot } }
}

async function configured(options: VerifyOptions, env: Io['env']): Promise<Settings> {
  if (options.config === undefined) {
    const trust = await loadTrust([], '', Date.now())
    return { kms: kmsSettings(options, env), policies: trust.options, notes: trust.notes }
  }
  const { config, trust, policyOptions } = await readConfig(options.config)
  const kms = { ...config.kms, ...kmsSettings(options, env, config.kms) }
  return { kms, policies: policyOptions, notes: trust.notes }
}

function kmsSettings(options: VerifyOptions, env: Io['env'], config?: Config['kms']): KmsSettings {
  const region = options.region ?? config?.region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION
  const address = options.vaultAddress ?? (config?.vault ? undefined : env.VAULT_ADDR)
  const mount = options.vaultMount
  const namespace = options.vaultNamespace ?? env.VAULT_NAMESPACE
  const vault = address === undefined ? undefined : { address, ...defined({ mount, namespace }) }
  const endpoints = options.kmsEndpoint ?? config?.endpoints ?? []
  return { endpoints, ...defined({ region, vault }) }
}

/** Its members that are set. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  // The same members, fewer of them.
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

async function chosenAttestors(
  options: VerifyOptions,
  settings: Settings,
): Promise<readonly NamedAttestor[]> {
  const { policy, attestor: wanted } = options
  const attestor = await attestorOf(options, settings.kms, settings.policies)
  if (policy === undefined && attestor !== undefined) return [{ attestor }]
  if (policy === undefined || attestor !== undefined) {
    const reason =
      'give either --policy or a signer: --key, --certificate-identity or --certificate'
    throw new AdmissionError('CONFIG_INVALID', reason)
  }
  const all = await attestorsOfPolicies(policy, settings)
  const chosen = all.filter(({ attestor }) => wanted === undefined || attestor.name === wanted)
  if (chosen.length > 0) return chosen.map(resolvedOnly)
  const names = all.map(({ attestor }) => attestor.name).join(', ') || 'none'
  const found = wanted === undefined ? 'no attestor' : `no attestor ${wanted}, only ${names}`
  throw new AdmissionError('POLICY_INVALID', `${policy} has ${found}`)
}

/** What an expression gives depends on a request, and here is none: not to ask such an attestor would be to pass over it. */
function resolvedOnly({ policy, attestor }: PolicysAttestor): NamedAttestor {
  if (attestor.kind !== 'unresolved') return { policy, attestor }
  const gives = [...new Set(attestor.expressions.map((each) => each.gives))].join(' and ')
  throw new AdmissionError(
    'POLICY_UNSUPPORTED',
    `policy ${policy}: attestor ${attestor.name} has its ${gives} from an expression, which only a request to a cluster can evaluate; choose another one with --attestor, or give the signer with --key, --certificate or --certificate-identity`,
  )
}

interface PolicysAttestor {
  policy: string
  attestor: PolicyAttestor
}

async function attestorsOfPolicies(
  where: string,
  { kms, policies: options }: Settings,
): Promise<PolicysAttestor[]> {
  const { policies } = await loadPolicyFolder(where, {
    ...options,
    kmsEndpoints: kms.endpoints ?? [],
    ...defined({ kmsRegion: kms.region, kmsVault: kms.vault }),
  })
  // What a policy means for Pod controllers has the same attestors.
  const written = policies.filter(({ autogen }) => autogen === undefined)
  return written.flatMap((policy) =>
    policy.attestors.map((attestor) => ({ policy: policyKey(policy), attestor })),
  )
}

function findingsText(io: Io, { image, digest, verdict, reason, attestors }: Findings): string {
  const { bold, dim, green, red, yellow } = io.colors
  const paint = { verified: green, rejected: red, inconclusive: yellow }
  const lines = [bold(image), ...(digest === undefined ? [] : [dim(digest)])]
  for (const { attestor, policy, key, status, detail, signatures } of attestors) {
    const name = policy === undefined ? attestor : `${policy}/${attestor}`
    // What is said of each follows, so it is not said twice.
    const counted = `none of ${signatures.length} signatures counts`
    const summary = status === 'rejected' && signatures.length > 0 ? counted : detail
    lines.push('', `${paint[status](status)}  ${bold(name)}  ${dim(key)}`, `  ${summary}`)
    const mark = (isRight: boolean) => (isRight ? green('✓') : red('✗'))
    for (const { source, location, verified, detail: said, checks = [] } of signatures) {
      lines.push(`  ${mark(verified)} ${source.padEnd(8)} ${location}`)
      for (const { check, passed, detail: found } of checks) {
        lines.push(`      ${mark(passed)} ${check.padEnd(11)} ${found}`)
      }
      if (checks.length === 0) lines.push(`      ${said}`)
    }
  }
  const because = reason === undefined ? '' : `: ${reason}${hintOf(reason)}`
  return `${lines.join('\n')}\n\n${paint[verdict](verdict)}${because}\n`
}

/** What a registry that speaks plain HTTP looks like to who expects TLS. */
function hintOf(reason: string): string {
  const isPlain = /ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)/.test(reason)
  return isPlain ? '; a registry without TLS needs --plain-http' : ''
}

const HELP = `
Exit codes: 0 verified, 1 not verified or could not be told, 2 bad input. Registry logins come from
$DOCKER_CONFIG/config.json or ~/.docker/config.json. Policies that name no trusted root use
Sigstore's public-good instance, as it came with this program or as the config's trust list has it.
A key or a certificate alone proves who signed; with --trusted-root a log has to have seen it as
well.

Examples:
  $ countersign verify registry.example.com/shop/api:1.4.2 --policy infra/policies --config infra/countersign.yaml
  $ countersign verify registry.example.com/shop/api:1.4.2 --key cosign.pub
  $ countersign verify registry.example.com/shop/api:1.4.2 \\
      --certificate-identity https://ci.example.com/shop/release.yml@refs/heads/main \\
      --certificate-oidc-issuer https://token.actions.githubusercontent.com
  $ countersign verify registry.example.com/shop/api:1.4.2 --certificate-chain ca.pem --annotation stage=ci
  $ countersign verify registry.example.com/shop/api:1.4.2 --key awskms:///alias/release --region eu-central-1
  $ VAULT_TOKEN=… countersign verify registry.example.com/shop/api:1.4.2 --key hashivault://release --vault-address https://vault.example.com:8200
  $ countersign verify localhost:5000/api:dev --plain-http --policy p.yaml --attestor release --output json
`
