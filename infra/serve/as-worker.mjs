/**
 * The answer of a Worker to a request that came over a connection of ours. Workers read the caller's address from a header that Cloudflare
 * overwrites; here it is ours to do, or callers would choose their address. Client certificates are Cloudflare's to check: nobody has one.
 */
export function asWorker(worker, env, request, address) {
  const headers = new Headers(request.headers)
  // Never absent: without an address of a caller no range holds it.
  headers.set('cf-connecting-ip', address)
  return worker.fetch(new Request(request, { headers }), env, { waitUntil: () => undefined })
}
