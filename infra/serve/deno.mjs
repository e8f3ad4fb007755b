// Serves the Worker's bundle in Deno:
//   deno run --allow-net --allow-env --allow-read infra/serve/deno.mjs dist/worker/index.mjs
// `PORT` says where (a free port when it is 0); TLS_CERT_FILE and TLS_KEY_FILE are PEM files, without which something in front has to speak TLS.
import { pathToFileURL } from 'node:url'
import { asWorker } from './as-worker.mjs'

const { Deno } = globalThis
const env = Deno.env.toObject()
const { default: worker } = await import(pathToFileURL(Deno.realPathSync(Deno.args[0])).href)

Deno.serve(
  {
    port: Number(env.PORT ?? 8443),
    ...(env.TLS_CERT_FILE && {
      cert: Deno.readTextFileSync(env.TLS_CERT_FILE),
      key: Deno.readTextFileSync(env.TLS_KEY_FILE ?? ''),
    }),
    onListen: ({ port }) => console.log(JSON.stringify({ event: 'listening', port })),
  },
  (request, { remoteAddr }) => asWorker(worker, env, request, remoteAddr.hostname),
)
