import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Command } from 'commander'
import { CLUSTER_NAME } from '#functions/config-schema/cluster.ts'
import { ENDPOINT_URL, isEndpoint } from '#functions/config-schema/endpoint.ts'
import { CONFIG_SCHEMA } from '#functions/config-schema.ts'
import { fileReason } from '#functions/file-reason.ts'
import { toPem } from '#functions/local/pem.ts'
import { isThere, makeFolder, missingFolders, removeAll } from '#functions/write.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import {
  CONFIG_FILE,
  configText,
  GUIDE_FILE,
  guideText,
  IGNORE_FILE,
  IGNORE_TEXT,
  POLICY_FILE,
  PRIVATE_KEY_FILE,
  type Project,
  PUBLIC_KEY_FILE,
  policyText,
} from './init/files.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { formatOption, print } from './output.ts'
import { hashOf, newToken } from './token.ts'

interface InitOptions {
  cluster: string
  endpoint: string
  region: string
  key?: true
  output: Format
}

interface NewFile {
  name: string
  text: string
  mode?: number
}

/** Only its owner may read it. */
const SECRET_MODE = 0o600

/** `countersign init`: a new project that `dev` and `build` take as it is. */
export function initCommand(cli: Cli): Command {
  return new Command('init')
    .description('Write a config, a first policy and the next steps for a new project.')
    .argument('[folder]', 'where; it is made when it is not there', '.')
    .option('--cluster <name>', 'the first cluster', 'my-cluster')
    .option('--endpoint <url>', 'where clusters will reach the functions', EXAMPLE_ENDPOINT)
    .option('--region <region>', 'region of the keys in AWS KMS', 'eu-central-1')
    .option('--key', 'make a local key pair in place of keys in AWS KMS, to try things out')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(
      cli.action('init', (folder: string, options: InitOptions) => run(cli.io, folder, options)),
    )
}

const EXAMPLE_ENDPOINT = 'https://admission.example.com'

async function run(io: Io, folder: string, options: InitOptions): Promise<ExitCode> {
  checkOptions(options)
  const token = newToken()
  const keys = options.key ? await newKeyPair() : undefined
  const project: Project = {
    cluster: options.cluster,
    tokenHash: await hashOf(token),
    endpoint: options.endpoint,
    region: options.region,
    ...(keys && { publicKey: keys.publicKey }),
  }
  const files: NewFile[] = [
    { name: CONFIG_FILE, text: configText(project) },
    { name: POLICY_FILE, text: policyText(project) },
    { name: GUIDE_FILE, text: guideText(project) },
    ...(keys ? keyFiles(keys) : []),
  ]
  // A repository has one already, and what is in it is its owner's.
  const ignoresThere = await isThere(path.join(folder, IGNORE_FILE))
  if (!ignoresThere) files.push({ name: IGNORE_FILE, text: IGNORE_TEXT })
  await writeNew(folder, files)
  const written = files.map(({ name }) => path.join(folder, name))
  const data = { cluster: project.cluster, token, files: written }
  print(io, options.output, data, () => text(io, { folder, token, written, project }))
  if (ignoresThere) {
    io.err(`${path.join(folder, IGNORE_FILE)} is left as it is; have in it:\n${IGNORE_TEXT}`)
  }
  return 0
}

/** Throws `CONFIG_INVALID` with every option that the config could not hold. */
function checkOptions({ cluster, endpoint, region }: InitOptions): void {
  const { kms } = CONFIG_SCHEMA.properties
  const rules = [
    ['--cluster', cluster, CLUSTER_NAME],
    ['--endpoint', endpoint, ENDPOINT_URL],
    ['--region', region, kms.properties.region],
  ] as const
  const faults = rules.flatMap(([option, value, rule]): Fault[] => {
    // In the files it stands without quotes.
    const isPlain = new RegExp(rule.pattern, 'u').test(value) && !/['"\\#]|:( |$)/.test(value)
    const isRight = isPlain && (rule !== ENDPOINT_URL || isEndpoint(value))
    return isRight ? [] : [{ path: option, message: rule.patternErrorMessage }]
  })
  if (faults.length === 0) return
  const list = faults.map(({ path: option }) => option).join(', ')
  throw new AdmissionError('CONFIG_INVALID', `cannot be in a config: ${list}`, { faults })
}

interface KeyPair {
  publicKey: string
  privateKey: string
}

/** ECDSA P-256, as image signing tools use it: SPKI and PKCS #8, PEM. */
async function newKeyPair(): Promise<KeyPair> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const spki = new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))
  const pkcs8 = new Uint8Array(await crypto.subtle.exportKey('pkcs8', pair.privateKey))
  return {
    publicKey: toPem('PUBLIC KEY', spki),
    privateKey: toPem('PRIVATE KEY', pkcs8),
  }
}

function keyFiles({ publicKey, privateKey }: KeyPair): NewFile[] {
  return [
    { name: PRIVATE_KEY_FILE, text: privateKey, mode: SECRET_MODE },
    { name: PUBLIC_KEY_FILE, text: publicKey },
  ]
}

/** Writes all of the files or none. Throws `CONFIG_INVALID` with every one that is there already. */
async function writeNew(folder: string, files: readonly NewFile[]): Promise<void> {
  const there: string[] = []
  for (const { name } of files) if (await isThere(path.join(folder, name))) there.push(name)
  if (there.length > 0) {
    const message = `${folder} has a project already; nothing is written over, and nothing was written`
    const faults = there.map((name) => ({ path: path.join(folder, name), message: 'is there' }))
    throw new AdmissionError('CONFIG_INVALID', message, { faults })
  }
  const begun: string[] = []
  try {
    for (const { name, text: content, mode = 0o644 } of files) {
      const file = path.join(folder, name)
      begun.push(...(await missingFolders(path.dirname(file))))
      await makeFolder(path.dirname(file))
      await writeFile(file, content, { mode, flag: 'wx' })
      begun.push(file)
    }
  } catch (thrown) {
    await removeAll(begun)
    const message = `cannot write to ${folder}: ${fileReason(thrown)}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause: thrown })
  }
}

function text(
  io: Io,
  {
    folder,
    token,
    written,
    project,
  }: { folder: string; token: string; written: readonly string[]; project: Project },
): string {
  const { bold, dim } = io.colors
  const config = path.join(folder, CONFIG_FILE)
  return [
    ...written.map((file) => `wrote ${file}`),
    `${bold('token')} of ${project.cluster}: ${token}  ${dim('shown once; the config holds its hash')}`,
    `Next: countersign dev --config ${config}, and the steps in ${path.join(folder, GUIDE_FILE)}.`,
    'The policy only audits: nothing is denied before its validationActions say Deny.',
    '',
  ].join('\n')
}

const HELP = `
Nothing is ever written over: where one of the files is there already, all of them are left alone.

Examples:
  $ countersign init
  $ countersign init admission --cluster prod-eu --endpoint https://admission.example.com
  $ countersign init /tmp/try --key
`
