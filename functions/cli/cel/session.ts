import { Cache } from '#shared/cache.ts'
import { compile, compileUnchecked, formatIssues } from '#shared/cel/compile.ts'
import { compose } from '#shared/cel/composition.ts'
import type { Environment } from '#shared/cel/environment.ts'
import type { Activation } from '#shared/cel/frame.ts'
import { KYVERNO_CONTEXT_VALUES } from '#shared/cel/library/kyverno-context.ts'
import { plan } from '#shared/cel/plan.ts'
import type { Outcome, Program } from '#shared/cel/program.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { type TaggedValue, toTagged } from '#shared/cel/tagged.ts'
import type {
  CompileResult,
  Host,
  Issue,
  Profile,
  RegexEngine,
  TypeName,
} from '#shared/cel/types.ts'
import { type NamedProgram, Variables } from '#shared/cel/variables.ts'
import { AdmissionError } from '#shared/errors.ts'
import { CEL_KEPT_CHARS, CEL_KEPT_PROGRAMS } from '#shared/limits.ts'
import {
  kubernetesEnvironment,
  kyvernoEnvironment,
  LIBRARIES,
  specEnvironment,
} from './environments.ts'
import { localHost } from './host.ts'
import { imagesIn } from './images.ts'
import {
  type CelRequest,
  INPUT_NAMES,
  type Input,
  type PolicyRequest,
  type SpecRequest,
} from './request.ts'

/** What became of one expression: JSON, its members in this order. */
export interface CelRecord {
  /** Where it ended: `input` is a line that is none, `eval` an error of the run, whose cost is given all the same. */
  phase: 'input' | 'parse' | 'check' | 'program' | 'eval' | 'ok'
  type?: TypeName
  value?: TaggedValue
  cost?: number
  /** Cost of the variables, where there are some. */
  varCost?: number
  error?: string
}

/** A record, and the faults it is about as data. */
export interface CelAnswer {
  record: CelRecord
  issues: readonly Issue[]
  /** Variables that cannot be used, and what is wrong with them. */
  variables: readonly FaultyVariable[]
}

interface FaultyVariable {
  name: string
  source: string
  /** Where it has no issues, it cannot be made a program. */
  error: string
  issues: readonly Issue[]
}

export interface SessionOptions {
  /** The Kubernetes minor version to imitate; the newest when absent. */
  minor?: number
  /** Epoch milliseconds. */
  now: () => number
}

/** An expression ready to run, or why it is not. */
type Compiled =
  | { program: Program; type: TypeName }
  | { record: CelRecord; issues: readonly Issue[] }

/** The variables of a policy, and the environment that has them. */
interface PolicyScope {
  environment: Environment
  programs: readonly NamedProgram[]
  faulty: CelAnswer['variables']
}

/** Evaluates any number of expressions; what was compiled lately is kept, so that a line that comes again only runs. */
export class CelSession {
  readonly #regex: RegexEngine
  readonly #host: Host
  readonly #minor: number | undefined
  readonly #environments = new Map<Profile, Environment>()
  readonly #compiled = new Cache<Compiled>(CEL_KEPT_PROGRAMS)
  readonly #scopes = new Cache<PolicyScope>(CEL_KEPT_PROGRAMS)
  readonly #specEnvironments = new Cache<Environment>(CEL_KEPT_PROGRAMS)

  private constructor(regex: RegexEngine, { now, minor }: SessionOptions) {
    this.#regex = regex
    this.#host = localHost(now)
    this.#minor = minor
    // A version that cannot be imitated is said before the first expression.
    if (minor !== undefined) this.#environment('kubernetes')
  }

  /** Loads the regex engine, which everything may need. */
  static async open(options: SessionOptions): Promise<CelSession> {
    return new CelSession(await loadRegex(), options)
  }

  /** What becomes of a request. Throws `CEL_CHECK` for a declared type or a Kubernetes version that is none. */
  run(request: CelRequest): CelAnswer {
    return request.profile === 'spec' ? this.#runSpec(request) : this.#runPolicy(request)
  }

  // --- admission policies

