import { Command, Option } from 'commander'
import type { Profile } from '#shared/cel/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { JsonValue } from '#shared/json.ts'
import { answerLines } from './cel/batch.ts'
import { readObject } from './cel/inputs.ts'
import {
  type CelRequest,
  type Input,
  type InputName,
  type PolicyVariable,
  PROFILES,
} from './cel/request.ts'
import { type CelAnswer, CelSession } from './cel/session.ts'
import { answerText } from './cel/text.ts'
import type { Cli, ExitCode, Format, Io } from './io.ts'
import { formatOption, print } from './output.ts'

interface CelOptions {
  object?: string
  oldObject?: string
  request?: string
  params?: string
  namespaceObject?: string
  var: string[]
  profile: Profile
  kubernetes?: string
  output: Format
}

/** `countersign cel`: one expression for people, or NDJSON from standard input for programs. */
export function celCommand(cli: Cli): Command {
  return new Command('cel')
    .description('Evaluate CEL as the API server does: value, type, exact cost, every error.')
    .argument('[expression]', 'an expression; without one, NDJSON is read from standard input')
    .option('--object <file>', 'YAML or JSON of `object`; - is standard input')
    .option('--old-object <file>', 'of `oldObject`')
    .option('--request <file>', 'of `request`')
    .option('--params <file>', 'of `params`')
    .option('--namespace-object <file>', 'of `namespaceObject`')
    .option('--var <name=expression>', 'a variable of the policy; may be repeated', collect, [])
    .addOption(
      new Option('--profile <name>', 'whose environment').choices(PROFILES).default('kubernetes'),
    )
    .option('--kubernetes <version>', 'the version to imitate, 1.30 to 1.37 (default: 1.37)')
    .addOption(formatOption())
    .addHelpText('after', HELP)
    .action(
      cli.action('cel', (expression: string | undefined, options: CelOptions) =>
        run(cli.io, expression, options),
      ),
    )
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

async function run(io: Io, expression: string | undefined, options: CelOptions): Promise<ExitCode> {
  const minor = options.kubernetes === undefined ? {} : { minor: minorOf(options.kubernetes) }
  const files = filesOf(options)
  if (expression === undefined) {
    refuseWithout(options, files)
    const session = await CelSession.open({ now: Date.now, ...minor })
    return answerLines(io, session, options.profile)
  }
  const request = await requestOf(io, expression, options, files)
  const session = await CelSession.open({ now: Date.now, ...minor })
  const answer = session.run(request)
  print(io, options.output, dataOf(answer), () => answerText(io, expression, answer))
  return answer.record.phase === 'ok' && answer.variables.length === 0 ? 0 : 1
}

type Files = readonly { name: InputName; file: string }[]

function filesOf(options: CelOptions): Files {
  const { object, oldObject, request, params, namespaceObject } = options
  const given = { object, oldObject, request, params, namespaceObject }
  // The names of the options are those of the inputs.
  return (Object.keys(given) as InputName[]).flatMap((name) => {
    const file = given[name]
    return file === undefined ? [] : [{ name, file }]
  })
}

/** Lines bring their own inputs: an option that would do nothing is a misunderstanding. */
function refuseWithout({ output, ...options }: CelOptions, files: Files): void {
  if (files.length > 0 || options.var.length > 0 || output !== 'text') {
    throw invalid('inputs, --var and --output go with an expression; NDJSON lines bring their own')
  }
}

async function requestOf(
  io: Io,
  expr: string,
  { profile, kubernetes, var: texts }: CelOptions,
  files: Files,
): Promise<CelRequest> {
  if (kubernetes !== undefined && profile !== 'kubernetes') {
    throw invalid('--kubernetes goes with --profile kubernetes')
  }
  const variables = texts.map(variableOf)
  if (profile !== 'spec') {
    const input = files.length === 0 ? {} : { input: await inputOf(io, files) }
    return { profile, expr, variables, ...input }
  }
  if (files.length > 0 || variables.length > 0) {
    throw invalid('--profile spec knows no inputs and no --var; NDJSON lines can bind variables')
  }
  const nothing = { vars: {}, bindings: {}, container: '', functions: [] }
  return { profile, expr, ...nothing, disableCheck: false, checkOnly: false }
}

async function inputOf(io: Io, files: Files): Promise<Input> {
  if (files.filter(({ file }) => file === '-').length > 1) {
    throw invalid('standard input can be one input only')
  }
  const input: Partial<Record<InputName, JsonValue>> = {}
  for (const { name, file } of files) input[name] = await readObject(io, file)
  return input
}

function variableOf(text: string): PolicyVariable {
  const match = /^\s*([A-Za-z_]\w*)\s*=(.*)$/s.exec(text)
  if (match === null) throw invalid(`--var wants name=expression, not ${JSON.stringify(text)}`)
  const [, name = '', expr = ''] = match
  return { name, expr }
}

function minorOf(version: string): number {
  const minor = /^v?1\.(\d{1,3})$/.exec(version)?.[1]
  if (minor === undefined) throw invalid(`--kubernetes wants a version such as 1.33`)
  return Number(minor)
}

/** The record with the faults as data, where there are any. */
function dataOf({ record, issues, variables }: CelAnswer): unknown {
  const placed = (all: CelAnswer['issues']) =>
    all.map(({ line, column, offset, message }) => ({ line, column, offset, message }))
  return {
    ...record,
    ...(issues.length === 0 ? {} : { issues: placed(issues) }),
    ...(variables.length === 0
      ? {}
      : {
          variables: variables.map((each) => ({
            name: each.name,
            error: each.error,
            issues: placed(each.issues),
          })),
        }),
  }
}

function invalid(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}

const HELP = `
Profiles: kubernetes is the API server's own environment; kyverno that of an image policy, without
what asks a cluster, a registry, the network or chance; spec is cel-go with all of its extensions.

An input that is not given is null once any is given; before that, no name is bound. YAML is read as
kubectl sends it, so 1.0 is an int there; in JSON it is a double.

NDJSON: each line is an object, each answer a line in the same order.
  in   {expr, input?: {object, oldObject, request, params, namespaceObject},
        variables?: [{name, expr}], profile?}
       {profile: spec, expr, vars?: {name: type}, bindings?: {name: value}, container?,
        disableCheck?}
  out  {phase, type, value, cost, varCost, error}, phase ok, parse, check, program, eval, or input
       for a line that is no request. Values have their type: {int: "1"}, {list: [...]}

Exit codes: 0 a value (NDJSON: every line was read), 1 an error of the expression, 2 bad input.

Examples:
  $ countersign cel '1 + 1 == 2'
  $ countersign cel 'object.spec.replicas <= 5' --object deployment.yaml
  $ countersign cel 'variables.images.all(i, i.contains("@"))' --object pod.yaml
      --var 'images=object.spec.containers.map(c, c.image)'
  $ kubectl get pod web -o yaml | countersign cel 'object.?spec.?hostNetwork' --object - -o json
  $ countersign cel --kubernetes 1.31 < expressions.ndjson
`
