// Serves the Worker's bundle in Bun:
//   bun infra/serve/bun.mjs dist/worker/index.mjs
// `PORT` says where (a free port when it is 0); TLS_CERT_FILE and TLS_KEY_FILE are PEM files, without which something in front has to speak TLS.
import path from 'node:path'
import process from 'node:process'
import { asWorker } from './as-worker.mjs'

const { Bun } = globalThis
const { env } = process
const { default: worker } = await import(path.resolve(process.argv[2] ?? ''))

const server = Bun.serve({
  port: Number(env.PORT ?? 8443),
  ...(env.TLS_CERT_FILE && {
    tls: { cert: Bun.file(env.TLS_CERT_FILE), key: Bun.file(env.TLS_KEY_FILE ?? '') },
  }),
  fetch: (request) => asWorker(worker, env, request, server.requestIP(request)?.address ?? ''),
})
console.log(JSON.stringify({ event: 'listening', port: server.port }))
