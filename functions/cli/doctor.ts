import { createSecureContext } from 'node:tls'
import { Command } from 'commander'
import type { Config } from '#functions/config.ts'
import { policiesOf } from '#functions/deployment.ts'
import { endpointOf, endpointsOf } from '#functions/endpoints.ts'
import { DEFAULT_CONFIG, readText } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { reviewedCluster } from '#functions/image-review-policies.ts'
import { fromBase64, fromUtf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { clusterNamed, readDeployment } from './deployment.ts'
import { examine } from './doctor/examine.ts'
import { doctorText } from './doctor/text.ts'
import type { ClientIdentity, Patient } from './doctor/types.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { formatOption, print } from './output.ts'
import { caFileOf, readCaBundle } from './webhooks/ca.ts'
import { readToken, TOKEN_VARIABLE } from './webhooks/token.ts'

interface DoctorOptions {
  cluster: string
  config: string
  tokenFile?: string
  endpoint?: string
  caBundle?: string
  bearerFile?: string
  clientCert?: string
  clientKey?: string
  image: string
  calls: string
  output: Format
}

/** `countersign doctor`: what a cluster will meet at the endpoint, looked at from here. */
export function doctorCommand(cli: Cli): Command {
  return new Command('doctor')
    .description('Look at the endpoint as the API server of a cluster will, and say what is wrong.')
    .requiredOption('--cluster <name>', 'the cluster, as the config names it')
    .option('--config <file>', 'the config', DEFAULT_CONFIG)
    .option(
      '--token-file <file>',
      `the token of the cluster, - for standard input (default: $${TOKEN_VARIABLE})`,
    )
    .option('--endpoint <url>', 'ask here in place of the endpoint of the config')
    .option('--ca-bundle <file>', 'PEM certificates to trust (default: those of the config)')
    .option('--bearer-file <file>', 'the bearer token, for clusters that want one')
    .option('--client-cert <file>', 'PEM client certificate, for clusters that want one')
    .option('--client-key <file>', 'its PEM key')
    .option('--image <image>', 'the image of the Pod that is asked about', DOCTOR_IMAGE)
    .option('--calls <number>', 'how many calls to time', '5')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(cli.action('doctor', (options: DoctorOptions) => run(cli.io, options)))
}

const DOCTOR_IMAGE = 'registry.example.com/countersign/doctor:1'
const MAX_CALLS = 100

async function run(io: Io, options: DoctorOptions): Promise<ExitCode> {
  const { patient, endpoint } = await toPatient(io, options)
  const checks = await examine(patient, options.image)
  const { name } = patient.cluster
  const data = { cluster: name, endpoint, checks }
  print(io, options.output, data, () => doctorText(io, name, checks))
  return checks.some(({ status }) => status === 'fail') ? 1 : 0
}

/** Whom to ask, and the endpoint as it was given. */
async function toPatient(
  io: Io,
  options: DoctorOptions,
): Promise<{ patient: Patient; endpoint: Config['endpoint'] }> {
  const calls = Number(options.calls)
  if (!Number.isInteger(calls) || calls < 1 || calls > MAX_CALLS) {
    throw refusal(`--calls: expected a number from 1 to ${MAX_CALLS}`)
  }
  const { deployment } = await readDeployment(options.config)
  const { config } = deployment
  const cluster = clusterNamed(config, options.cluster, options.config)
  const token = await readToken(io, options.tokenFile)
  if (token === undefined || token === '') {
    throw refusal(
      `give the token of ${cluster.name} with --token-file FILE (- for standard input) or in ${TOKEN_VARIABLE}`,
    )
  }
  const caPath = caFileOf(options, cluster)
  const ca = caPath && (await pemOf(caPath))
  const bearer = options.bearerFile && (await bearerOf(options.bearerFile))
  const client = await clientOf(options)
  const endpoint = options.endpoint ?? endpointOf(config, cluster)
  const patient = {
    cluster,
    endpoints: endpointsOf(endpoint),
    token: encodeURIComponent(token),
    ...(bearer && { bearer }),
    ...(client && { client }),
    ...(ca && { ca }),
    policySet: policiesOf(deployment, cluster, nodeHash).policySet,
    reviewedPolicySet: policiesOf(deployment, reviewedCluster(cluster), nodeHash).policySet,
    calls,
    now: Date.now,
    signal: io.signal,
  }
  return { patient, endpoint }
}

async function pemOf(file: string): Promise<string> {
  const { base64 } = await readCaBundle(file, Date.now())
  return fromUtf8(fromBase64(base64) ?? new Uint8Array())
}

async function clientOf({
  clientCert,
  clientKey,
}: DoctorOptions): Promise<ClientIdentity | undefined> {
  if (clientCert === undefined && clientKey === undefined) return undefined
  if (clientCert === undefined || clientKey === undefined) {
    throw refusal('--client-cert and --client-key go together')
  }
  const client = { cert: await textOf(clientCert), key: await textOf(clientKey) }
  try {
    createSecureContext(client)
    return client
  } catch (cause) {
    // What it says of them could quote the key.
    const message = '--client-cert and --client-key are no PEM certificate and its key'
    throw new AdmissionError('CONFIG_INVALID', message, { cause })
  }
}

/** Throws `CONFIG_INVALID` for what no header can hold. */
async function bearerOf(file: string): Promise<string> {
  const bearer = await textOf(file)
  if (/^[\x21-\x7e]+$/.test(bearer)) return bearer
  throw refusal(`${file}: a bearer token has no blanks, line breaks or letters beyond ASCII`)
}

async function textOf(file: string): Promise<string> {
  return (await readText(file, 'CONFIG_INVALID')).text.trim()
}

function refusal(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}

const HELP = `
Looks at the URL rules of API servers, DNS, the TLS chain and its end, HTTP, health, who is let in,
both phases with a dry run of a Pod, the deployed policies beside these files, latency beside the
timeouts, the clock, the size of bodies, and an ImageReview where the cluster has imageReview; at
each host of endpoint. Nothing of a cluster is needed, and nothing is changed. The token is shown to
a host with a trusted certificate only. What nobody sees from here is whether the control plane may
call out: what that means for managed ones is told.

Exit codes: 0 nothing will hurt (there may be warnings), 1 something will, 2 bad input.

Examples:
  $ countersign doctor --cluster prod-eu --token-file prod-eu.token
  $ countersign doctor --cluster prod-eu --endpoint https://localhost:8443 --ca-bundle .countersign/ca.pem --token-file -
`
