import { compile } from '#shared/cel/compile.ts'
import { createEnvironment, type Environment } from '#shared/cel/environment.ts'
import type { Activation, EvaluateOptions } from '#shared/cel/frame.ts'
import type { Library } from '#shared/cel/implementation.ts'
import { kubernetesLibrary, kyvernoLibrary, specLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import type { Outcome, Program } from '#shared/cel/program.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { type TaggedValue, toTagged } from '#shared/cel/tagged.ts'
import type { Profile, RegexEngine, TypeName } from '#shared/cel/types.ts'

const LIBRARIES: Readonly<Record<Profile, Library>> = {
  kubernetes: kubernetesLibrary,
  kyverno: kyvernoLibrary,
  spec: specLibrary,
}

const VARIABLES: Readonly<Record<string, TypeName>> = {
  object: 'dyn',
  x: 'dyn',
  y: 'dyn',
  b: 'bool',
  authorizer: 'kubernetes.authorization.Authorizer',
}

/** The RE2 engine, loaded once for all tests. */
export const regex: RegexEngine = await loadRegex()

const environments = new Map<Profile, Environment>()

/** The environment of a profile with `object`, `x` and `y` of any type, `b` a bool, and in Kubernetes `authorizer`. */
export function environmentOf(profile: Profile): Environment {
  const known = environments.get(profile)
  if (known !== undefined) return known
  const { authorizer, ...others } = VARIABLES
  const variables = profile === 'kubernetes' ? { ...VARIABLES } : others
  const made = createEnvironment({ profile, variables, regex })
  environments.set(profile, made)
  return made
}

/** The program of an expression that is valid. */
export function programOf(expression: string, profile: Profile = 'kubernetes'): Program {
  const compiled = compile(expression, environmentOf(profile))
  if (!compiled.ok) throw new Error(`${expression}: ${compiled.issues[0]?.message}`)
  const planned = plan(compiled.checked, {
    profile,
    implementations: LIBRARIES[profile],
    regex,
  })
  if (!planned.ok) throw new Error(`${expression}: ${planned.message}`)
  return planned.program
}

/** What an expression gives. */
export function run(
  expression: string,
  activation: Activation = {},
  options: EvaluateOptions & { profile?: Profile } = {},
): Outcome {
  const { profile, ...rest } = options
  return programOf(expression, profile).evaluate(activation, rest)
}

/** A value in the notation of tables: literals as CEL has them, `none`, `error`. */
export function show(outcome: Outcome): string {
  return outcome.kind === 'value' ? text(toTagged(outcome.value)) : 'error'
}

function text(value: TaggedValue): string {
  if ('string' in value) return JSON.stringify(value.string)
  if ('int' in value) return value.int
  if ('uint' in value) return `${value.uint}u`
  if ('double' in value) return /^-?\d+$/.test(value.double) ? `${value.double}.0` : value.double
  if ('bool' in value) return String(value.bool)
  if ('null' in value) return 'null'
  if ('list' in value) return `[${value.list.map(text).join(', ')}]`
  if ('map' in value) {
    const entries = value.map.map(([key, entry]) => `${text(key)}: ${text(entry)}`)
    return `{${entries.sort().join(', ')}}`
  }
  if ('optional' in value) return value.optional === null ? 'none' : `of ${text(value.optional)}`
  if ('opaque' in value) return value.str
  const [content] = Object.values(value)
  return String(content)
}
