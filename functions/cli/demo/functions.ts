import type { App } from '#functions/app.ts'
import { trustingFetch } from '#functions/cluster/https.ts'
import type { Deployment } from '#functions/deployment.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { createImageReviewApp } from '#functions/image-review.ts'
import type { DevCertificates } from '#functions/local/tls.ts'
import { createMutateApp } from '#functions/mutate.ts'
import { startNodeServer } from '#functions/node.ts'
import type { Platform } from '#functions/ports.ts'
import { createValidateApp } from '#functions/validate.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'

/** The functions, each with a memory of its own, behind TLS. */
export interface RunningFunctions {
  /** `https://127.0.0.1:<port>` of each. */
  mutate: string
  validate: string
  imageReview: string
  /** The log record of an answered review, by the uid of its request. */
  record(uid: string): Readonly<Record<string, unknown>> | undefined
  close(): Promise<void>
}

/** Starts all of them with nothing in memory. */
export async function startFunctions(
  deployment: Deployment,
  options: { certificates: DevCertificates; env: Platform['env']; now: () => number },
): Promise<RunningFunctions> {
  const records = new Map<unknown, Readonly<Record<string, unknown>>>()
  const platform: Platform = {
    env: options.env,
    now: options.now,
    log: (record) => records.set(record.uid, record),
    hash: nodeHash,
    trustingFetch,
    maxBodyBytes: MAX_BODY_BYTES,
  }
  const serve = (app: App) => startNodeServer({ app, tls: options.certificates, host: '127.0.0.1' })
  const [mutate, validate, imageReview] = await Promise.all([
    serve(createMutateApp(deployment, platform)),
    serve(createValidateApp(deployment, platform)),
    serve(createImageReviewApp(deployment, platform)),
  ])
  return {
    mutate: `https://127.0.0.1:${mutate.port}`,
    validate: `https://127.0.0.1:${validate.port}`,
    imageReview: `https://127.0.0.1:${imageReview.port}`,
    record: (uid) => records.get(uid),
    close: async () => {
      await Promise.all([mutate.close(), validate.close(), imageReview.close()])
    },
  }
}
