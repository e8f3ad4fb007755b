import type { CallNode, ConstNode, ListNode, MapNode, Node } from './ast.ts'
import type { Checked, CheckFault } from './check.ts'
import type { Environment } from './environment.ts'
import { formatFault } from './format-check.ts'
import { parseCidr } from './library/cidr.ts'
import { parseIp } from './library/ip.ts'
import { intToTimestamp, parseDuration, parseTimestamp } from './library/time.ts'
import { type Places, walk } from './tree.ts'
import { printType, sameType, type Type, unwrapOptional } from './type.ts'
import { CelError, type CelResult } from './values.ts'

/** The environment's own rules on a tree that has its types: every violation, at its place. */
export function validate(
  checked: Checked,
  places: Places,
  environment: Environment,
): readonly CheckFault[] {
  const faults: CheckFault[] = []
  const rules = rulesOf(environment, checked, (node, message) => {
    faults.push({ offset: places.of(node), message })
  })
  if (rules.length > 0) {
    walk(checked.ast, (node, ancestors) => {
      for (const rule of rules) rule(node, ancestors)
    })
  }
  return faults
}

type Report = (node: Node, message: string) => void
type Rule = (node: Node, ancestors: readonly Node[]) => void

function rulesOf(environment: Environment, checked: Checked, report: Report): Rule[] {
  const { validations } = environment
  const rules: Rule[] = []
  if (validations.has('homogeneous')) rules.push(oneType(checked, report))
  if (validations.has('literals')) rules.push(literalArguments(environment, report))
  if (validations.has('network')) rules.push(addressArguments(report))
  if (validations.has('format')) rules.push(formatCalls(checked, report, false))
  if (validations.has('format-mixed')) rules.push(formatCalls(checked, report, true))
  return rules
}

// --- list and map literals of one type

function oneType(checked: Checked, report: Report): Rule {
  return (node, ancestors) => {
    if ((node.k !== 'list' && node.k !== 'map') || isFormatArgument(ancestors)) return
    if (node.k === 'list') sameElements(node, checked, report)
    else sameEntries(node, checked, report)
  }
}

/** Arguments of `format` may mix types. */
function isFormatArgument(ancestors: readonly Node[]): boolean {
  return ancestors.some((node) => node.k === 'call' && node.fn === 'format')
}

function sameElements(list: ListNode, checked: Checked, report: Report): void {
  let first: Type | undefined
  for (const [index, element] of list.elements.entries()) {
    const type = entryType(checked.typeOf(element), list.optional?.includes(index) ?? false)
    if (first === undefined) first = type
    else if (!sameType(first, type, true)) {
      report(element, mismatch(first, type))
      return
    }
  }
}

function sameEntries(map: MapNode, checked: Checked, report: Report): void {
  const [first] = map.entries
  if (first === undefined) return
  const key = checked.typeOf(first.key)
  const value = entryType(checked.typeOf(first.value), first.optional ?? false)
  for (const entry of map.entries.slice(1)) {
    const keyType = checked.typeOf(entry.key)
    if (!sameType(key, keyType, true)) report(entry.key, mismatch(key, keyType))
    const valueType = entryType(checked.typeOf(entry.value), entry.optional ?? false)
    if (!sameType(value, valueType, true)) report(entry.value, mismatch(value, valueType))
  }
}

function entryType(type: Type, optional: boolean): Type {
  return optional ? unwrapOptional(type) : type
}

function mismatch(expected: Type, found: Type): string {
  return `expected type '${printType(expected)}' but found '${printType(found)}'`
}

// --- constant arguments that can never be right

function literalArguments(environment: Environment, report: Report): Rule {
  const isInvalid: Readonly<Record<string, (value: ConstNode['value']) => boolean>> = {
    duration: (value) => 'string' in value && failed(parseDuration(value.string)),
    timestamp: (value) =>
      ('string' in value && failed(parseTimestamp(value.string))) ||
      ('int' in value && failed(intToTimestamp(BigInt(value.int)))),
    matches: (value) => 'string' in value && !isPattern(environment, value.string),
  }
  return (node) => {
    if (node.k !== 'call' || !Object.hasOwn(isInvalid, node.fn)) return
    const [arg] = node.args
    if (arg?.k === 'const' && isInvalid[node.fn]?.(arg.value)) {
      report(arg, `invalid ${node.fn} argument`)
    }
  }
}

function failed(result: CelResult): boolean {
  return result instanceof CelError
}

function isPattern({ regex }: Environment, pattern: string): boolean {
  if (regex === undefined) return true
  try {
    regex.compile(pattern)
    return true
  } catch {
    // The engine throws exactly when it cannot read the pattern.
    return false
  }
}

/** cel-go's own network library refuses constant addresses early, with the reason. */
function addressArguments(report: Report): Rule {
  const parsers: Readonly<Record<string, (text: string) => CelResult>> = {
    ip: parseIp,
    cidr: parseCidr,
  }
  return (node) => {
    if (node.k !== 'call' || !Object.hasOwn(parsers, node.fn)) return
    const [arg] = node.args
    if (arg?.k !== 'const' || !('string' in arg.value)) return
    const result = parsers[node.fn]?.(arg.value.string)
    if (result instanceof CelError) {
      report(arg, `invalid ${node.fn} argument: ${result.message}`)
    }
  }
}

// --- format strings

function formatCalls(checked: Checked, report: Report, mixed: boolean): Rule {
  return (node) => {
    if (!isFormatCall(node)) return
    const fault = formatFault(node, checked.typeOf, mixed)
    if (fault !== undefined) report(fault.node, fault.message)
  }
}

function isFormatCall(node: Node): node is CallNode {
  return node.k === 'call' && node.fn === 'format' && node.overloads?.[0] === 'string_format'
}
