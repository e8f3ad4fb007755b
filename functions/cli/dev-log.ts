import type { LogPort } from '#shared/ports.ts'
import type { Io } from './io.ts'

/** A LogPort that prints one line per request: time, phase, verdict, object, what it took, and why not. */
export function devLog(io: Io): LogPort {
  return (record) => {
    const line = lineOf(io, record)
    if (line !== undefined) io.out(`${clock()} ${line}\n`)
  }
}

function lineOf(io: Io, record: Readonly<Record<string, unknown>>): string | undefined {
  switch (record.event) {
    case 'decision':
      return decisionLine(io, record)
    // The line of the decision says it.
    case 'policy':
      return undefined
    case 'refused':
      return io.colors.yellow(
        `refused  ${words(record.phase, record.cluster)}: ${refusalText(record.refusal)}`,
      )
    default:
      return io.colors.yellow(JSON.stringify({ ...record, level: undefined }))
  }
}

function refusalText(refusal: unknown): string {
  return refusal === 'image-review' ? 'the config has no imageReview for it' : `wrong ${refusal}`
}

function decisionLine(io: Io, record: Readonly<Record<string, unknown>>): string {
  const { green, red, dim } = io.colors
  const { phase, verdict, cluster, kind, namespace, name, operation, seal, calls, ms } = record
  const { message, wouldDeny } = record
  const paint = verdict === 'allow' ? green : red
  const object = [cluster, namespace, kind, name].filter((part) => part !== undefined).join('/')
  const used = calls === undefined ? '' : `calls ${JSON.stringify(calls)}`
  const took = words(`${ms} ms`, seal === undefined ? undefined : `seal ${seal}`, used)
  const told = message ?? (wouldDeny === undefined ? undefined : `audit mode: ${wouldDeny}`)
  const said = told === undefined ? '' : `\n         ${told}`
  return `${String(phase).padEnd(8)} ${paint(String(verdict))} ${words(operation, object)}  ${dim(took)}${said}`
}

/** What is there, in one line. */
function words(...parts: readonly unknown[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join(' ')
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8)
}
