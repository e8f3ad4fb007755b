import { Command, Option } from 'commander'
import type { Cli, ExitCode, Io } from './io.ts'
import { kubernetesYaml } from './kubernetes-yaml.ts'
import { type Finding, type Linted, lintFiles } from './lint/findings.ts'
import { toSarif } from './lint/sarif.ts'
import { withStatus } from './lint/status.ts'

const FORMATS = ['text', 'json', 'yaml', 'sarif'] as const

interface LintOptions {
  config?: string
  strict?: true
  output: (typeof FORMATS)[number]
}

/** `countersign lint`: everything that is wrong with policies, exceptions and config, at once. */
export function lintCommand(cli: Cli): Command {
  return new Command('lint')
    .description(
      'Check policies, exceptions and config: every fault with its line, and every note.',
    )
    .argument('[path...]', "files and folders (default: the config's policies)")
    .option('--config <file>', 'the config (default: infra/countersign.yaml, where it is)')
    .option('--strict', 'warnings are faults')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(FORMATS).default('text'))
    .addHelpText('after', HELP)
    .action(
      cli.action('lint', (paths: string[], options: LintOptions) => lint(cli.io, paths, options)),
    )
}

async function lint(
  io: Io,
  paths: readonly string[],
  { config, strict, output }: LintOptions,
): Promise<ExitCode> {
  const linted = await lintFiles(paths, config)
  const findings = strict ? linted.findings.map(asFault) : linted.findings
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const counts = { errors, warnings: findings.length - errors }
  switch (output) {
    case 'json':
      io.out(`${JSON.stringify({ ...summaryOf(linted), ...counts, findings }, null, 2)}\n`)
      break
    case 'sarif':
      io.out(`${JSON.stringify(toSarif(findings), null, 2)}\n`)
      break
    case 'yaml':
      // The documents are for programs, so what is wrong with them goes elsewhere.
      io.err(lines(io, findings, linted))
      io.out(withStatus(linted.files).map(kubernetesYaml).join('---\n'))
      break
    case 'text':
      io.out(lines(io, findings, linted))
      break
  }
  return errors === 0 ? 0 : 1
}

function asFault(finding: Finding): Finding {
  return { ...finding, severity: 'error' }
}

function summaryOf({ files, policies }: Linted) {
  return { files: files.length, policies }
}

/** One line for each finding, as compilers and code hosts write them, and one that sums up. */
function lines(io: Io, findings: readonly Finding[], linted: Linted): string {
  const { red, yellow, green } = io.colors
  const texts = findings.map((finding) => {
    const { severity, file, line, column, path, message } = finding
    const place = line > 0 ? `${file}:${line}:${column}` : file
    const word = severity === 'error' ? red('error') : yellow('warning')
    const text = path === '' ? message : `${path}: ${message}`
    return `${place}: ${word}: ${text.replaceAll(/\s*\n\s*/g, ' ')}\n`
  })
  const errors = findings.filter(({ severity }) => severity === 'error').length
  const verdict = errors === 0 ? green('no faults') : red(count(errors, 'fault'))
  const { files, policies } = summaryOf(linted)
  const looked = `${count(files, 'file')}, ${policies === 1 ? '1 policy' : `${policies} policies`}`
  return `${texts.join('')}${looked}: ${verdict}, ${count(findings.length - errors, 'warning')}\n`
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`
}

const HELP = `
Policies and exceptions are read as \`countersign build\` reads them, with the config's keys, logins
and trusted roots; without paths, what config and policies say of each other is checked as well.
A warning is about what is right and may not be meant: gaps in what a policy covers, and fields that
Kyverno accepts but does not enforce, with what they do here.

-o yaml prints every policy that can be read with its status.autogen, the policies for Pod
controllers that follow from it; findings go to stderr. -o sarif is for code hosts.

Exit codes: 0 no faults, 1 faults (with --strict also warnings), 2 something could not be read.

Examples:
  $ countersign lint
  $ countersign lint infra/policies --strict
  $ countersign lint policies/signed.yaml exceptions/ --config infra/countersign.yaml
  $ countersign lint -o sarif > lint.sarif
  $ countersign lint policies/signed.yaml -o yaml 2>/dev/null
`
