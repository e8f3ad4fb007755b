import type { Door } from './doors.ts'
import { type Check, type Patient, skip } from './types.ts'

/** What managed control planes let out (specs/serverless.md 1). */
const MANAGED = [
  'GKE: control plane egress NONE drops every call to a URL and refuses webhook configurations that name one; VIA_CONTROL_PLANE, its default, lets them out',
  'EKS: AWS_MANAGED, its default, calls from addresses of its own that no cidrs can list; CUSTOMER_ROUTED leaves through the routes, firewalls and NAT gateways of your VPC, whose addresses cidrs can list; CUSTOMER_ISOLATED is made to let nothing out',
  'AKS calls URLs, and its admissions enforcer rewrites selectors of webhooks without the annotation that `countersign webhooks` writes',
]

/** What nobody sees from here: whether the control plane may call at all. */
export function checkEgress({ cluster }: Patient, doors: readonly Door[]): Check {
  const hosts = [...new Set(doors.map(({ url }) => new URL(url).host))].join(' and ')
  const from = cluster.cidrs === undefined ? '' : ', and from an address that cidrs lists'
  const found = `not seen from here: whether the control plane may call ${hosts}${from}`
  const credentials = cluster.mtls ?? cluster.bearer ?? cluster.imageReview
  const own =
    credentials === undefined
      ? ''
      : '. None of the three starts its API server with an AdmissionConfiguration, which mtls, bearer and imageReview take'
  return skip('egress', found, `${MANAGED.join('. ')}${own}`)
}
