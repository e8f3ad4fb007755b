import type { AdmissionRequest } from '../admission/types.ts'
import { getOwn, isJsonObject } from '../json.ts'
import type { SealContext } from './types.ts'

/**
 * What a seal of this request is bound to (specs/signatures.md 4.7): the same in the mutate and the validate phase of one API request, and
 * different for any other cluster, resource, namespace, operation or name. It cannot hold the uids of the request and of the
 * object: each call has its own, and the object gets its own between the phases.
 *
 * @param cluster from the authenticated route, never from the body
 */
export function sealContext(request: AdmissionRequest, cluster: string): SealContext {
  const { group, version, resource } = request.requestResource ?? request.resource
  const subResource = request.requestSubResource ?? request.subResource
  return {
    cluster,
    resource: [group, version, resource, ...(subResource === undefined ? [] : [subResource])].join(
      '/',
    ),
    namespace: request.namespace ?? '',
    operation: request.operation,
    name: sealedName(request),
  }
}

/** Where the API server makes the name up, it does so between the phases: what stays the same is `generateName`. */
function sealedName({ operation, object, name }: AdmissionRequest): SealContext['name'] {
  const metadata = object === null ? undefined : getOwn(object, 'metadata')
  const generateName = isJsonObject(metadata) ? getOwn(metadata, 'generateName') : undefined
  if (operation === 'CREATE' && typeof generateName === 'string' && generateName !== '') {
    return ['g', generateName]
  }
  return ['n', name ?? '']
}
