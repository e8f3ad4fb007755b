import type { Node } from '../cel/ast.ts'
import { compile } from '../cel/compile.ts'
import type { Environment } from '../cel/environment.ts'
import { parse } from '../cel/parse.ts'
import { planWith } from '../cel/planner.ts'
import { chainsOf } from '../cel/ranges.ts'
import { walk } from '../cel/tree.ts'
import type { CheckedExpression, Issue, TypeName } from '../cel/types.ts'
import {
  fileEnvironment,
  filePolicyEnvironment,
  policyEnvironment,
  REFUSED_CALLS,
  referenceEnvironment,
  requestEnvironment,
  UNSUPPORTED_NAMES,
} from './environment.ts'
import { type ExpressionRole, expressionsOf, type SourceExpression } from './expressions.ts'
import { NAMESPACE_NEED, planOptions, runtimeFor } from './prepare.ts'
import { Reads } from './reads.ts'
import { type Faults, formatPath, isRecord, own, type Path } from './shape.ts'
import type { PolicyFault } from './types.ts'
import { VariableOrder } from './variable-order.ts'

/** Result types by role; exact, so a `dyn` is not a `bool` (image-validating-policy.md 2.2). */
const ALLOWED_TYPES: Readonly<Record<ExpressionRole, readonly TypeName[] | undefined>> = {
  matchCondition: ['bool'],
  imageReference: ['bool'],
  image: ['list(string)', 'list(dyn)', 'dyn'],
  variable: undefined,
  attestor: ['string', 'dyn'],
  validation: ['bool'],
  message: ['string'],
  auditAnnotation: ['string', 'null_type'],
}

/**
 * Compiles every expression of a spec in Kyverno's order: the checked expressions by path, after every fault was added to `faults`.
 * A variable has the type of its expression and sees the variables before it; one with a fault counts as `dyn`, so that
 * its mistake is told once.
 */
export async function compileExpressions(
  spec: unknown,
  path: Path,
  faults: Faults,
  options: CompileOptions = {},
): Promise<Map<string, CheckedExpression>> {
  const checked = new Map<string, CheckedExpression>()
  const environments = new Environments(options)
  const attestors = namesOf(spec, 'attestors')
  const attestations = namesOf(spec, 'attestations')
  const reads = new Reads(['attestors'])
  const expressions = expressionsOf(spec, path)
  const order = new VariableOrder(expressions)
  for (const expression of expressions) {
    const environment = environments.for(expression.role)
    const isHopeless =
      order.addFaults(expression, faults) ||
      addForbidden(expression, options.forbidden ?? NOTHING, faults)
    const found = isHopeless ? undefined : await compileOne(expression, environment, faults)
    if (expression.name !== undefined) environments.add(expression.name, found?.type ?? 'dyn')
    if (found === undefined) continue
    if (expression.name !== undefined) reads.variable(expression.name, found.ast)
    if (expression.role === 'attestor' && reads.of(found.ast).size > 0) {
      faults.add(expression.path, CIRCULAR, 'POLICY_UNSUPPORTED')
    }
    const undeclared = [
      ...undeclaredIn(found.ast, 'attestor', attestors),
      ...undeclaredIn(found.ast, 'attestation', attestations),
    ]
    for (const fault of undeclared) {
      faults.report({ code: 'CEL_CHECK', path: expression.path, ...fault })
    }
    for (const fault of refusedIn(found.ast)) {
      faults.report({ code: 'POLICY_UNSUPPORTED', path: expression.path, ...fault })
    }
    checked.set(formatPath(expression.path), found)
  }
  return checked
}

/** Also keeps what an attestor is apart from what others found out, so that a count says nothing about whom it counts. */
const CIRCULAR =
  'what an attestor is may not depend on attestors, neither here nor in a variable that this reads'

/** What the policy as a whole says about its expressions. */
export interface CompileOptions {
  /** Evaluation mode JSON: the policy is about files. */
  isJson?: boolean
  /** A namespaced policy. */
  isNamespaced?: boolean
  /** Variables that the expressions must not use, and why. */
  forbidden?: ReadonlyMap<string, string>
}

const NOTHING: ReadonlyMap<string, string> = new Map()

/** Adds a fault for each use of a forbidden variable, and says whether there was any. */
function addForbidden(
  { path, source }: SourceExpression,
  forbidden: ReadonlyMap<string, string>,
  faults: Faults,
): boolean {
  if (forbidden.size === 0) return false
  const parsed = parse(source, requestEnvironment().macros)
  if (!parsed.ok) return false
  const before = faults.count
  for (const [name, message] of forbidden) {
    for (const { pos } of chainsOf(parsed.ast, name)) {
      faults.report({ code: 'POLICY_INVALID', path, message, offset: pos[0] })
    }
  }
  return faults.count > before
}

/** The environments of one policy; that of the variables grows with every variable. */
class Environments {
  readonly #options: CompileOptions
  readonly #variables = new Map<string, TypeName>()
  #policy: Environment | undefined

  constructor(options: CompileOptions) {
    this.#options = options
  }

  add(variable: string, type: TypeName): void {
    this.#variables.set(variable, type)
    this.#policy = undefined
  }

