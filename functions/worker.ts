import { text } from 'countersign:deployment'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import type { App } from './app.ts'
import { type TlsClientAuth, verifiedCertificate } from './certificate-worker.ts'
import { compose } from './compose.ts'
import { parseDeployment } from './deployment.ts'
import { ALL_FLOWS } from './flows.ts'
import { portableHash } from './hash-portable.ts'
import { jsonLog } from './log.ts'
import type { Environment } from './ports.ts'

const deployment = parseDeployment(text)
const log = jsonLog((line) => console.log(line))

/** The member we use of a Worker's execution context. */
interface Context {
  waitUntil(work: Promise<void>): void
}

/** Made with the first request, because bindings come with requests; the bindings of an isolate never change. */
let app: App | undefined

/** Both phases and image reviews in one Worker. Cloudflare overwrites `CF-Connecting-IP`, so callers cannot write it. */
export default {
  fetch(request: Request, env: Environment, context?: Context): Response | Promise<Response> {
    app ??= compose(
      deployment,
      { env, log, hash: portableHash, maxBodyBytes: MAX_BODY_BYTES },
      ALL_FLOWS,
    )
    return app.fetch(request, {
      address: request.headers.get('cf-connecting-ip') ?? undefined,
      // Set by Cloudflare; callers cannot write it.
      certificate: () =>
        verifiedCertificate(
          (request as { cf?: { tlsClientAuth?: TlsClientAuth } }).cf?.tlsClientAuth,
        ),
      afterAnswer: (work) => context?.waitUntil(work),
    })
  },
}
