import type { FunctionDeclaration } from './declarations.ts'
import { ADMISSION_TYPES, KYVERNO_ADMISSION_TYPES, type ObjectTypes } from './declare/admission.ts'
import { COMPREHENSION_FUNCTIONS, LIST_FUNCTIONS, SET_FUNCTIONS } from './declare/collections.ts'
import {
  ENCODER_FUNCTIONS,
  MATH_FUNCTIONS,
  REGEX_EXTENSION_FUNCTIONS,
} from './declare/extensions.ts'
import {
  AUTHORIZER_FUNCTIONS,
  AUTHORIZER_SELECTOR_FUNCTIONS,
  AUTHORIZER_TYPES,
  CIDR_FUNCTIONS,
  CIDR_MASK_FUNCTIONS,
  FORMAT_FUNCTIONS,
  IP_FUNCTIONS,
  LIBRARY_TYPES,
  listLibraryFunctions,
  NETWORK_TYPES,
  QUANTITY_FUNCTIONS,
  REGEX_FUNCTIONS,
  SEMVER_FUNCTIONS,
  URL_FUNCTIONS,
} from './declare/kubernetes.ts'
import { OPTIONAL_FUNCTIONS } from './declare/optional.ts'
import { standardFunctions } from './declare/standard.ts'
import { stringFunctions } from './declare/strings.ts'
import {
  BIND_MACROS,
  MATH_MACROS,
  type Macro,
  OPTIONAL_MACROS,
  SORT_BY_MACROS,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from './macros.ts'
import type { Profile } from './types.ts'

/** The newest Kubernetes minor version an environment can imitate, and the oldest. */
export const NEWEST_MINOR = 37
export const OLDEST_MINOR = 30

/**
 * Checks made on the tree after its types are known: constant durations, timestamps and patterns; literals of one type;
 * `format` strings with their arguments (`format-mixed`: the newer formatter, which takes any number for any numeric
 * clause); constant addresses.
 */
export type Validation = 'literals' | 'homogeneous' | 'format' | 'format-mixed' | 'network'

/** What an environment has before anything is added to it. */
export interface Library {
  functions: readonly FunctionDeclaration[]
  macros: readonly Macro[]
  objectTypes: ObjectTypes
  /** Opaque types an expression can name, as in `type(x) == net.IP`. */
  opaqueTypes: readonly string[]
  /** Types without a field table that are objects all the same. */
  structTypes: readonly string[]
  validations: readonly Validation[]
}

/** The libraries of a profile; `minor` is the Kubernetes version the `kubernetes` profile imitates. */
export function libraryOf(profile: Profile, minor: number = NEWEST_MINOR): Library {
  if (profile === 'spec') return SPEC
  return profile === 'kyverno' ? KYVERNO : kubernetes(minor)
}

/** kubernetes-admission.md 5.1: what each version has of what is introduced from 1.30 on; 29 has none of it. */
function kubernetes(minor: number): Library {
  const since = <T>(introduced: number, items: readonly T[]): readonly T[] =>
    minor >= introduced ? items : []
  return {
    functions: [
      ...standardFunctions(true),
      ...OPTIONAL_FUNCTIONS,
      ...stringFunctions(2),
      ...URL_FUNCTIONS,
      ...REGEX_FUNCTIONS,
      ...listLibraryFunctions(minor >= 37 ? 1 : 0),
      ...QUANTITY_FUNCTIONS,
      ...SET_FUNCTIONS,
      ...since(30, IP_FUNCTIONS),
      ...since(30, CIDR_FUNCTIONS),
      ...AUTHORIZER_FUNCTIONS,
      ...since(31, FORMAT_FUNCTIONS),
      ...since(31, AUTHORIZER_SELECTOR_FUNCTIONS),
      ...since(32, COMPREHENSION_FUNCTIONS),
      ...since(33, SEMVER_FUNCTIONS),
      ...since(34, LIST_FUNCTIONS),
    ],
    macros: [
      ...STANDARD_MACROS,
      ...OPTIONAL_MACROS,
      ...since(32, TWO_VARIABLE_MACROS),
      ...since(34, SORT_BY_MACROS),
    ],
    objectTypes: ADMISSION_TYPES,
    opaqueTypes: since(30, NETWORK_TYPES),
    structTypes: [...LIBRARY_TYPES, ...AUTHORIZER_TYPES],
    validations: ['literals', 'homogeneous', 'format'],
  }
}

/** image-validating-policy.md 2.1: everything of the API server's newest version, and cel-go's own extensions. */
const KYVERNO: Library = {
  ...kubernetes(NEWEST_MINOR),
  functions: [
    ...kubernetes(NEWEST_MINOR).functions,
    ...MATH_FUNCTIONS,
    ...ENCODER_FUNCTIONS,
    ...REGEX_EXTENSION_FUNCTIONS,
  ],
  macros: [...kubernetes(NEWEST_MINOR).macros, ...BIND_MACROS, ...MATH_MACROS],
  objectTypes: KYVERNO_ADMISSION_TYPES,
}

/** cel-go itself with every extension library at its newest version. */
const SPEC: Library = {
  functions: [
    ...standardFunctions(true),
    ...OPTIONAL_FUNCTIONS,
    ...stringFunctions(4),
    ...LIST_FUNCTIONS,
    ...SET_FUNCTIONS,
    ...COMPREHENSION_FUNCTIONS,
    ...MATH_FUNCTIONS,
    ...ENCODER_FUNCTIONS,
    ...IP_FUNCTIONS,
    ...CIDR_FUNCTIONS,
    ...CIDR_MASK_FUNCTIONS,
  ],
  macros: [
    ...STANDARD_MACROS,
    ...OPTIONAL_MACROS,
    ...TWO_VARIABLE_MACROS,
    ...SORT_BY_MACROS,
    ...BIND_MACROS,
    ...MATH_MACROS,
  ],
  objectTypes: {},
  opaqueTypes: NETWORK_TYPES,
  structTypes: [],
  validations: ['format-mixed', 'network'],
}
