import { createValidate } from '#shared/engine/validate.ts'
import type { App } from './app.ts'
import { compose } from './compose.ts'
import type { Deployment } from './deployment.ts'
import type { Platform } from './ports.ts'

/**
 * The validate function: door → engine → answer. It decides on the final object with what the seal proves; the part
 * that talks to registries is loaded only when a seal does not cover the object.
 */
export function createValidateApp(deployment: Deployment, platform: Platform): App {
  return compose(deployment, platform, { validate: createValidate })
}
