import type { ServerResponse } from 'node:http'
import { pour } from './loopback.ts'
import type { RegistryFault } from './registry-faults.ts'

/** A complete answer before it is sent. */
export interface RegistryReply {
  status: number
  headers: Record<string, string>
  body: Buffer
}

/** Sends the reply as the fault wants it: late, cut, endless, elsewhere; or as it is. */
export function answer(
  response: ServerResponse,
  method: string,
  target: string,
  reply: () => RegistryReply,
  fault: RegistryFault | undefined,
): void {
  switch (fault?.kind) {
    case 'down':
      response.destroy()
      return
    case 'stall':
      return
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      pour(response)
      return
    case 'content-length':
      response.writeHead(200, { 'content-length': String(fault.bytes) })
      response.write('{')
      return
    case 'redirect':
      response.writeHead(302, { location: fault.to }).end()
      return
    case 'redirect-loop':
      response.writeHead(302, { location: target }).end()
      return
    case 'status':
      response.writeHead(fault.status, fault.headers ?? {}).end(fault.body ?? '')
      return
    case 'slow':
      drip(response, reply(), fault.everyMs)
      return
    case 'media-type':
      finish(response, method, withType(reply(), fault.mediaType))
      return
    case 'wrong-bytes':
      finish(response, method, withOtherBytes(reply()))
      return
    default:
      finish(response, method, reply())
  }
}

function finish(response: ServerResponse, method: string, reply: RegistryReply): void {
  const length = { 'content-length': String(reply.body.length) }
  response.writeHead(reply.status, { ...length, ...reply.headers })
  response.end(method === 'HEAD' ? undefined : reply.body)
}

function withType(reply: RegistryReply, mediaType: string): RegistryReply {
  return { ...reply, headers: { ...reply.headers, 'content-type': mediaType } }
}

/** As long as the right content and nearly the same: JSON stays JSON, and the digest header lies. */
function withOtherBytes(reply: RegistryReply): RegistryReply {
  const body = Buffer.from(reply.body)
  const at = body.lastIndexOf('"size":')
  if (at < 0) body[0] = (body[0] ?? 0) ^ 1
  else body[at + 7] = body[at + 7] === 0x31 ? 0x32 : 0x31
  return { ...reply, body }
}

function drip(response: ServerResponse, reply: RegistryReply, everyMs: number): void {
  response.writeHead(reply.status, reply.headers)
  let at = 0
  const timer = setInterval(() => {
    if (at === reply.body.length) response.end()
    else response.write(reply.body.subarray(at, ++at))
  }, everyMs)
  response.once('close', () => clearInterval(timer))
}
