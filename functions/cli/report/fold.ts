import { AdmissionError } from '#shared/errors.ts'
import { MAX_REPORT_RESULTS } from '#shared/limits.ts'
import type { EventStatus, PolicyEvent } from '#shared/report/event.ts'

/** Which events a report is about. */
export interface FoldOptions {
  /** Epoch milliseconds: nothing before it. */
  since?: number
  /** Names; all when absent. */
  clusters?: readonly string[]
  /** Keys or names; all when absent. */
  policies?: readonly string[]
  /** Leaves out requests that were denied, as Kyverno's admission reports do. */
  admittedOnly?: boolean
  maxResults?: number
}

/** The last word of one policy about one resource. */
export type Result = PolicyEvent & { policy: string; rule: string }

/** Events that were read and are no results, by why. */
export interface Omissions {
  dryRun: number
  mutate: number
  delete: number
  denied: number
  /** Denials that no policy came to a result for. */
  withoutPolicy: number
}

/**
 * Folds decisions into what holds now: of each policy, resource and cluster the last decision counts, whatever images it was about, so that
 * an image that is no longer there is in no report. As in Kyverno's, dry runs, the mutate phase and deletions are no results
 * (image-validating-policy.md 3.13); a deletion that was admitted ends those of the resource.
 */
export class Fold {
  readonly omitted: Omissions = { dryRun: 0, mutate: 0, delete: 0, denied: 0, withoutPolicy: 0 }
  readonly #options: FoldOptions
  readonly #results = new Map<string, { result: Result; time: number; keys: readonly string[] }>()
  /** When what has this key ended, epoch milliseconds. */
  readonly #ended = new Map<string, number>()

  constructor(options: FoldOptions = {}) {
    this.#options = options
  }

  /** Takes one more event, in any order. Throws `REQUEST_TOO_LARGE` past the bound: a report with gaps would mislead. */
  add(event: PolicyEvent): void {
    const time = Date.parse(event.time)
    if (!this.#isWanted(event, time)) return
    const why = omissionOf(event)
    if (why === 'delete' && event.verdict === 'allow') this.#end(resourceKey(event), time)
    if (why !== undefined) {
      this.omitted[why]++
      return
    }
    const { verdict, resource, policy = '', rule = policy } = event
    const result = { ...event, policy, rule }
    if (verdict === 'allow' && resource.generateName && resource.name) {
      // The same template gets in now.
      this.#end(keyOf(result, `${resource.generateName}*`), time)
    }
    if (verdict === 'deny' && this.#options.admittedOnly) this.omitted.denied++
    else this.#keep(result, time)
  }

  /** The results that hold, by cluster, namespace, kind, name and policy. */
  results(): Result[] {
    const left = [...this.#results.values()].filter(
      ({ time, keys }) => !keys.some((key) => (this.#ended.get(key) ?? -Infinity) >= time),
    )
    return left.map(({ result }) => result).sort(byPlace)
  }

  #isWanted({ cluster, policy }: PolicyEvent, time: number): boolean {
    const { since, clusters, policies } = this.#options
    return (
      time >= (since ?? -Infinity) &&
      (clusters?.includes(cluster) ?? true) &&
      (policies?.some((name) => name === policy || policy?.endsWith(`/${name}`)) ?? true)
    )
  }

  #keep(result: Result, time: number): void {
    const key = keyOf(result, placeOf(result))
    const known = this.#results.get(key)
    if (known !== undefined && known.time > time) return
    this.#results.set(key, { result, time, keys: [key, resourceKey(result)] })
    this.#demandRoom()
  }

  #end(key: string, time: number): void {
    this.#ended.set(key, Math.max(time, this.#ended.get(key) ?? time))
    this.#demandRoom()
  }

  #demandRoom(): void {
    const { maxResults = MAX_REPORT_RESULTS } = this.#options
    if (this.#results.size <= maxResults && this.#ended.size <= maxResults) return
    const message = `more than ${maxResults} results; take fewer with --since, --cluster or --policy`
    throw new AdmissionError('REQUEST_TOO_LARGE', message)
  }
}

/** How many results have each status. */
export function summaryOf(results: readonly Pick<Result, 'status'>[]): Record<EventStatus, number> {
  const summary = { pass: 0, fail: 0, warn: 0, error: 0, skip: 0 }
  for (const { status } of results) summary[status]++
  return summary
}

/** Images that stand for the name of a review. */
const MAX_PLACE_IMAGES = 5

/**
 * The name of a resource in reports. Controllers try again under a new name each time they are refused: these are one
 * resource, `<generateName>*`. An image review has no name and is told by its images.
 */
export function placeOf(event: PolicyEvent): string {
  const { phase, verdict, resource } = event
  const { name = '', generateName } = resource
  if (phase === 'image-review') {
    const images = imagesIn(event)
    const more = images.length - MAX_PLACE_IMAGES
    return images.slice(0, MAX_PLACE_IMAGES).join(', ') + (more > 0 ? ` and ${more} more` : '')
  }
  return generateName && (verdict === 'deny' || name === '') ? `${generateName}*` : name
}

function omissionOf({ dryRun, phase, operation, policy }: PolicyEvent) {
  if (dryRun) return 'dryRun'
  if (phase === 'mutate') return 'mutate'
  if (operation === 'DELETE') return 'delete'
  return policy === undefined ? 'withoutPolicy' : undefined
}

function imagesIn({ images }: PolicyEvent): string[] {
  return [...new Set(images.map(({ image }) => image))].sort()
}

function keyOf(result: Result, place: string): string {
  const { cluster, resource, policy, autogen, phase } = result
  const { group, kind, namespace, subresource } = resource
  const at = phase === 'image-review' ? imagesIn(result) : place
  return JSON.stringify([cluster, group, kind, namespace, at, subresource, policy, autogen])
}

function resourceKey(event: PolicyEvent): string {
  const { group, kind, namespace } = event.resource
  return JSON.stringify([event.cluster, group, kind, namespace, placeOf(event)])
}

function byPlace(a: Result, b: Result): number {
  const [left, right] = [orderOf(a), orderOf(b)]
  for (const [index, part] of left.entries()) {
    const other = right[index] ?? ''
    if (part !== other) return part < other ? -1 : 1
  }
  return 0
}

function orderOf(result: Result): string[] {
  const { cluster, resource, policy, autogen = '' } = result
  const { namespace = '', kind, group, subresource = '' } = resource
  return [cluster, namespace, kind, group, placeOf(result), subresource, policy, autogen]
}
