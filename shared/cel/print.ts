import { fromBase64 } from '../bytes.ts'
import type { CallNode, ConstNode, FoldNode, MapNode, Node, SelectNode, StructNode } from './ast.ts'
import { spellField } from './lexer.ts'
import { INFIX, LEVEL } from './operators.ts'
import { type MacroCall, macroOf, optionalMacroOf } from './unexpand.ts'

/**
 * The source of a tree, macros as calls again. It parses to the same tree up to ids and ranges. Throws a TypeError for a
 * tree no source has (a fold that no macro makes, a number that is not one).
 */
export function print(node: Node): string {
  return printAt(node, LEVEL.conditional)
}

type Operator = (typeof INFIX)[number]

const INFIX_BY_FUNCTION: ReadonlyMap<string, Operator> = new Map(
  INFIX.map((operator) => [operator.fn, operator]),
)

/** The node's text, in brackets when it binds less tightly than `level`. */
function printAt(node: Node, level: number): string {
  const own = levelOf(node)
  const text = printNode(node)
  return own < level ? `(${text})` : text
}

function levelOf(node: Node): number {
  if (node.k !== 'call' || node.target !== undefined) return LEVEL.operand
  if (node.fn === '_?_:_')
    return optionalMacroOf(node) === undefined ? LEVEL.conditional : LEVEL.operand
  if (node.fn === '_||_') return LEVEL.or
  if (node.fn === '_&&_') return LEVEL.and
  if (node.fn === '!_' || node.fn === '-_') return LEVEL.unary
  return operator(node)?.level ?? LEVEL.operand
}

function operator(node: CallNode): Operator | undefined {
  return INFIX_BY_FUNCTION.get(node.fn)
}

function printNode(node: Node): string {
  switch (node.k) {
    case 'const':
      return printConst(node.value)
    case 'ident':
      return node.name
    case 'select':
      return printSelect(node)
    case 'call':
      return node.target === undefined ? printGlobalCall(node) : printMemberCall(node, node.target)
    case 'list': {
      const optional = new Set(node.optional)
      const items = node.elements.map((each, i) => mark(optional.has(i)) + print(each))
      return `[${items.join(', ')}]`
    }
    case 'map':
      return `{${node.entries.map(printEntry).join(', ')}}`
    case 'struct':
      return `${node.name}{${node.fields.map(printField).join(', ')}}`
    case 'fold':
      return printFold(node)
  }
}

function mark(optional: boolean | undefined): string {
  return optional ? '?' : ''
}

function printEntry(entry: MapNode['entries'][number]): string {
  return `${mark(entry.optional)}${print(entry.key)}: ${print(entry.value)}`
}

function printField(field: StructNode['fields'][number]): string {
  return `${mark(field.optional)}${fieldName(field.name)}: ${print(field.value)}`
}

// --- selections

function printSelect({ operand, field, test }: SelectNode): string {
  const text = `${printTarget(operand)}.${fieldName(field)}`
  return test ? `has(${text})` : text
}

/** What stands before a dot or a bracket; numbers in brackets, so that the dot is not taken for theirs. */
function printTarget(node: Node): string {
  const text = printAt(node, LEVEL.operand)
  return isNumber(node) ? `(${text})` : text
}

function isNumber(node: Node): boolean {
  return (
    node.k === 'const' && ('int' in node.value || 'uint' in node.value || 'double' in node.value)
  )
}

function fieldName(name: string): string {
  const spelled = spellField(name)
  if (spelled === undefined) {
    throw new TypeError(`no expression can spell the field ${JSON.stringify(name)}`)
  }
  return spelled
}

// --- calls

function printGlobalCall(node: CallNode): string {
  const [first, second, third] = node.args
  if (first === undefined) return `${node.fn}()`
  if (node.fn === '_&&_' || node.fn === '_||_') return printLogical(node)
  const macro = optionalMacroOf(node)
  if (macro !== undefined) return printMacro(macro)
  if (node.fn === '!_') return `!${printAt(first, LEVEL.operand)}`
  if (node.fn === '-_')
    return `-${isNumber(first) ? `(${print(first)})` : printAt(first, LEVEL.operand)}`
  if (second === undefined) return printFunction(node)
  const infix = operator(node)
  if (infix !== undefined) {
    const right = printAt(second, infix.level + 1)
    return `${printAt(first, infix.level)} ${infix.text} ${right}`
  }
  if (node.fn === '_[_]') return `${printTarget(first)}[${print(second)}]`
  if (node.fn === '_[?_]') return `${printTarget(first)}[?${print(second)}]`
  if (node.fn === '_?._') return `${printTarget(first)}.?${fieldName(constantKey(second))}`
  if (node.fn === '_?_:_' && third !== undefined) {
    return `${printAt(first, LEVEL.or)} ? ${printAt(second, LEVEL.or)} : ${print(third)}`
  }
  return printFunction(node)
}

