const NEVER_VERIFIED =
  'stale: the policy has `required` by default and checks no signature, which Kyverno itself denies since it enforces `required`'
const GLOBAL_CONTEXT =
  'globalContext is refused when the policy loads: nothing watches the cluster between two requests'

/** Expectations of `kyverno/` that come out differently here, and why. */
export const KYVERNO_DEVIATIONS: ReadonlyMap<string, string> = new Map([
  [
    'image-validating-policies/context/configmap: create positive deployment: positive',
    NEVER_VERIFIED,
  ],
  [
    'namespaced-image-validating-policies/context/image-data: create deployment: test-deploy',
    NEVER_VERIFIED,
  ],
  [
    'image-validating-policies/context/globalreference: create policy: ivpol-apicall-correct',
    GLOBAL_CONTEXT,
  ],
])
