import type { Node } from '../cel/ast.ts'

/** Members of `request` that every request has (kubernetes-admission.md 4): the others are left out where they are empty. */
const ALWAYS: ReadonlySet<string> = new Set([
  'request.operation',
  'request.userInfo.username',
  ...['kind', 'requestKind'].flatMap((kind) =>
    ['group', 'version', 'kind'].map((part) => `request.${kind}.${part}`),
  ),
  ...['resource', 'requestResource'].flatMap((resource) =>
    ['group', 'version', 'resource'].map((part) => `request.${resource}.${part}`),
  ),
])

/** Functions that give a value for whatever has the right type. */
const TOTAL: ReadonlySet<string> = new Set([
  '_&&_',
  '_||_',
  '!_',
  '_?_:_',
  '_==_',
  '_!=_',
  '@in',
  'startsWith',
  'endsWith',
  'contains',
])

/** True when a checked expression has a value for every request: few have, as objects may lack any member. False where that is not plain. */
export function neverFails(node: Node): boolean {
  switch (node.k) {
    case 'const':
      return true
    case 'list':
      return node.optional === undefined && node.elements.every(neverFails)
    case 'select':
      return node.test ? pathOf(node.operand) === 'request' : ALWAYS.has(pathOf(node) ?? '')
    case 'call': {
      const { fn, target, args } = node
      return TOTAL.has(fn) && [...(target ? [target] : []), ...args].every(neverFails)
    }
    default:
      return false
  }
}

/** `request.userInfo.username`, or undefined for anything but names and the fields of each. */
function pathOf(node: Node): string | undefined {
  if (node.k === 'ident') return node.name
  if (node.k !== 'select' || node.test) return undefined
  const path = pathOf(node.operand)
  return path === undefined ? undefined : `${path}.${node.field}`
}
