import { Hono } from 'hono/tiny'
import { type App, loggedFault } from '#functions/app.ts'
import type { Assemble, Flows } from '#functions/compose.ts'
import type { Deployment } from '#functions/deployment.ts'
import type { Platform } from '#functions/ports.ts'
import type { Keeper } from './keeper.ts'

/** What an app is made of whose policies come from bundles. */
export interface FollowOptions {
  /** What it was built with. */
  deployment: Deployment
  platform: Platform
  flows: Flows
  assemble: Assemble
}

/**
 * The app of a deployment whose config has a `policyBundle`: every request is answered by the app of the policies that count when it comes,
 * and by that one to its end. What fetches bundles is loaded with the first request.
 */
export function followBundles(options: FollowOptions): App {
  const front: App = new Hono()
  let keeper: Keeper | undefined
  front.all('*', async (c) => {
    const { createKeeper } = await import('./keeper.ts')
    keeper ??= createKeeper(options)
    return keeper.answer(c.req.raw, c.env)
  })
  front.onError(loggedFault(options.platform.log))
  return front
}
