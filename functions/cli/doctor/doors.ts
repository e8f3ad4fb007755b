import type { EndpointName } from '#functions/endpoints.ts'
import type { Patient } from './types.ts'

/** One place of the endpoint, and which functions are called there. */
export interface Door {
  /** `https://host[:port][/path]` without a slash at the end. */
  url: string
  routes: readonly Route[]
}

/** What an API server calls, as its path ends. */
export type Route = 'mutate' | 'validate' | 'image-review'

const ROUTES: readonly (readonly [Route, EndpointName])[] = [
  ['mutate', 'mutate'],
  ['validate', 'validate'],
  ['image-review', 'imageReview'],
]

/** The places that this cluster calls, each once: one, or one for each function. */
export function doorsOf({ endpoints, cluster }: Patient): Door[] {
  const byUrl = new Map<string, Route[]>()
  for (const [route, name] of ROUTES) {
    const url = endpoints[name]
    const isCalled = name !== 'imageReview' || cluster.imageReview !== undefined
    if (url !== undefined && isCalled) byUrl.set(url, [...(byUrl.get(url) ?? []), route])
  }
  return [...byUrl].map(([url, routes]) => ({ url, routes }))
}

/** What an API server calls at a door. The path holds the token. */
export function routeUrl(
  { cluster, token }: Pick<Patient, 'cluster' | 'token'>,
  { url }: Pick<Door, 'url'>,
  route: Route,
): string {
  return `${url}/v1/${cluster.name}/${token}/${route === 'image-review' ? route : `ivpol/${route}`}`
}

/** The door of a route; `doorsOf` has one for each that a cluster calls. */
export function doorFor(doors: readonly Door[], route: Route): Door {
  const door = doors.find(({ routes }) => routes.includes(route))
  if (door === undefined) throw new TypeError(`no door leads to ${route}`)
  return door
}
