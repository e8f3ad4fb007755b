import type { Io } from '../io.ts'
import { placeOf, type Result, summaryOf } from './fold.ts'

/** Statuses that `--format text` lists; passes and skips are only counted. */
const LISTED: readonly Result['status'][] = ['fail', 'error', 'warn']

/** `prod/shop/Deployment/web`, the subresource behind it. */
export function resourceText(result: Result): string {
  const { namespace, kind, subresource } = result.resource
  const parts = [result.cluster, namespace, kind, placeOf(result), subresource]
  return parts.filter(Boolean).join('/')
}

/** For people: what is not well, one paragraph each, and how many there are of everything. */
export function* textLines(io: Io, results: readonly Result[]): Generator<string> {
  const { bold, dim, red, yellow } = io.colors
  for (const result of results) {
    const { status, policy, action, message = '', images, time } = result
    if (!LISTED.includes(status)) continue
    const paint = action === 'deny' ? red : yellow
    yield `${paint(status.padEnd(5))} ${bold(plain(resourceText(result)))}  ${plain(policy)}  ${dim(`${action}, ${time}`)}\n`
    if (message !== '') yield `      ${plain(message)}\n`
    for (const { image, verifiedBy } of images) {
      const by = verifiedBy.length > 0 ? `  verified by ${verifiedBy.join(', ')}` : ''
      yield `      ${dim(plain(`${image}${by}`))}\n`
    }
  }
  const summary = summaryOf(results)
  const counts = Object.entries(summary).map(([status, count]) => `${count} ${status}`)
  yield `${results.length} results: ${counts.join(', ')}\n`
}

/** Without what would move the cursor or change colours: messages hold what whoever makes a Pod wrote. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
}

/** JSON: the summary and every result as the event it comes from. */
export function* jsonLines(results: readonly Result[]): Generator<string> {
  yield `{"summary":${JSON.stringify(summaryOf(results))},"results":[`
  for (const [at, result] of results.entries()) {
    yield `${at === 0 ? '\n' : ',\n'}${JSON.stringify(result)}`
  }
  yield '\n]}\n'
}
