import type { App, Transport } from '#functions/app.ts'
import type { FollowOptions } from './follow.ts'

export interface Keeper {
  answer(request: Request, env: Transport): Response | Promise<Response>
}

export function createKeeper({ deployment, flows, assemble }: FollowOptions): Keeper {
  const app: App = assemble(deployment, flows)
  return { answer: (request, env) => app.fetch(request, env) }
}
