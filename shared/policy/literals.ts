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

/** True for null, 0 and the empty list. */
export function isNothing(node: Node): boolean {
  if (node.k === 'const') {
    return 'null' in node.value || ('int' in node.value && node.value.int === '0')
  }
  return isEmptyList(node)
}
