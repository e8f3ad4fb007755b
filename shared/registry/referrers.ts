import { AdmissionError } from '../errors.ts'
import { MAX_REFERRER_PAGES, MAX_REFERRERS } from '../limits.ts'
import { errorCodeOf, type GuardedResponse } from './fetch.ts'
import { parseJsonObject } from './json-object.ts'
import { nextPage } from './link.ts'
import { descriptorsOf, essenceOf, OCI_INDEX } from './manifest.ts'
import type { Descriptor } from './types.ts'

/** Statuses that say "no such call here". The specification has 404; registries that predate the call also give the others. */
const NO_SUCH_CALL: readonly number[] = [400, 404, 405, 406, 501]

/**
 * The referrers that a registry lists at this URL, or undefined when it has no referrers API and its fallback tag must be
 * read. A list is no proof of anything: each manifest says itself what it is and what it refers to. Pages are followed on
 * the same origin only, because the login goes with them.
 */
export async function listReferrers(
  first: URL,
  get: (page: URL) => Promise<GuardedResponse>,
): Promise<readonly Descriptor[] | undefined> {
  const found: Descriptor[] = []
  let page: URL | undefined = first
  for (let pages = 0; page !== undefined && pages < MAX_REFERRER_PAGES; pages++) {
    const what: string = `GET ${first.host}${first.pathname}`
    const response: GuardedResponse = await get(page)
    if (pages === 0 && hasNoApi(response)) return undefined
    if (response.status !== 200) {
      const said = `${response.status}${errorCodeOf(response)}`
      throw new AdmissionError('REGISTRY_UNREACHABLE', `${what}: answered ${said}`)
    }
    found.push(...descriptorsOf(parseJsonObject(response.body, what)))
    page = nextPage(response.headers.get('link'), page)
    if (page !== undefined && page.origin !== first.origin) {
      throw new AdmissionError('REGISTRY_RESPONSE_INVALID', `${what}: continues at another origin`)
    }
    if (found.length >= MAX_REFERRERS) break
  }
  return distinct(found)
}

/** The first `MAX_REFERRERS` of the descriptors, each digest once. */
export function distinct(descriptors: readonly Descriptor[]): readonly Descriptor[] {
  const byDigest = new Map(descriptors.map((descriptor) => [descriptor.digest, descriptor]))
  return [...byDigest.values()].slice(0, MAX_REFERRERS)
}

/** Also a page of something else under that path, as catch-all web interfaces give it. */
function hasNoApi(response: GuardedResponse): boolean {
  if (NO_SUCH_CALL.includes(response.status)) return true
  return response.status === 200 && essenceOf(response.headers.get('content-type')) !== OCI_INDEX
}
