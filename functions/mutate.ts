import { createMutate } from '#shared/engine/mutate.ts'
import type { App } from './app.ts'
import { compose } from './compose.ts'
import type { Deployment } from './deployment.ts'
import { createLive } from './live.ts'
import type { Platform } from './ports.ts'

/**
 * The mutate function: door → engine → answer. It always allows; what it gives back pins digests and carries sealed
 * outcomes. Nearly every call talks to a registry, so that part is loaded with it.
 */
export function createMutateApp(deployment: Deployment, platform: Platform): App {
  return compose(deployment, platform, { mutate: createMutate }, async () => ({ createLive }))
}
