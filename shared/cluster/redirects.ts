import { AdmissionError } from '../errors.ts'
import type { FetchPort } from '../ports.ts'
import { discard } from '../registry/body.ts'

/** A fetch that takes no redirect for an answer: it would carry a token, or a request, where nobody sent it. */
export function withoutRedirects(fetch: FetchPort): FetchPort {
  return async (url, init) => {
    const response = await fetch(url, init)
    if (response.status < 300 || response.status >= 400) return response
    discard(response)
    const { host, pathname } = new URL(url)
    const message = `${init.method ?? 'GET'} ${host}${pathname}: answers with a redirect (${response.status}), which is not followed`
    throw new AdmissionError('REGISTRY_RESPONSE_INVALID', message.slice(0, 500))
  }
}
