import type { Profile } from '#shared/cel/types.ts'
import { toAdmissionError } from '#shared/errors.ts'
import { parseJson } from '#shared/json.ts'
import { CEL_MAX_LINE_BYTES } from '#shared/limits.ts'
import type { ExitCode, Io } from '../io.ts'
import { type Line, linesOf } from './lines.ts'
import { toCelRequest } from './request.ts'
import type { CelRecord, CelSession } from './session.ts'

/** Records are written together until there are so many characters of them. */
const BATCH_CHARS = 64 * 1024

/**
 * Answers every line of standard input with one line, in the same order. A line that is no request is answered with a record of
 * phase `input`, and the run goes on; at its end that is bad input, told apart from expressions that merely fail.
 */
export async function answerLines(
  io: Io,
  session: CelSession,
  profile: Profile,
): Promise<ExitCode> {
  let bad = 0
  let count = 0
  for await (const lines of linesOf(io.input, CEL_MAX_LINE_BYTES)) {
    let batch = ''
    for (const line of lines) {
      if (io.signal.aborted) return 1
      const record = answer(line, session, profile)
      count++
      if (record.phase === 'input') bad++
      batch += `${JSON.stringify(record)}\n`
      if (batch.length < BATCH_CHARS) continue
      io.out(batch)
      batch = ''
      await io.drained()
    }
    if (batch !== '') io.out(batch)
    await io.drained()
  }
  // The input ends when the process is told to stop, but then not all of it was answered.
  if (io.signal.aborted) return 1
  if (bad === 0) return 0
  io.err(`countersign cel: ${bad} of ${count} lines could not be used\n`)
  return 2
}

function answer(line: Line, session: CelSession, profile: Profile): CelRecord {
  if ('fault' in line) return { phase: 'input', error: line.fault }
  try {
    return session.run(toCelRequest(parseJson(line.text), profile)).record
  } catch (thrown) {
    // One line must not end the run of ten thousand, whatever is wrong with it.
    return { phase: 'input', error: toAdmissionError(thrown, 'reading a line').message }
  }
}
