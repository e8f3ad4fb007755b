import { Command } from 'commander'
import { AdmissionError } from '#shared/errors.ts'
import { admissionData, type Layout, scenarioText } from './demo/report.ts'
import { type Played, play, type Scenario } from './demo/scenario.ts'
import { SCENARIOS } from './demo/scenarios.ts'
import { openStage, type Stage } from './demo/stage.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { formatOption, print } from './output.ts'

interface DemoOptions {
  scenario?: string[]
  verbose?: true
  output: Format
}

/** `countersign demo`: the whole story on embedded parts, scenario by scenario. */
export function demoCommand(cli: Cli): Command {
  return new Command('demo')
    .description('Play the whole story on embedded parts: registry, KMS, functions, API server.')
    .option('-s, --scenario <name...>', 'play only these')
    .option('-v, --verbose', 'show whole requests and answers')
    .addOption(formatOption())
    .addHelpText('after', help())
    .action(cli.action('demo', (options: DemoOptions) => demo(cli.io, options)))
}

async function demo(io: Io, options: DemoOptions): Promise<ExitCode> {
  return playScenarios(io, chosenScenarios(options.scenario), options)
}

/** Plays scenarios on a stage of their own and prints them. 1 when any verdict is not the right one. */
export async function playScenarios(
  io: Io,
  scenarios: readonly Scenario[],
  options: Pick<DemoOptions, 'output' | 'verbose'>,
): Promise<ExitCode> {
  const started = performance.now()
  const stage = await openStage()
  try {
    const played = await playAll(io, stage, scenarios, options)
    const ok = played.every((one) => one.ok)
    const ms = Math.round(performance.now() - started)
    if (options.output === 'text') io.out(summaryText(io, played, ms))
    else print(io, options.output, demoData(played, ms), () => '')
    return ok ? 0 : 1
  } finally {
    await stage.close()
  }
}

function chosenScenarios(names: readonly string[] | undefined): readonly Scenario[] {
  if (names === undefined) return SCENARIOS
  const known = SCENARIOS.map(({ name }) => name)
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const message = `no scenario ${unknown.join(', ')}; there are ${known.join(', ')}`
    throw new AdmissionError('CONFIG_INVALID', message)
  }
  return SCENARIOS.filter(({ name }) => names.includes(name))
}

/** Plays one after the other; as text, each is printed as soon as it is over. */
async function playAll(
  io: Io,
  stage: Stage,
  scenarios: readonly Scenario[],
  options: Pick<DemoOptions, 'output' | 'verbose'>,
): Promise<Played[]> {
  const layout: Layout = { columns: io.columns, verbose: options.verbose === true }
  const played: Played[] = []
  if (options.output === 'text')
    io.out(`${stage.description.map((line) => io.colors.dim(line)).join('\n')}\n\n`)
  for (const scenario of scenarios) {
    const one = await play(scenario, stage)
    if (options.output === 'text') io.out(scenarioText(io, one, layout))
    played.push(one)
  }
  return played
}

function summaryText(io: Io, played: readonly Played[], ms: number): string {
  const { bold, green, red } = io.colors
  const wrong = played.filter(({ ok }) => !ok).map(({ name }) => name)
  const seconds = (ms / 1000).toFixed(1)
  const verdict =
    wrong.length === 0
      ? green(`${counted(played.length)} in ${seconds} s, every verdict is the right one.`)
      : red(`${wrong.length} of ${counted(played.length)} came out wrong: ${wrong.join(', ')}`)
  return `${bold(verdict)}\n${NEXT}`
}

function counted(scenarios: number): string {
  return scenarios === 1 ? '1 scenario' : `${scenarios} scenarios`
}

function demoData(played: readonly Played[], ms: number): object {
  return {
    ok: played.every(({ ok }) => ok),
    ms,
    scenarios: played.map(({ acts, ...one }) => ({
      ...one,
      acts: acts.map(({ sent, checks, admission }) => ({
        sent,
        checks,
        ...admissionData(admission),
      })),
    })),
  }
}

const NEXT = `
Next:
  countersign dev                        serve your own policies over TLS and watch them
  countersign tokens new --cluster NAME  let a cluster in
  countersign build                      bundles for AWS Lambda and Cloudflare Workers
  README.md, "Quick start"               the way to a real cluster
`

function help(): string {
  const width = Math.max(...SCENARIOS.map(({ name }) => name.length))
  const list = SCENARIOS.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`).join('\n')
  return `
Scenarios:
${list}

Exit codes: 0 every verdict is the right one, 1 one is not, 2 bad usage.

Examples:
  $ countersign demo
  $ countersign demo --scenario unsigned forged-outcome --verbose
  $ countersign demo --output json
`
}
