import { text } from 'countersign:deployment'
import { LAMBDA_MAX_BODY_BYTES } from '#shared/limits.ts'
import { parseDeployment } from './deployment.ts'
import { nodeHash } from './hash-node.ts'
import { jsonLog } from './log.ts'
import { STAGE_VARIABLE, stagedLog } from './metrics.ts'
import type { Platform } from './ports.ts'

/** The deployment this bundle was built around. */
export const deployment = parseDeployment(text)

/** Lambda: secrets in the environment, one log line per decision on standard output. */
export const platform: Platform = {
  env: process.env,
  log: stagedLog(
    jsonLog((line) => process.stdout.write(`${line}\n`)),
    process.env[STAGE_VARIABLE],
  ),
  hash: nodeHash,
  trustingFetch: async (ca) => (await import('./cluster/https.ts')).trustingFetch(ca),
  metrics: true,
  maxBodyBytes: LAMBDA_MAX_BODY_BYTES,
}
