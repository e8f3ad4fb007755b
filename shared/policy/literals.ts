import type { Node } from '../cel/ast.ts'

/** True for this literal. */
export function isBool(node: Node, value: boolean): boolean {
  return node.k === 'const' && 'bool' in node.value && node.value.bool === value
}

function isEmptyList(node: Node): boolean {
  return node.k === 'list' && node.elements.length === 0
}

/** True for what nothing is below: `false`, and the empty list. */
export function isLeast(node: Node): boolean {
  return isBool(node, false) || isEmptyList(node)
}

/** True for what has nothing in it: the empty list, the empty map and no optional value. */
export function isEmpty(node: Node): boolean {
  if (node.k === 'map') return node.entries.length === 0
  return isEmptyList(node) || (node.k === 'call' && node.fn === 'optional.none')
}

/** A sum of lengths and of as many such numbers as an expression can hold never overflows. */
const SMALL = 2 ** 32

/** True for such a number. */
export function isSmall(node: Node): boolean {
  return node.k === 'const' && 'int' in node.value && Math.abs(Number(node.value.int)) <= SMALL
}

/** True for null, 0 and the empty list. */
export function isNothing(node: Node): boolean {
  if (node.k === 'const') {
    return 'null' in node.value || ('int' in node.value && node.value.int === '0')
  }
  return isEmptyList(node)
}
