import type { Admission, WebhookCall } from '#functions/local/apiserver.ts'
import type { ImageReviewCall } from '#functions/local/image-policy.ts'
import type { JsonPatchOperation } from '#shared/admission/types.ts'
import { type JsonValue, stringifyJson } from '#shared/json.ts'
import type { Io } from '../io.ts'
import { imagesOf } from './pod.ts'
import type { Act, Played } from './scenario.ts'

/** How wide the text may be, and whether whole bodies are shown. */
export interface Layout {
  columns: number
  verbose: boolean
}

type Paint = (text: string) => string

const INDENT = '  '
const LABEL_CHARS = 10
const MIN_COLUMNS = 60

/** One played scenario as text: what was sent, each call with its patch, the verdict, the message and the time. */
export function scenarioText(io: Io, played: Played, layout: Layout): string {
  const { bold, dim, green, red } = io.colors
  const mark = played.ok ? green('✓') : red('✗')
  const heading = `${mark} ${bold(played.name)}  ${played.title}  ${dim(time(played.ms))}`
  return [heading, ...played.acts.flatMap((act) => actLines(io, act, layout)), '', ''].join('\n')
}

function actLines(io: Io, { sent, admission, checks }: Act, layout: Layout): string[] {
  const { dim, green, red, yellow } = io.colors
  const verdict = admission.allowed
    ? labelled('admitted', imagesOf(admission.object).join(', '), layout, green)
    : labelled('denied', admission.message, layout, red)
  const proven = checks.filter(({ holds }) => holds).map(({ what }) => what)
  return [
    ...labelled('sent', sent, layout),
    ...admission.calls.flatMap((call) => callLines(io, call, admission.seal, layout)),
    ...admission.imageReviews.flatMap((call) => reviewLines(io, call, layout)),
    ...verdict,
    ...admission.warnings.flatMap((text) => labelled('warning', text, layout, yellow)),
    ...(proven.length > 0 ? labelled('✓', proven.join(', '), layout, dim) : []),
    ...checks.filter(({ holds }) => !holds).flatMap(({ what }) => labelled('✗', what, layout, red)),
  ]
}

function callLines(io: Io, call: WebhookCall, seal: string | undefined, layout: Layout): string[] {
  const requests = Object.entries(call.used).map(([name, count]) => `${name} ${count}`)
  const opened = call.phase === 'validate' && seal !== undefined ? [`seal ${seal}`] : []
  const summary = [time(call.ms), `requests: ${requests.join(', ')}`, ...opened].join(' · ')
  const details = layout.verbose
    ? bodyLines(call)
    : call.patch.map((one) => patchText(one, textWidth(layout)))
  return [
    ...labelled(call.phase, summary, layout),
    ...(call.failure === undefined ? [] : labelled('', call.failure, layout)),
    ...details.map((line) => INDENT + ' '.repeat(LABEL_CHARS) + io.colors.dim(line)),
  ]
}

function reviewLines(io: Io, call: ImageReviewCall, layout: Layout): string[] {
  const requests = Object.entries(call.used).map(([name, count]) => `${name} ${count}`)
  const { spec, status } = call
  const details = layout.verbose ? JSON.stringify({ spec, status }, null, 2).split('\n') : []
  return [
    ...labelled('review', `${time(call.ms)} · requests: ${requests.join(', ')}`, layout),
    ...(call.failure === undefined ? [] : labelled('', call.failure, layout)),
    ...details.map((line) => INDENT + ' '.repeat(LABEL_CHARS) + io.colors.dim(line)),
  ]
}

/** The whole request and the whole answer. */
function bodyLines({ request, response }: WebhookCall): string[] {
  return JSON.stringify({ request, response }, null, 2).split('\n')
}

/** One patch operation on one line: the value's end gives way, the place does not. */
function patchText(operation: JsonPatchOperation, room: number): string {
  const place = `${operation.op} ${'from' in operation ? `${operation.from} → ` : ''}${operation.path}`
  return 'value' in operation ? cut(`${place} = ${valueText(operation.value)}`, room) : place
}

function valueText(value: JsonValue): string {
  return shortened(typeof value === 'string' ? value : stringifyJson(value))
}

/** Digests to their first characters, which is enough to tell the few of a scenario apart. */
function shortened(text: string): string {
  return text.replaceAll(/(sha256[:-][0-9a-f]{8})[0-9a-f]+…?/g, '$1…')
}

/** Text under a label, wrapped at the layout's width with the following lines indented. */
function labelled(
  label: string,
  text: string,
  layout: Layout,
  paint: Paint = (line) => line,
): string[] {
  return wrap(layout.verbose ? text : shortened(text), textWidth(layout)).map(
    (line, index) => INDENT + paint((index === 0 ? label : '').padEnd(LABEL_CHARS) + line),
  )
}

function textWidth(layout: Layout): number {
  return Math.max(layout.columns, MIN_COLUMNS) - INDENT.length - LABEL_CHARS
}

/** The text in lines of at most `width`, broken at spaces; a longer word is broken where it has to be. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/).flatMap((long) => long.match(chunks(width)) ?? [''])) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

function chunks(width: number): RegExp {
  return new RegExp(`.{1,${width}}`, 'gu')
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}

function time(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}

/** What `--output json` and `yaml` print for one admission. */
export function admissionData(admission: Admission): object {
  const { calls, imageReviews, object, ...verdict } = admission
  return {
    ...verdict,
    images: imagesOf(object),
    calls: calls.map(({ phase, ms, used, failure, patch, request, response }) => ({
      phase,
      ms,
      used,
      ...(failure === undefined ? {} : { failure }),
      request,
      ...(response === undefined ? {} : { response }),
      patch,
    })),
    ...(imageReviews.length > 0 && { imageReviews }),
  }
}
