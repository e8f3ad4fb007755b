import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The port of a server that was made to listen on the loopback interface. Rejects when the port is taken; 0 picks a free one. */
export async function listenLocally(server: Server, port = 0): Promise<number> {
  // Longer than a busy machine takes between two requests: a client would find its connection cut.
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  // A TCP server has an AddressInfo; strings belong to pipes.
  return (server.address() as AddressInfo).port
}

/** Cuts every connection and waits until the server is closed, which it may be already. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

/** The whole body of a request. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  // An http request gives Buffers unless an encoding was set.
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

const CHUNK = Buffer.alloc(64 * 1024, ' ')

/** Sends until nobody reads any more. */
export function pour(response: ServerResponse): void {
  const more = () => {
    while (!response.destroyed && response.write(CHUNK));
  }
  response.on('drain', more)
  more()
}
