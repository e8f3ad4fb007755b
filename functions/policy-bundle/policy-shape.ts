import type { CompiledPolicy, PolicyAttestor } from '#shared/policy/types.ts'
import { among, type Check, isObject } from './checks.ts'
import { isConstraints } from './constraints-shape.ts'

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isFlag: Check = (value) => typeof value === 'boolean'
const isList: Check = (value) => Array.isArray(value) && value.every(isObject)
const isSeconds: Check = (value) => Number.isInteger(value)
const isActions: Check = (value) =>
  Array.isArray(value) && value.length > 0 && value.every(among('Deny', 'Audit', 'Warn'))

/** Names each once, so that the compiler asks for what is added. */
const ATTESTOR_KINDS: Readonly<Record<PolicyAttestor['kind'], true>> = {
  'cosign-key': true,
  'cosign-keyless': true,
  'cosign-certificate': true,
  notary: true,
  unresolved: true,
}

const isAttestors: Check = (value) =>
  Array.isArray(value) &&
  value.every((each) => {
    const { kind } = isObject(each) ? each : {}
    return typeof kind === 'string' && Object.hasOwn(ATTESTOR_KINDS, kind)
  })

/** What every compiled policy has. */
const MEMBERS: Readonly<Record<Required, Check>> = {
  kind: among('ImageValidatingPolicy', 'NamespacedImageValidatingPolicy'),
  apiVersion: isText,
  name: isText,
  hash: (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value),
  source: isText,
  failurePolicy: among('Fail', 'Ignore'),
  validationActions: isActions,
  matchConstraints: isConstraints,
  matchConditions: isList,
  matchImageReferences: isList,
  images: isList,
  variables: isList,
  attestors: isAttestors,
  attestations: isList,
  validations: isList,
  auditAnnotations: isList,
  moreNeverHurts: isFlag,
  mutateDigest: isFlag,
  verifyDigest: isFlag,
  required: isFlag,
  exceptions: isList,
}

/** What it may have. Policies about files, which have a `mode`, are in no deployment. */
const OPTIONAL: Readonly<Record<Exclude<keyof CompiledPolicy, Required | 'mode'>, Check>> = {
  namespace: isText,
  autogen: among('defaults', 'cronjobs'),
  credentials: isObject,
  timeoutSeconds: isSeconds,
}

type Required = {
  [K in keyof CompiledPolicy]-?: undefined extends CompiledPolicy[K] ? never : K
}[keyof CompiledPolicy]

/** What about a policy is not as the compiler of this version makes them, or undefined. Its expressions show when they are planned. */
export function policyFault(policy: object): string | undefined {
  const members = new Map<string, unknown>(Object.entries(policy))
  for (const [name, check] of Object.entries(MEMBERS)) {
    if (!check(members.get(name))) return `its ${name} is none that this version knows`
  }
  for (const [name, value] of members) {
    if (Object.hasOwn(MEMBERS, name)) continue
    const check = Object.hasOwn(OPTIONAL, name)
      ? OPTIONAL[name as keyof typeof OPTIONAL]
      : undefined
    if (check?.(value) !== true) return `its ${name} is none that this version knows`
  }
  const isNamespaced = members.get('kind') === 'NamespacedImageValidatingPolicy'
  return isNamespaced === members.has('namespace') ? undefined : 'its kind and namespace do not fit'
}
