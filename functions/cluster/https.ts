import { request } from 'node:https'
import { Readable } from 'node:stream'
import type { TrustingFetch } from '#shared/ports.ts'

/**
 * A fetch of Node that trusts the certificates of a PEM bundle and no others: the platform's own `fetch` takes none. Redirects come back as
 * they are. Rejects with the error of the connection, whose code says what is wrong with a certificate.
 */
export const trustingFetch: TrustingFetch = async (ca) => (url, init) =>
  new Promise((resolve, reject) => {
    const { method = 'GET', headers, body, signal } = init
    const sent = request(
      url,
      // What is left to the options of a request would be looked up in the environment by some platforms.
      {
        method,
        headers: Object.fromEntries(new Headers(headers)),
        ca,
        signal: signal ?? undefined,
      },
      (received) => {
        const { statusCode = 0, headers: answered } = received
        const entries = Object.entries(answered).flatMap(([name, value]): [string, string][] =>
          (Array.isArray(value) ? value : [value ?? '']).map((each) => [name, each]),
        )
        const isEmpty = statusCode === 204 || statusCode === 205 || statusCode === 304
        if (isEmpty) received.resume()
        // Node's web streams are those of the platform; its types just say so nowhere.
        const stream = isEmpty ? null : (Readable.toWeb(received) as ReadableStream<Uint8Array>)
        try {
          resolve(new Response(stream, { status: statusCode, headers: entries }))
        } catch (thrown) {
          // A status that no response may have.
          received.destroy()
          reject(thrown)
        }
      },
    )
    sent.once('error', reject)
    sent.end(typeof body === 'string' ? body : undefined)
  })
