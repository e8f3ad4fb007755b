import { AdmissionError } from '../errors.ts'
import { MAX_REFERRER_PAGES, MAX_REFERRERS } from '../limits.ts'
import { errorCodeOf, type GuardedResponse } from './fetch.ts'
import { field, parseJsonObject } from './json-object.ts'
import { nextPage } from './link.ts'
import { descriptorsOf, essenceOf, OCI_INDEX } from './manifest.ts'
import type { Descriptor, Referrers } from './types.ts'

/** Statuses that say "no such call here". The specification has 404; registries that predate the call also give the others. */
const NO_SUCH_CALL: readonly number[] = [400, 404, 405, 406, 501]

/**
 * The referrers that a registry lists at this URL, or undefined when it has no referrers API and its fallback tag must be
 * read. A list is no proof of anything: each manifest says itself what it is and what it refers to. Pages are followed on
 * the same origin only, because the login goes with them. Nobody publishes the list as such, so one that cannot be read is
 * `REGISTRY_UNREACHABLE`, and one that is too long has more than are given.
 */
export async function listReferrers(
  first: URL,
  get: (page: URL) => Promise<GuardedResponse>,
): Promise<Referrers | undefined> {
  const found = new Map<string, Descriptor>()
  const what = `GET ${first.host}${first.pathname}`
  let page: URL | undefined = first
  for (let pages = 0; page !== undefined; pages++) {
    if (pages === MAX_REFERRER_PAGES || found.size >= MAX_REFERRERS) return atMost(found, true)
    const response = await unlessTooLarge(get(page))
    if (response === undefined) return atMost(found, true)
    if (pages === 0 && hasNoApi(response)) return undefined
    for (const each of readPage(response, what)) found.set(each.digest, each)
    page = nextPage(response.headers.get('link'), page)
    if (page !== undefined && page.origin !== first.origin) {
      throw unreadable(`${what}: continues at another origin`)
    }
  }
  return atMost(found, false)
}

/** The first `MAX_REFERRERS` of the descriptors, each digest once. */
export function distinct(descriptors: readonly Descriptor[]): Referrers {
  return atMost(new Map(descriptors.map((descriptor) => [descriptor.digest, descriptor])), false)
}

function atMost(found: ReadonlyMap<string, Descriptor>, goesOn: boolean): Referrers {
  const descriptors = [...found.values()].slice(0, MAX_REFERRERS)
  return { descriptors, omitted: found.size - descriptors.length + (goesOn ? 1 : 0) }
}

/** Whoever pushes chooses how long the entries are: a long page must not make what is on the others look absent. */
async function unlessTooLarge(answer: Promise<GuardedResponse>) {
  try {
    return await answer
  } catch (thrown) {
    if (thrown instanceof AdmissionError && thrown.code === 'REGISTRY_TOO_LARGE') return undefined
    throw thrown
  }
}

function readPage(response: GuardedResponse, what: string): readonly Descriptor[] {
  if (response.status !== 200) {
    throw unreadable(`${what}: answered ${response.status}${errorCodeOf(response)}`)
  }
  try {
    const index = parseJsonObject(response.body, what)
    // Some registries write an empty list as null.
    if (Array.isArray(field(index, 'manifests') ?? [])) return descriptorsOf(index)
  } catch (cause) {
    throw unreadable(`${what}: answered no list`, cause)
  }
  throw unreadable(`${what}: answered no list`)
}

/** Also a page of something else under that path, as catch-all web interfaces give it. */
function hasNoApi(response: GuardedResponse): boolean {
  if (NO_SUCH_CALL.includes(response.status)) return true
  return response.status === 200 && essenceOf(response.headers.get('content-type')) !== OCI_INDEX
}

function unreadable(message: string, cause?: unknown): AdmissionError {
  return new AdmissionError('REGISTRY_UNREACHABLE', message, { cause })
}
