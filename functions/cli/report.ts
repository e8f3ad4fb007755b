import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import { Command, Option } from 'commander'
import { parseDuration } from '#functions/deadline.ts'
import { fileReason } from '#functions/file-reason.ts'
import { AdmissionError } from '#shared/errors.ts'
import { REPORT_MAX_LINE_BYTES } from '#shared/limits.ts'
import { linesOf } from './cel/lines.ts'
import type { Cli, ExitCode, Io } from './io.ts'
import { csvLines } from './report/csv.ts'
import { reportDocuments } from './report/documents.ts'
import { Fold, type Omissions, type Result, summaryOf } from './report/fold.ts'
import { junitLines } from './report/junit.ts'
import { eventsIn } from './report/read.ts'
import { sarifLines } from './report/sarif.ts'
import { jsonLines, textLines } from './report/text.ts'

type ReportFormat = 'policyreport' | 'openreports' | 'sarif' | 'junit' | 'csv' | 'text' | 'json'

const WRITERS: Readonly<
  Record<ReportFormat, (io: Io, results: readonly Result[]) => Iterable<string>>
> = {
  policyreport: (_, results) => reportDocuments('policyreport', results),
  openreports: (_, results) => reportDocuments('openreports', results),
  sarif: (_, results) => sarifLines(results),
  junit: (_, results) => junitLines(results),
  csv: (_, results) => csvLines(results),
  text: textLines,
  json: (_, results) => jsonLines(results),
}

interface ReportOptions {
  format: ReportFormat
  since?: string
  cluster?: string[]
  policy?: string[]
  admitted?: boolean
  outputFile?: string
  failOn?: 'fail' | 'error'
}

/** `countersign report`: what the functions logged, folded into reports. */
export function reportCommand(cli: Cli): Command {
  return new Command('report')
    .description('Fold logged decisions into PolicyReports, OpenReports, SARIF, JUnit or CSV.')
    .argument('[files...]', 'logs or events, NDJSON, also .gz; - is standard input', ['-'])
    .addOption(
      new Option('-f, --format <format>', 'what to write')
        .choices(Object.keys(WRITERS))
        .default('text'),
    )
    .option('--since <time>', 'nothing before: 24h, or 2026-11-30T00:00:00Z')
    .option('--cluster <name...>', 'these clusters only')
    .option('--policy <name...>', 'these policies only, by name or namespace/name')
    .option('--admitted', 'leave out requests that were denied')
    .option('--output-file <file>', 'write there')
    .addOption(
      new Option('--fail-on <status>', 'exit 1 on these; fail means errors too').choices([
        'fail',
        'error',
      ]),
    )
    .addHelpText('after', HELP)
    .action(
      cli.action('report', (files: string[], options: ReportOptions) =>
        report(cli.io, files, options),
      ),
    )
}

async function report(io: Io, files: readonly string[], options: ReportOptions): Promise<ExitCode> {
  const fold = new Fold({
    ...(options.since !== undefined && { since: sinceOf(options.since, Date.now()) }),
    ...(options.cluster !== undefined && { clusters: options.cluster }),
    ...(options.policy !== undefined && { policies: options.policy }),
    admittedOnly: options.admitted === true,
  })
  const read = { events: 0, unreadable: 0 }
  for (const file of files) await readInto(fold, io, file, read)
  const results = fold.results()
  await write(io, options, WRITERS[options.format](io, results))
  io.err(notes(fold.omitted, read, results, options))
  const { fail, error } = summaryOf(results)
  if (options.failOn === undefined) return 0
  if (error > 0 || (options.failOn === 'fail' && fail > 0)) return 1
  // What was not found or not read may be what it is to exit on.
  return read.events === 0 || read.unreadable > 0 ? 2 : 0
}

async function readInto(
  fold: Fold,
  io: Io,
  file: string,
  read: { events: number; unreadable: number },
): Promise<void> {
  const stream = file === '-' ? io.input : opened(file)
  try {
    for await (const lines of linesOf(stream, REPORT_MAX_LINE_BYTES)) {
      for (const line of lines) {
        const { events, unreadable } =
          'fault' in line ? { events: [], unreadable: 1 } : eventsIn(line.text)
        for (const event of events) fold.add(event)
        read.events += events.length
        read.unreadable += unreadable
      }
    }
  } catch (thrown) {
    throw unreadableFile(file, thrown)
  }
}

function opened(file: string): AsyncIterable<Uint8Array> {
  const stream = createReadStream(file)
  if (!file.endsWith('.gz')) return stream
  const unzipped = createGunzip()
  stream.on('error', (error) => unzipped.destroy(error))
  return stream.pipe(unzipped)
}

function unreadableFile(file: string, thrown: unknown): unknown {
  const isFault = thrown instanceof Error && 'code' in thrown
  if (thrown instanceof AdmissionError || !isFault) return thrown
  return new AdmissionError('CONFIG_INVALID', `cannot read ${file}: ${fileReason(thrown)}`)
}

async function write(io: Io, { outputFile }: ReportOptions, parts: Iterable<string>) {
  if (outputFile === undefined) {
    for (const part of parts) {
      io.out(part)
      await io.drained()
    }
    return
  }
  let file: FileHandle | undefined
  try {
    file = await open(outputFile, 'w')
    for (const part of parts) await file.write(part)
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown)) throw thrown
    throw new AdmissionError('CONFIG_INVALID', `cannot write ${outputFile}: ${fileReason(thrown)}`)
  } finally {
    await file?.close()
  }
}

/** What a reader would miss otherwise, a line each. */
function notes(
  omitted: Omissions,
  read: { events: number; unreadable: number },
  results: readonly Result[],
  { format }: ReportOptions,
): string {
  const clusters = new Set(results.map(({ cluster }) => cluster))
  const isForOne = format === 'policyreport' || format === 'openreports'
  const said = [
    read.events === 0
      ? 'no event found: functions log them unless their config says events: {log: false}'
      : '',
    read.unreadable > 0 ? `${read.unreadable} lines or events could not be read` : '',
    omitted.withoutPolicy > 0
      ? `${omitted.withoutPolicy} requests were denied before any policy came to a result`
      : '',
    isForOne && clusters.size > 1
      ? `reports of ${clusters.size} clusters: apply each to its own, with --cluster`
      : '',
  ]
  return said
    .filter(Boolean)
    .map((note) => `countersign report: ${note}\n`)
    .join('')
}

function sinceOf(text: string, now: number): number {
  const days = /^(\d{1,5})d$/.exec(text)?.[1]
  const ago = days === undefined ? parseDuration(text) : Number(days) * 86_400_000
  if (ago !== undefined) return now - ago
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return time
  const message = `--since ${JSON.stringify(text)}: expected a time such as 24h, 7d or 2026-11-30T00:00:00Z`
  throw new AdmissionError('CONFIG_INVALID', message)
}

const HELP = `
The last decision of each policy about each resource counts. Dry runs, the mutate phase and
deletions are in no report. Reports have names that follow from cluster and resource, so that
applying them again replaces them.

Exit codes: 0 fine, 1 --fail-on found something, 2 bad input, also nothing to find something in.

Examples:
  $ aws logs tail /aws/lambda/countersign-validate --since 1d | countersign report
  $ countersign report validate.log --cluster prod-eu --format policyreport | kubectl apply --server-side -f -
  $ countersign report events/*.ndjson.gz --format sarif --output-file countersign.sarif
  $ countersign report validate.log --since 24h --format junit --fail-on fail
`
