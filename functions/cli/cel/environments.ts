import { type FunctionDeclaration, fn, member, overload } from '#shared/cel/declarations.ts'
import { ADMISSION_VARIABLES } from '#shared/cel/declare/admission.ts'
import { KYVERNO_PORTS, KYVERNO_TYPES } from '#shared/cel/declare/kyverno.ts'
import { createEnvironment, type Environment } from '#shared/cel/environment.ts'
import type { Library } from '#shared/cel/implementation.ts'
import { kubernetesLibrary, kyvernoLibrary, specLibrary } from '#shared/cel/libraries.ts'
import { kyvernoFunctions } from '#shared/cel/library/kyverno.ts'
import { KYVERNO } from '#shared/cel/library/kyverno-context.ts'
import { kyvernoHostFunctions } from '#shared/cel/library/kyverno-host.ts'
import type { Profile, RegexEngine, TypeName } from '#shared/cel/types.ts'
import { PURE_FUNCTIONS } from '#shared/policy/environment.ts'
import { IMAGE_LIBRARY } from '#shared/policy/image-library.ts'
import type { SpecFunction, SpecRequest } from './request.ts'

/** Everything the expressions of a profile may call. */
export const LIBRARIES: Readonly<Record<Profile, Library>> = {
  kubernetes: kubernetesLibrary,
  kyverno: { ...kyvernoLibrary, ...kyvernoFunctions, ...kyvernoHostFunctions, ...IMAGE_LIBRARY },
  spec: specLibrary,
}

/** As for a validation of a policy with params, in a Kubernetes version. */
export function kubernetesEnvironment(minor: number | undefined, regex: RegexEngine): Environment {
  return createEnvironment({
    profile: 'kubernetes',
    variables: { ...ADMISSION_VARIABLES, params: 'dyn' },
    regex,
    ...(minor === undefined ? {} : { minor }),
  })
}

const KYVERNO_VARIABLES: Readonly<Record<string, TypeName>> = {
  object: 'dyn',
  oldObject: 'dyn',
  request: 'kubernetes.AdmissionRequest',
  namespaceObject: 'kubernetes.Namespace',
  images: 'map(string, list(string))',
  json: KYVERNO.json,
  yaml: KYVERNO.yaml,
}

/** As for a validation of an image policy, without what only a cluster, a registry or the network can answer. */
export function kyvernoEnvironment(regex: RegexEngine): Environment {
  return createEnvironment({
    profile: 'kyverno',
    variables: KYVERNO_VARIABLES,
    objectTypes: KYVERNO_TYPES,
    declare: [
      ...PURE_FUNCTIONS,
      ...KYVERNO_PORTS.yaml,
      ...KYVERNO_PORTS.gzip,
      ...KYVERNO_PORTS.time,
    ],
    regex,
  })
}

/** cel-go's own environment in a container, with declared functions; variables are for the caller to add. */
export function specEnvironment({
  container,
  functions,
}: Pick<SpecRequest, 'container' | 'functions'>): Environment {
  return createEnvironment({
    profile: 'spec',
    container,
    variables: {},
    declare: functions.map(declarationOf),
  })
}

function declarationOf({ name, overloads }: SpecFunction): FunctionDeclaration {
  return fn(
    name,
    ...overloads.map(({ id, params, result, method }) =>
      (method ? member : overload)(id, params, result),
    ),
  )
}