  #runPolicy(request: PolicyRequest): CelAnswer {
    const { profile, expr, variables, input } = request
    const key = JSON.stringify([profile, variables])
    const scope = kept(this.#scopes, key, () => this.#scope(request))
    const compiled = kept(this.#compiled, JSON.stringify([key, expr]), () =>
      this.#compile(profile, compile(expr, scope.environment), expr),
    )
    if ('record' in compiled) return { ...compiled, variables: scope.faulty }
    const activation = activationOf(profile, input)
    const options = { host: this.#host }
    if (variables.length === 0) {
      return answerOf(compiled.type, compiled.program.evaluate(activation, options), {})
    }
    const values = new Variables(scope.programs, activation)
    const outcome = compiled.program.evaluate({ ...activation, variables: values }, options)
    const answer = answerOf(compiled.type, outcome, { varCost: values.cost })
    return { ...answer, variables: scope.faulty }
  }

  #scope({ profile, variables }: PolicyRequest): PolicyScope {
    const listed = variables.map(({ name, expr }) => ({ name, expression: expr }))
    const composed = compose(this.#environment(profile), listed)
    const faulty: FaultyVariable[] = []
    const programs = composed.variables.map(({ name, result }, i): NamedProgram => {
      const source = listed[i]?.expression ?? ''
      const compiled = this.#compile(profile, result, source)
      if ('program' in compiled) return { name, program: compiled.program }
      const error = compiled.record.error ?? compiled.record.phase
      faulty.push({ name, source, error, issues: compiled.issues })
      return { name, program: { fault: error } }
    })
    return { environment: composed.environment, programs, faulty }
  }

  #environment(profile: PolicyRequest['profile']): Environment {
    const known = this.#environments.get(profile)
    if (known !== undefined) return known
    const made =
      profile === 'kubernetes'
        ? kubernetesEnvironment(this.#minor, this.#regex)
        : kyvernoEnvironment(this.#regex)
    this.#environments.set(profile, made)
    return made
  }

  // --- the specification

  #runSpec(request: SpecRequest): CelAnswer {
    const { bindings, ...rest } = request
    const compiled = kept(this.#compiled, JSON.stringify(rest), () => this.#compileSpec(request))
    if ('record' in compiled) return { ...compiled, variables: [] }
    return answerOf(compiled.type, compiled.program.evaluate(bindings), {})
  }

  #compileSpec({ expr, vars, container, functions, ...how }: SpecRequest): Compiled {
    const base = kept(this.#specEnvironments, JSON.stringify([container, functions]), () =>
      declaring(() => specEnvironment({ container, functions })),
    )
    const environment = declaring(() => base.extend(vars))
    const result = (how.disableCheck ? compileUnchecked : compile)(expr, environment)
    if (result.ok && how.checkOnly) {
      return { record: { phase: 'ok', type: result.checked.type }, issues: [] }
    }
    return this.#compile('spec', result, expr)
  }

  // --- both

  #compile(profile: Profile, result: CompileResult, source: string): Compiled {
    if (!result.ok) {
      const phase = result.issues[0]?.phase ?? 'parse'
      const error = formatIssues(source, result.issues)
      return { record: { phase, error }, issues: result.issues }
    }
    const { checked } = result
    const implementations = LIBRARIES[profile]
    const planned = plan(checked, { profile, implementations, regex: this.#regex })
    if (planned.ok) return { program: planned.program, type: checked.type }
    return {
      record: { phase: 'program', type: checked.type, error: planned.message },
      issues: [],
    }
  }
}

/** The kept value of a key, or a new one, which is kept unless it is of an uncommonly long text. */
function kept<T>(cache: Cache<T>, key: string, make: () => T): T {
  const known = cache.get(key, 0)
  if (known !== undefined) return known
  const made = make()
  if (key.length <= CEL_KEPT_CHARS) cache.set(key, made, Number.POSITIVE_INFINITY)
  return made
}

/** Types are read when they are declared, and a text that is none is the caller's mistake. */
function declaring<T>(make: () => T): T {
  try {
    return make()
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown
    throw new AdmissionError('CEL_CHECK', thrown.message, { cause: thrown })
  }
}

function activationOf(profile: PolicyRequest['profile'], input: Input | undefined): Activation {
  const context = profile === 'kyverno' ? KYVERNO_CONTEXT_VALUES : {}
  if (input === undefined) return context
  const named = INPUT_NAMES.map((name) => [name, input[name] ?? null])
  const images = profile === 'kyverno' ? { images: () => imagesIn(input) } : {}
  return { ...context, ...Object.fromEntries(named), ...images }
}

function answerOf(type: TypeName, outcome: Outcome, varCost: { varCost?: number }): CelAnswer {
  return { record: recordOf(type, outcome, varCost), issues: [], variables: [] }
}

function recordOf(type: TypeName, outcome: Outcome, varCost: { varCost?: number }): CelRecord {
  const { cost } = outcome
  if (outcome.kind === 'error') {
    return { phase: 'eval', type, cost, ...varCost, error: outcome.message }
  }
  try {
    return { phase: 'ok', type, value: toTagged(outcome.value), cost, ...varCost }
  } catch (thrown) {
    // A value that is a million times larger written out than it is in memory.
    if (!(thrown instanceof RangeError)) throw thrown
    return { phase: 'eval', type, cost, ...varCost, error: thrown.message }
  }
}
