import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PolicyEvent } from '#shared/report/event.ts'

/** A request as the sink got it. */
export interface Received {
  path: string
  headers: http.IncomingHttpHeaders
  body: string
}

/** An HTTP server on loopback that keeps what it gets and answers as told. */
export async function startSink(
  answer: (response: http.ServerResponse, received: Received) => void = (response) =>
    response.end(),
) {
  const received: Received[] = []
  const server = http.createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const each = { path: request.url ?? '', headers: request.headers, body }
    received.push(each)
    answer(response, each)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/events`,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** An event of a pass, changed by `more`. */
export function eventWith(more: Partial<PolicyEvent> = {}): PolicyEvent {
  const uid = more.uid ?? '11111111-2222-3333-4444-555555555555'
  const { policy = 'signed' } = more
  return {
    event: 'policy',
    id: `${uid}:validate:${policy}`,
    time: '2026-11-30T10:00:00.000Z',
    cluster: 'prod',
    phase: 'validate',
    uid,
    operation: 'CREATE',
    resource: {
      group: 'apps',
      version: 'v1',
      resource: 'deployments',
      kind: 'Deployment',
      namespace: 'shop',
      name: 'web',
    },
    verdict: 'allow',
    policy,
    policyKind: 'ImageValidatingPolicy',
    rule: policy,
    policyHash: 'abcdefabcdef',
    status: 'pass',
    action: 'allow',
    images: [{ image: 'registry.example.com/web:1', verifiedBy: ['release'] }],
    checks: { sealed: 1, cached: 0, live: 0 },
    seal: 'open',
    ms: 3,
    deployment: 'dddddddddddd',
    ...more,
  }
}
