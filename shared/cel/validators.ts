import type { ListNode, MapNode, Node } from './ast.ts'
import type { Checked, CheckFault } from './check.ts'
import type { Environment } from './environment.ts'
import { type Places, walk } from './tree.ts'
import { printType, sameType, type Type, unwrapOptional } from './type.ts'

/** The API server's own rules on a tree that has its types: every violation, at its place. */
export function validate(
  checked: Checked,
  places: Places,
  environment: Environment,
): readonly CheckFault[] {
  const faults: CheckFault[] = []
  const report = (node: Node, message: string) => faults.push({ offset: places.of(node), message })
  const homogeneous = environment.validations.has('homogeneous')
  walk(checked.ast, (node, ancestors) => {
    if (homogeneous && (node.k === 'list' || node.k === 'map') && !isExempt(ancestors)) {
      if (node.k === 'list') sameElements(node, checked, report)
      else sameEntries(node, checked, report)
    }
  })
  return faults
}

type Report = (node: Node, message: string) => void

/** Arguments of `format` may mix types. */
function isExempt(ancestors: readonly Node[]): boolean {
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
