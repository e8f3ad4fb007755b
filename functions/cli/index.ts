import { Command, CommanderError } from 'commander'
import { buildCommand } from './build.ts'
import { celCommand } from './cel.ts'
import { demoCommand } from './demo.ts'
import { devCommand } from './dev.ts'
import { doctorCommand } from './doctor.ts'
import { initCommand } from './init.ts'
import type { Cli, ExitCode, Io } from './io.ts'
import { lintCommand } from './lint.ts'
import { printError } from './output.ts'
import { packageVersion } from './package.ts'
import { bundleCommand } from './policy-bundle.ts'
import { reportCommand } from './report.ts'
import { testCommand } from './test.ts'
import { tokensCommand } from './tokens.ts'
import { trustCommand } from './trust.ts'
import { verifyCommand } from './verify.ts'
import { verifyBundleCommand } from './verify-bundle.ts'
import { webhooksCommand } from './webhooks.ts'

/** Every command, in the order `--help` lists them. */
const COMMANDS: readonly ((cli: Cli) => Command)[] = [
  demoCommand,
  initCommand,
  devCommand,
  buildCommand,
  bundleCommand,
  webhooksCommand,
  lintCommand,
  testCommand,
  verifyCommand,
  celCommand,
  verifyBundleCommand,
  reportCommand,
  doctorCommand,
  tokensCommand,
  trustCommand,
]

/** Runs one command line (without `node` and the script's name) and returns its exit code. Never throws, never exits. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  let exitCode: ExitCode = 0
  const cli: Cli = {
    io,
    action:
      (name, work) =>
      async (...args) => {
        try {
          exitCode = await work(...args)
        } catch (thrown) {
          exitCode = printError(io, `countersign ${name}`, thrown)
        }
      },
  }
  try {
    await createProgram(cli).parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (thrown) {
    // `--help` and `--version` end the parse with code 0, a usage error with its own.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    return printError(io, 'countersign', thrown)
  }
}

function createProgram(cli: Cli): Command {
  const program = new Command('countersign')
    .description('Verify container images at Kubernetes admission, from outside the cluster.')
    .version(packageVersion())
    .addHelpText('after', HELP)
  for (const create of COMMANDS) program.addCommand(create(cli))
  for (const command of allCommands(program)) {
    command.exitOverride().configureOutput({
      writeOut: cli.io.out,
      writeErr: cli.io.err,
      getOutHelpWidth: () => cli.io.columns,
      getErrHelpWidth: () => cli.io.columns,
      getOutHasColors: () => cli.io.colors.isColorSupported,
    })
    command.showHelpAfterError(`(run '${pathOf(command)} --help' for usage)`)
  }
  return program
}

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)]
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

const HELP = `
Examples:
  $ countersign demo
  $ countersign verify registry.example.com/shop/api:1.4.2 --key cosign.pub
  $ countersign cel 'object.spec.replicas <= 5' --object deployment.yaml
  $ countersign tokens new --cluster prod-eu --config infra/countersign.yaml

Exit codes: 0 fine, 1 the verdict says no, 2 bad input or usage.
`
