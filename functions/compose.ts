import type { Phase } from '#shared/admission/response.ts'
import type { ContextPorts } from '#shared/cluster/types.ts'
import type { Live } from '#shared/engine/inquiry.ts'
import { createIsolate, type Isolate } from '#shared/engine/isolate.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { type App, createApp, type ImageReviews } from './app.ts'
import type { Config } from './config.ts'
import type { Deployment } from './deployment.ts'
import type { ImageReviewOptions } from './image-review-answer.ts'
import type { createLive } from './live.ts'
import { followBundles } from './policy-bundle/follow.ts'
import { keyRingFrom, kmsFrom, missingVariables, type Platform } from './ports.ts'
import { lazyEvents } from './tell.ts'
import { UnderWay } from './under-way.ts'

/** Gives the part that talks to registries, when it is first needed. */
export type LiveLoader = () => Promise<{ createLive: typeof createLive }>

/** Loads it as a chunk of its own. */
export const loadLive: LiveLoader = () => import('./live.ts')

/** What makes the flow of each phase an app answers for. One that is not named here is in no bundle of that app. */
export type Flows = { [P in Phase]?: (isolate: Isolate) => ImagePolicyEngine[P] } & {
  imageReviews?: (options: ImageReviewOptions) => () => Promise<ImageReviews>
}

/** Makes the app of a deployment, with what it shares with every other one that was made here. */
export type Assemble = (deployment: Deployment, flows: Flows) => App

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
  const { config } = deployment
  const { log, env } = platform
  const missing = missingVariables(config, env)
  if (missing.length > 0) log({ level: 'error', event: 'start', missingVariables: missing })
  const audited = config.clusters.flatMap(({ name, mode }) => (mode === 'audit' ? [name] : []))
  if (audited.length > 0) log({ level: 'warn', event: 'audit-mode', clusters: audited })
  const assemble = assembly(config, platform, live)
  return config.policyBundle === undefined
    ? assemble(deployment, flows)
    : followBundles({ deployment, platform, flows, assemble })
}

/** The apps of one config share all that knows no policies: connections, logins, keys, and events that wait to be sent. */
function assembly(config: Config, platform: Platform, live: LiveLoader): Assemble {
  const { now = Date.now, log, hash, maxBodyBytes } = platform
  const kms = kmsFrom(platform)
  const keyRing = keyRingFrom(config, platform, kms)
  const events = lazyEvents(config, platform)
  const metrics = platform.metrics === true && config.metrics !== false
  const underWay = new UnderWay()
  // A deployment may bring keys of its own, and verdicts are kept with what verified them.
  const loaded = new WeakMap<Config['kms'], Live>()
  let context: ContextPorts | undefined
  return ({ config, policies, hash: id }, flows) => {
    const isolate = createIsolate({
      policies,
      live: async () => {
        const { createLive } = await live()
        // Requests that got here together share the one that was first.
        const made = loaded.get(config.kms) ?? createLive(config, platform, kms)
        loaded.set(config.kms, made)
        return made
      },
      context: async () => {
        const { createContextPorts } = await import('./cluster/ports.ts')
        context ??= createContextPorts(config, platform)
        return context
      },
      keyRing,
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
    const deployment = { config, policies, hash: id }
    const imageReviews = flows.imageReviews?.({ deployment, isolate, hash })
    const parts = { deployment, engine, imageReviews }
    return createApp({ ...parts, underWay, maxBodyBytes, now, log, hash, events, metrics })
  }
}
