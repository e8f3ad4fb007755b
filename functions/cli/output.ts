import { Option } from 'commander'
import { stringify } from 'yaml'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { type ExitCode, FORMATS, type Format, type Io } from './io.ts'

/** Prints data as JSON or YAML, or what `text` gives. JSON and YAML hold the same members, in the same order. */
export function print(io: Io, format: Format, data: unknown, text: () => string): void {
  io.out(rendered(format, data, text))
}

function rendered(format: Format, data: unknown, text: () => string): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(data, null, 2)}\n`
    case 'yaml':
      return stringify(data)
    case 'text':
      return text()
  }
}

/** Prints one line that says what is wrong and below it every fault with its place. Returns the exit code for bad input. */
export function printError(io: Io, command: string, thrown: unknown): ExitCode {
  io.err(`${command}: ${errorText(thrown)}\n`)
  if (thrown instanceof AdmissionError) io.err(faultList(thrown.faults))
  return 2
}

/** Faults one a line: `file:line:column  message`. */
export function faultList(faults: readonly Fault[]): string {
  return faults.map(({ path, message }) => `  ${path}  ${oneLine(message)}\n`).join('')
}

function errorText(thrown: unknown): string {
  if (thrown instanceof AdmissionError) return oneLine(thrown.message)
  // Whatever else reaches the top is ours to fix; its stack helps nobody who runs a command.
  return `unexpected ${oneLine(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown))}`
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}

/** The `--output` option of commands that print data. */
export function formatOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(FORMATS).default('text')
}
