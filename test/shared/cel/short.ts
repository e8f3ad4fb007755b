import type { Node } from '#shared/cel/ast.ts'

/** A tree in short: calls as `fn(target; args)`, strings in quotes, other constants as the tree spells them. */
export function short(node: Node): string {
  switch (node.k) {
    case 'const':
      return shortConst(node.value)
    case 'ident':
      return node.name
    case 'select':
      return node.test
        ? `has(${short(node.operand)}.${node.field})`
        : `${short(node.operand)}.${node.field}`
    case 'call': {
      const target = node.target === undefined ? '' : `${short(node.target)}; `
      return `${node.fn}(${target}${node.args.map(short).join(', ')})`
    }
    case 'list':
      return `[${node.elements.map((each, i) => mark(node.optional?.includes(i)) + short(each)).join(', ')}]`
    case 'map':
      return `{${node.entries.map((each) => `${mark(each.optional)}${short(each.key)}: ${short(each.value)}`).join(', ')}}`
    case 'struct':
      return `${node.name}{${node.fields.map((each) => `${mark(each.optional)}${each.name}: ${short(each.value)}`).join(', ')}}`
    case 'fold': {
      const vars = [node.iterVar, node.iterVar2].filter((name) => name !== undefined).join(', ')
      const parts = [node.condition, node.step, node.result].map(short).join('; ')
      return `fold(${vars} of ${short(node.range)}; ${node.accuVar} = ${short(node.accuInit)}; ${parts})`
    }
  }
}

function mark(optional: boolean | undefined): string {
  return optional ? '?' : ''
}

function shortConst(value: (Node & { k: 'const' })['value']): string {
  const [text] = Object.values(value)
  return typeof text === 'string' && !('string' in value) ? text : JSON.stringify(text)
}
