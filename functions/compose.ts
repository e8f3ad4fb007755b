import type { Phase } from '#shared/admission/response.ts'
import type { ContextPorts } from '#shared/cluster/types.ts'
import type { Live } from '#shared/engine/inquiry.ts'
import { createIsolate, type Isolate } from '#shared/engine/isolate.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { type App, createApp } from './app.ts'
import type { Deployment } from './deployment.ts'
import type { createLive } from './live.ts'
import { keyRingFrom, kmsFrom, missingVariables, type Platform } from './ports.ts'
import { lazyEvents } from './tell.ts'

/** Gives the part that talks to registries, when it is first needed. */
export type LiveLoader = () => Promise<{ createLive: typeof createLive }>

/** Loads it as a chunk of its own. */
export const loadLive: LiveLoader = () => import('./live.ts')

/** What makes the flow of each phase an app answers for. One that is not named here is in no bundle of that app. */
export type Flows = { [P in Phase]?: (isolate: Isolate) => ImagePolicyEngine[P] }

/**
 * The app of a deployment on a platform, for the phases of the given flows. What the platform lacks is logged once and reported by
 * whatever needs it; the app itself always comes up, so that there is somebody to deny.
 */
export function compose(
  deployment: Deployment,
  platform: Platform,
  flows: Flows,
  live: LiveLoader = loadLive,
): App {
  const { now = Date.now, log, hash, maxBodyBytes, env } = platform
  const { config, policies } = deployment
  const kms = kmsFrom(platform)
  const missing = missingVariables(config, env)
  if (missing.length > 0) log({ level: 'error', event: 'start', missingVariables: missing })
  const audited = config.clusters.flatMap(({ name, mode }) => (mode === 'audit' ? [name] : []))
  if (audited.length > 0) log({ level: 'warn', event: 'audit-mode', clusters: audited })
  let loaded: Live | undefined
  let context: ContextPorts | undefined
  const isolate = createIsolate({
    policies,
    live: async () => {
      const { createLive } = await live()
      // Requests that got here together share the one that was first.
      loaded ??= createLive(config, platform, kms)
      return loaded
    },
    context: async () => {
      const { createContextPorts } = await import('./cluster/ports.ts')
      context ??= createContextPorts(config, platform)
      return context
    },
    keyRing: keyRingFrom(config, platform, kms),
    outcomes: {
      onMissing: config.outcomes.onMissing,
      lifetimeMs: config.outcomes.lifetimeSeconds * 1000,
    },
    now,
  })
  const engine: Partial<ImagePolicyEngine> = {
    ...(flows.mutate && { mutate: flows.mutate(isolate) }),
    ...(flows.validate && { validate: flows.validate(isolate) }),
  }
  const events = lazyEvents(config, platform)
  const metrics = platform.metrics === true && config.metrics !== false
  return createApp({ deployment, engine, maxBodyBytes, now, log, hash, events, metrics })
}