function constantKey(node: Node): string {
  if (node.k === 'const' && 'string' in node.value) return node.value.string
  throw new TypeError('an optional selection without a constant field')
}

/** Functions that macros call, and the macro that does. */
const VARIADIC: Readonly<Record<string, string>> = {
  'math.@max': 'math.greatest',
  'math.@min': 'math.least',
  'math.@bitAnd': 'math.bitAnd',
  'math.@bitOr': 'math.bitOr',
  'math.@bitXor': 'math.bitXor',
}

function printFunction(node: CallNode): string {
  if (!Object.hasOwn(VARIADIC, node.fn)) return `${node.fn}(${printArgs(node.args)})`
  const [list] = node.args
  const spread = node.args.length === 1 && list?.k === 'list' && node.fn.startsWith('math.@bit')
  return `${VARIADIC[node.fn]}(${printArgs(spread ? list.elements : node.args)})`
}

function printArgs(args: readonly Node[]): string {
  return args.map(print).join(', ')
}

function printMemberCall(node: CallNode, target: Node): string {
  return `${printTarget(target)}.${node.fn}(${printArgs(node.args)})`
}

/** A chain without brackets when that is how a chain parses, else two operands. */
function printLogical(node: CallNode): string {
  const { text, level } =
    node.fn === '_&&_' ? { text: ' && ', level: LEVEL.and } : { text: ' || ', level: LEVEL.or }
  const terms = flatten(node, node.fn)
  const shown = isBalanced(node, node.fn, terms, 0, terms.length - 2) ? terms : node.args
  return shown.map((term) => printAt(term, level + 1)).join(text)
}

function flatten(node: Node, fn: string): Node[] {
  if (node.k !== 'call' || node.fn !== fn) return [node]
  return node.args.flatMap((arg) => flatten(arg, fn))
}

/** True when `node` is the tree that terms `low..high + 1` of one chain parse to. */
function isBalanced(
  node: Node,
  fn: string,
  terms: readonly Node[],
  low: number,
  high: number,
): boolean {
  if (low > high) return node === terms[low]
  if (node.k !== 'call' || node.fn !== fn) return false
  const [left, right] = node.args
  const mid = (low + high + 1) >> 1
  return (
    left !== undefined &&
    right !== undefined &&
    isBalanced(left, fn, terms, low, mid - 1) &&
    isBalanced(right, fn, terms, mid + 1, high)
  )
}

// --- macros

function printFold(fold: FoldNode): string {
  const macro = macroOf(fold)
  if (macro === undefined) throw new TypeError('no macro makes this fold')
  return printMacro(macro)
}

function printMacro({ target, name, args }: MacroCall): string {
  const receiver = typeof target === 'string' ? target : printTarget(target)
  const texts = args.map((arg) => (typeof arg === 'string' ? arg : print(arg)))
  return `${receiver}.${name}(${texts.join(', ')})`
}

// --- constants

function printConst(value: ConstNode['value']): string {
  if ('string' in value) return quote(value.string)
  if ('int' in value) return value.int
  if ('bool' in value) return String(value.bool)
  if ('double' in value) return printDouble(value.double)
  if ('uint' in value) return `${value.uint}u`
  return 'bytes' in value ? printBytes(value.bytes) : 'null'
}

function printDouble(text: string): string {
  if (!Number.isFinite(Number(text))) throw new TypeError(`no literal is ${text}`)
  return /[.e]/.test(text) ? text : `${text}.0`
}

function quote(text: string): string {
  const escaped = text.replace(/["\\\p{Cc}\u2028\u2029]/gu, (char) => {
    if (char === '"' || char === '\\') return `\\${char}`
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  return `"${escaped}"`
}

function printBytes(base64: string): string {
  const chars = [...(fromBase64(base64) ?? [])].map((byte) => {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
    return plain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
  })
  return `b"${chars.join('')}"`
}