  for(role: ExpressionRole): Environment {
    if (role === 'imageReference') return referenceEnvironment()
    const isEarly = role === 'matchCondition' || role === 'image'
    if (this.#options.isJson) return isEarly ? fileEnvironment() : filePolicyEnvironment()
    if (isEarly) return requestEnvironment()
    this.#policy ??= policyEnvironment(this.#variables, this.#options.isNamespaced)
    return this.#policy
  }
}

/** The checked expression if it also can be planned, which finds bad constants and bad patterns. */
async function compileOne(
  { path, role, source }: SourceExpression,
  environment: Environment,
  faults: Faults,
): Promise<CheckedExpression | undefined> {
  const allowedTypes = ALLOWED_TYPES[role]
  const result = compile(source, environment, allowedTypes === undefined ? {} : { allowedTypes })
  if (!result.ok) {
    // Others follow from a mistake that has its own issue.
    const told = result.issues.filter(({ message }) => !message.includes('!error!'))
    for (const issue of told.length > 0 ? told : result.issues) {
      addIssue(issue, path, source, faults)
    }
    return undefined
  }
  const { checked } = result
  const planned = planWith(checked, planOptions(await runtimeFor([checked])))
  if (planned.ok) return withNamespaceNeed(checked)
  return faults.add(path, planned.message, 'CEL_PROGRAM')
}

/** Whoever runs it has to look the namespace up before. */
function withNamespaceNeed(checked: CheckedExpression): CheckedExpression {
  let isRead = false
  walk(checked.ast, (node) => {
    if (node.k === 'ident' && node.name === 'namespaceObject') isRead = true
  })
  return isRead ? { ...checked, needs: [...checked.needs, NAMESPACE_NEED] } : checked
}

/** Every call that is declared only to be refused with its reason. */
function refusedIn(ast: Node): { message: string; offset: number }[] {
  const found: { message: string; offset: number }[] = []
  walk(ast, (node) => {
    if (node.k !== 'call') return
    for (const [start, message] of REFUSED_CALLS) {
      const isIt = node.overloads?.some((id) => id.startsWith(start)) ?? false
      if (isIt) found.push({ message, offset: node.pos[0] })
    }
  })
  return found
}

const CODES: Readonly<Record<Issue['phase'], PolicyFault['code']>> = {
  parse: 'CEL_PARSE',
  check: 'CEL_CHECK',
  program: 'CEL_PROGRAM',
}

function addIssue(issue: Issue, path: Path, source: string, faults: Faults): void {
  const { name, of } = nameAt(source, issue.offset)
  const isUndeclared = issue.message.startsWith('undeclared reference')
  const reason = isUndeclared ? UNSUPPORTED_NAMES.get(name) : undefined
  // `resource.get(…)`: the fault is `resource`, which has its own issue.
  if (isUndeclared && of !== undefined && UNSUPPORTED_NAMES.has(of)) return
  faults.report({
    code: reason === undefined ? CODES[issue.phase] : 'POLICY_UNSUPPORTED',
    path,
    message:
      reason === undefined
        ? `${issue.message} (at ${issue.line}:${issue.column} of the expression)`
        : `${name} ${reason}`,
    offset: issue.offset,
  })
}

/** The name a fault points at and the name it is selected from; the place of a call is its bracket, that of a name its start. */
function nameAt(source: string, offset: number): { name: string; of: string | undefined } {
  const start = wordStart(source, offset)
  let end = offset
  while (isWord(source[end])) end++
  const dot = skipSpaceBack(source, start)
  if (source[dot - 1] !== '.') return { name: source.slice(start, end), of: undefined }
  const ofEnd = skipSpaceBack(source, dot - 1)
  return { name: source.slice(start, end), of: source.slice(wordStart(source, ofEnd), ofEnd) }
}

function wordStart(source: string, end: number): number {
  let start = end
  while (isWord(source[start - 1])) start--
  return start
}

function skipSpaceBack(source: string, end: number): number {
  let at = end
  while (/\s/.test(source[at - 1] ?? '.')) at--
  return at
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character)
}

function namesOf(spec: unknown, field: string): ReadonlySet<unknown> {
  const list = isRecord(spec) ? own(spec, field) : undefined
  const items = Array.isArray(list) ? list.filter(isRecord) : []
  return new Set(items.map((item) => own(item, 'name')))
}

/** Functions whose second argument names an attestation. */
const OF_ATTESTATIONS: ReadonlySet<string> = new Set([
  'verifyAttestationSignatures',
  'extractPayload',
])

/** Every attestor or attestation that is named and not declared: it would be an error on every request. */
function undeclaredIn(
  ast: Node,
  kind: 'attestor' | 'attestation',
  names: ReadonlySet<unknown>,
): { message: string; offset: number }[] {
  const found: { message: string; offset: number }[] = []
  walk(ast, (node) => {
    const name = nameIn(node, kind)
    if (name === undefined || names.has(name.text)) return
    const message = `${kind} ${JSON.stringify(name.text)} is not declared in spec.${kind}s`
    found.push({ message, offset: name.offset })
  })
  return found
}

/** The name in `attestors.name`, `attestations["name"]` and the like, and where it stands. */
function nameIn(
  node: Node,
  kind: 'attestor' | 'attestation',
): { text: string; offset: number } | undefined {
  if (node.k === 'select' && node.test !== true && isVariable(node.operand, kind)) {
    return { text: node.field, offset: node.operand.pos[0] }
  }
  if (node.k !== 'call') return undefined
  const [first, second] = node.args
  const isIndex = node.fn === '_[_]' && first !== undefined && isVariable(first, kind)
  const isArgument = kind === 'attestation' && OF_ATTESTATIONS.has(node.fn)
  if (!(isIndex || isArgument) || second?.k !== 'const') return undefined
  const { value, pos } = second
  return 'string' in value ? { text: value.string, offset: pos[0] } : undefined
}

function isVariable(node: Node, kind: 'attestor' | 'attestation'): boolean {
  return node.k === 'ident' && node.name === `${kind}s`
}
