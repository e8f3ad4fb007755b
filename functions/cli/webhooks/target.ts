import type { Endpoints } from '#functions/endpoints.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { WebhookTarget } from '#shared/webhook/types.ts'

/**
 * What webhooks call: the endpoint, or the Service of the cluster that leads to it. `below` is the path with cluster and token. Throws
 * `CONFIG_INVALID` for a Service that is none, or that cannot lead to the endpoint.
 */
export function targetOf(
  { service }: { service?: string },
  { mutate, validate }: Endpoints,
  below: string,
): WebhookTarget {
  if (service === undefined) {
    return { kind: 'url', base: { mutate: mutate + below, validate: validate + below } }
  }
  const { namespace, name, port } =
    /^(?<namespace>[^/:]+)\/(?<name>[^/:]+)(?::(?<port>[0-9]+))?$/.exec(service)?.groups ?? {}
  if (namespace === undefined || name === undefined) {
    throw refusal(`--service ${service}: expected namespace/name or namespace/name:port`)
  }
  if (new URL(mutate).host !== new URL(validate).host) {
    throw refusal(
      `--service ${service}: a Service leads to one host, and endpoint has one for each function: leave --service out, or give endpoint the door that leads to all of them`,
    )
  }
  const pathOf = (url: string) => `${new URL(url).pathname.replace(/\/+$/, '')}${below}`
  return {
    kind: 'service',
    namespace,
    name,
    ...(port !== undefined && { port: Number(port) }),
    path: { mutate: pathOf(mutate), validate: pathOf(validate) },
  }
}

function refusal(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
