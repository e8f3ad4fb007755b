import type { Node } from './ast.ts'
import { type Checked, type CheckFault, check } from './check.ts'
import type { Environment } from './environment.ts'
import { TypeLimit } from './infer.ts'
import { issueAt, sortIssues } from './issues.ts'
import { type ParseResult, parse } from './parse.ts'
import { type Places, walk } from './tree.ts'
import { printDeclaredType, printType, type Type } from './type.ts'
import type { CompileResult, TypeName } from './types.ts'
import { validate } from './validators.ts'

export { formatIssues } from './issues.ts'

export interface CompileOptions {
  /** The result must have exactly one of these types. */
  allowedTypes?: readonly TypeName[]
}

/** Parses and checks an expression: a checked program, or every fault with its place. */
export function compile(
  source: string,
  environment: Environment,
  options: CompileOptions = {},
): CompileResult {
  const parsed = parse(source, environment.macros)
  if (!parsed.ok) return parsed
  const { places } = parsed
  const checked = check(parsed.ast, places, environment)
  const faults =
    checked.faults.length > 0 ? checked.faults : validated(checked, places, environment)
  if (faults.length > 0) {
    const issues = faults.map(({ offset, message }) => issueAt('check', source, offset, message))
    return { ok: false, issues: sortIssues(issues) }
  }
  const refused = resultFault(checked.type, environment, options.allowedTypes)
  if (refused !== undefined) {
    return { ok: false, issues: [issueAt('check', source, 0, refused)] }
  }
  const type = printType(checked.type)
  return {
    ok: true,
    checked: { source, type, ast: checked.ast, needs: needsOf(checked.ast, environment) },
  }
}

/** What the API server objects to in an expression that checks. */
function validated(
  checked: Checked,
  places: Places,
  environment: Environment,
): readonly CheckFault[] {
  try {
    return validate(checked, places, environment)
  } catch (thrown) {
    if (!(thrown instanceof TypeLimit)) throw thrown
    return [{ offset: places.of(checked.ast), message: thrown.message }]
  }
}

/** Parses an expression: macros are expanded, names are as written. */
export function parseOnly(source: string, environment: Environment): ParseResult {
  return parse(source, environment.macros)
}

/**
 * An expression that is run without a check, as cel-go runs parsed trees: names are resolved in the environment where they
 * can be, types are not looked at, and every call finds its overload when it is made. Its type is `dyn`.
 */
export function compileUnchecked(source: string, environment: Environment): CompileResult {
  const parsed = parse(source, environment.macros)
  if (!parsed.ok) return parsed
  // The check renames identifiers as it goes; whatever it finds fault with is for the evaluation to meet.
  const { ast } = check(parsed.ast, parsed.places, environment)
  walk(ast, (node) => {
    if (node.k === 'call') delete node.overloads
  })
  return { ok: true, checked: { source, type: 'dyn', ast, needs: needsOf(ast, environment) } }
}

/** The API server's words for a result of the wrong type. */
function resultFault(
  type: Type,
  environment: Environment,
  allowed: readonly TypeName[] | undefined,
): string | undefined {
  if (allowed === undefined) return undefined
  const types = allowed.map((name) => environment.type(name))
  if (types.some((each) => printType(each) === printType(type))) return undefined
  const names = types.map(printDeclaredType)
  const expected = names.length === 1 ? names[0] : `one of [${names.join(' ')}]`
  return `must evaluate to ${expected} but got ${printDeclaredType(type)}`
}

/** Functions that take a pattern. */
const PATTERN_FUNCTIONS: ReadonlySet<string> = new Set([
  'matches',
  'find',
  'findAll',
  'regex.extract',
  'regex.extractAll',
  'regex.replace',
])

function needsOf(ast: Node, environment: Environment): readonly string[] {
  const needs = new Set<string>()
  walk(ast, (node) => {
    if (node.k !== 'call') return
    if (PATTERN_FUNCTIONS.has(node.fn)) needs.add('regex')
    for (const host of environment.hostsOf(node.fn, node.overloads)) needs.add(host)
  })
  return [...needs].sort()
}
