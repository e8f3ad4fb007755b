import { CEL_MAX_EXPRESSION_CHARS, CEL_MAX_NODES, CEL_MAX_RECURSION } from '../limits.ts'
import type { ConstNode, ListNode, MapNode, Node, StructNode } from './ast.ts'
import { Abort, Cursor, Unreadable } from './cursor.ts'
import { codePoints, issueAt, sortIssues } from './issues.ts'
import type { Token, TokenKind } from './lexer.ts'
import {
  bytesLiteral,
  doubleLiteral,
  intLiteral,
  type Literal,
  stringLiteral,
  uintLiteral,
} from './literals.ts'
import { type Macro, MacroFault } from './macros.ts'
import { INFIX, LEVEL } from './operators.ts'
import { Builder, Places } from './tree.ts'
import type { Issue } from './types.ts'

/** A parsed expression: macros are expanded, nothing is checked. */
export type ParseResult =
  | { ok: true; ast: Node; places: Places }
  | { ok: false; issues: readonly Issue[] }

/** Macros by function name. */
export type MacroTable = ReadonlyMap<string, readonly Macro[]>

/**
 * The syntax tree of an expression in cel-go's grammar, optional syntax and back-quoted fields included, or every fault
 * found. Bounds: 100,000 code points, 250 levels of each nesting rule, 100,000 nodes.
 */
export function parse(source: string, macros: MacroTable): ParseResult {
  const tooLong = sizeIssue(source)
  if (tooLong !== undefined) return { ok: false, issues: [tooLong] }
  const cursor = new Cursor(source)
  const parser = new Parser(cursor, macros)
  const ast = parser.start()
  const issues = sortIssues(cursor.issues)
  return ast === undefined || issues.length > 0
    ? { ok: false, issues }
    : { ok: true, ast, places: parser.places }
}

function sizeIssue(source: string): Issue | undefined {
  if (source.length <= CEL_MAX_EXPRESSION_CHARS) return undefined
  const size = codePoints(source)
  if (size <= CEL_MAX_EXPRESSION_CHARS) return undefined
  const message = `expression code point size exceeds limit: size: ${size}, limit ${CEL_MAX_EXPRESSION_CHARS}`
  const end = Array.from(source.slice(0, 2 * CEL_MAX_EXPRESSION_CHARS))
    .slice(0, CEL_MAX_EXPRESSION_CHARS)
    .join('').length
  return issueAt('parse', source, end, message)
}

/** Words that name nothing: they are fields of messages only. */
const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

const INFIX_BY_TOKEN: ReadonlyMap<TokenKind, (typeof INFIX)[number]> = new Map(
  INFIX.map((operator) => [operator.text, operator]),
)

const OPERAND =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

class Parser {
  readonly places = new Places()
  readonly #at: Cursor
  readonly #macros: MacroTable
  /** Stand where something could not be read; the issue that says so keeps the tree from being used. */
  readonly #placeholders = new Set<Node>()
  /** Levels of operators, selections and calls in the subtree read last. */
  #height = 0

  constructor(cursor: Cursor, macros: MacroTable) {
    this.#at = cursor
    this.#macros = macros
  }

  /** The whole expression; undefined when none could be made. */
  start(): Node | undefined {
    try {
      const ast = this.#expr()
      if (this.#at.peek.kind !== 'end') this.#at.unexpected('<EOF>')
      return ast
    } catch (thrown) {
      if (thrown instanceof Unreadable || thrown instanceof Abort) return undefined
      throw thrown
    }
  }

  #raise(height: number, offset: number): void {
    this.#height = height
    if (height > CEL_MAX_RECURSION) this.#at.tooDeep(offset)
  }

  #id(offset: number): number {
    if (this.places.count >= CEL_MAX_NODES) {
      this.#at.report(offset, `expression count exceeds limit of ${CEL_MAX_NODES}`)
      throw new Abort()
    }
    return this.places.add(offset)
  }

  // --- operators

  #expr(): Node {
    this.#at.deeper('expr')
    const start = this.#at.peek.start
    const condition = this.#logical('||', '_||_')
    const node = this.#at.peek.kind === '?' ? this.#conditional(condition, start) : condition
    this.#at.shallower('expr')
    return node
  }

  #conditional(condition: Node, start: number): Node {
    const height = this.#height
    const question = this.#at.take()
    const yes = this.#logical('||', '_||_')
    const yesHeight = this.#height
    this.#at.expect(':')
    const no = this.#expr()
    this.#raise(Math.max(height, yesHeight, this.#height) + 1, question.start)
    return this.#call('_?_:_', [condition, yes, no], start, question.start)
  }

  /** A chain of `||` or `&&`, balanced as cel-go balances it. */
  #logical(kind: '||' | '&&', fn: string): Node {
    const start = this.#at.peek.start
    const term = () => (kind === '||' ? this.#logical('&&', '_&&_') : this.#relation())
    const first = term()
    if (this.#at.peek.kind !== kind) return first
    let height = this.#height
    const chain: Chain = {
      fn,
      terms: [first],
      operators: [],
      starts: [start],
      ends: [this.#at.end],
    }
    while (this.#at.peek.kind === kind) {
      chain.operators.push(this.#at.take().start)
      chain.starts.push(this.#at.peek.start)
      chain.terms.push(term())
      chain.ends.push(this.#at.end)
      height = Math.max(height, this.#height)
    }
    this.#height = height
    return this.#balanced(chain, 0, chain.operators.length - 1)
  }

  #balanced(chain: Chain, low: number, high: number): Node {
    const mid = (low + high + 1) >> 1
    const left = mid === low ? chain.terms[mid] : this.#balanced(chain, low, mid - 1)
    const right = mid === high ? chain.terms[mid + 1] : this.#balanced(chain, mid + 1, high)
    const place = chain.operators[mid] ?? 0
    const pos: [number, number] = [chain.starts[low] ?? 0, chain.ends[high + 1] ?? 0]
    // `low..high` lies within the operators, and there is one more term than operators.
    const args = [left as Node, right as Node]
    return { k: 'call', id: this.#id(place), pos, fn: chain.fn, args }
  }

  #relation(): Node {
    this.#at.deeper('relation')
    const start = this.#at.peek.start
    let levels = 1
    let node = this.#calc(LEVEL.sum)
    for (;;) {
      const operation = INFIX_BY_TOKEN.get(this.#at.peek.kind)
      if (operation?.level !== LEVEL.relation) break
      const height = this.#height
      this.#at.deeper('relation')
      levels++
      const operator = this.#at.take()
      this.#at.deeper('relation')
      const right = this.#calc(LEVEL.sum)
      this.#at.shallower('relation')
      this.#raise(Math.max(height, this.#height) + 1, operator.start)
      node = this.#call(operation.fn, [node, right], start, operator.start)
    }
    this.#at.shallower('relation', levels)
    return node
  }

  /** Operators that bind as `level` does or more tightly: sums and products, or products, or a single operand. */
  #calc(level: number): Node {
    this.#at.deeper('calc')
    const start = this.#at.peek.start
    let levels = 1
    let node = this.#unary()
    for (;;) {
      const operation = INFIX_BY_TOKEN.get(this.#at.peek.kind)
      if (operation === undefined || operation.level < level) break
      const height = this.#height
      this.#at.deeper('calc')
      levels++
      const operator = this.#at.take()
      const right = this.#calc(operation.level + 1)
      this.#raise(Math.max(height, this.#height) + 1, operator.start)
      node = this.#call(operation.fn, [node, right], start, operator.start)
    }
    this.#at.shallower('calc', levels)
    return node
  }

  /** An operand after any number of `!` or of `-`, pairs of which cancel out. */
  #unary(): Node {
    const first = this.#at.peek
    if (first.kind === '-' && isNumber(this.#at.kindAt(1))) return this.#member()
    if (first.kind !== '!' && first.kind !== '-') return this.#member()
    let count = 0
    while (this.#at.skip(first.kind)) count++
    const operand = this.#member()
    if (count % 2 === 0) return operand
    return this.#call(first.kind === '!' ? '!_' : '-_', [operand], first.start, first.start)
  }

  #call(fn: string, args: Node[], start: number, place: number): Node {
    return { k: 'call', id: this.#id(place), pos: [start, this.#at.end], fn, args }
  }

  // --- selections and calls

  #member(): Node {
    this.#at.deeper('member')
    const start = this.#at.peek.start
    let levels = 1
    let node = this.#primary()
    for (let kind = this.#at.peek.kind; kind === '.' || kind === '['; kind = this.#at.peek.kind) {
      this.#at.deeper('member')
      levels++
      node = kind === '.' ? this.#selection(node, start) : this.#index(node, start)
    }
    this.#at.shallower('member', levels)
    return node
  }

  #selection(operand: Node, start: number): Node {
    const height = this.#height
    const dot = this.#at.take()
    const optional = this.#at.skip('?')
    const name =
      this.#at.skip('ident') ?? this.#at.skip('quoted') ?? this.#at.unexpected('IDENTIFIER')
    const field = this.#fieldName(name)
    if (optional === undefined && name.kind === 'ident' && this.#at.peek.kind === '(') {
      return this.#memberCall(operand, field, start)
    }
    this.#raise(height + 1, dot.start)
    if (optional !== undefined) {
      const key = this.#literal({ value: { string: field } }, name.start)
      return this.#call('_?._', [operand, key], start, dot.start)
    }
    const id = this.#id(dot.start)
    return { k: 'select', id, pos: [start, this.#at.end], operand, field }
  }

  #fieldName(token: Token): string {
    const text = this.#at.text(token)
    return token.kind === 'quoted' ? text.slice(1, -1) : text
  }

  #memberCall(target: Node, name: string, start: number): Node {
    const height = this.#height
    const open = this.#at.take()
    const args = this.#args()
    this.#raise(Math.max(height, this.#height) + 1, open.start)
    return this.#callOrMacro(name, args, target, start, open.start)
  }

  #index(operand: Node, start: number): Node {
    const height = this.#height
    const open = this.#at.take()
    const optional = this.#at.skip('?')
    const index = this.#enclosed()
    this.#at.expect(']')
    this.#raise(Math.max(height, this.#height) + 1, open.start)
    const fn = optional === undefined ? '_[_]' : '_[?_]'
    return this.#call(fn, [operand, index], start, open.start)
  }

  #callOrMacro(
    fn: string,
    args: Node[],
    target: Node | undefined,
    start: number,
    open: number,
  ): Node {
    const expanded = this.#expand(fn, args, target, start, open)
    if (expanded !== undefined) return expanded
    const pos: [number, number] = [start, this.#at.end]
    const receiver = target === undefined ? {} : { target }
    return { k: 'call', id: this.#id(open), pos, fn, ...receiver, args }
  }

  #expand(
    fn: string,
    args: Node[],
    target: Node | undefined,
    start: number,
    open: number,
  ): Node | undefined {
    const macro = this.#macros
      .get(fn)
      ?.find(
        (m) => m.receiver === (target !== undefined) && (m.args ?? args.length) === args.length,
      )
    if (macro === undefined || args.some((arg) => this.#placeholders.has(arg))) return undefined
    const build = new Builder(this.places, [start, this.#at.end], open)
    try {
      const node = macro.expand(build, args, target)
      if (this.places.count > CEL_MAX_NODES) this.#id(open)
      return node
    } catch (thrown) {
      if (!(thrown instanceof MacroFault)) throw thrown
      this.#at.report(this.places.of(thrown.node), thrown.message)
      return this.#placeholder(open)
    }
  }

  // --- operands

  #primary(): Node {
    this.#height = 0
    const token = this.#at.peek
    switch (token.kind) {
      case 'ident':
        return this.#isMessage(0) ? this.#message() : this.#identOrCall()
      case '.':
        if (this.#at.kindAt(1) !== 'ident') break
        return this.#isMessage(1) ? this.#message() : this.#identOrCall()
      case '(':
        return this.#nested()
      case '[':
        return this.#list()
      case '{':
        return this.#map()
      case 'true':
      case 'false':
        return this.#literal({ value: { bool: this.#at.take().kind === 'true' } }, token.start)
      case 'null':
        this.#at.take()
        return this.#literal({ value: { null: true } }, token.start)
      case '-':
        if (isNumber(this.#at.kindAt(1))) return this.#number()
        break
      case 'int':
      case 'uint':
      case 'double':
        return this.#number()
      case 'string':
        return this.#literal(stringLiteral(this.#at.text(this.#at.take())), token.start)
      case 'bytes':
        return this.#literal(bytesLiteral(this.#at.text(this.#at.take())), token.start)
      default:
        break
    }
    return this.#at.unexpected(OPERAND)
  }

  #nested(): Node {
    this.#at.take()
    const node = this.#enclosed()
    this.#at.expect(')')
    return node
  }

  #number(): Node {
    const start = this.#at.peek.start
    const negative = this.#at.skip('-') !== undefined
    const token = this.#at.take()
    const text = this.#at.text(token)
    if (token.kind === 'uint') return this.#literal(uintLiteral(text), start)
    const read = token.kind === 'int' ? intLiteral : doubleLiteral
    return this.#literal(read(text, negative), start)
  }

  /** Stands where something could not be read; the issue that says so keeps the tree from being used. */
  #placeholder(start: number): Node {
    const node: Node = this.#literal({ value: { null: true } }, start)
    this.#placeholders.add(node)
    return node
  }

  /** A constant that ends where the token before the next one ends. */
  #literal(literal: Literal, start: number): Node {
    const value: ConstNode['value'] = 'value' in literal ? literal.value : { null: true }
    const node: Node = { k: 'const', id: this.#id(start), pos: [start, this.#at.end], value }
    if ('value' in literal) return node
    this.#at.report(start, literal.error)
    this.#placeholders.add(node)
    return node
  }

  #identOrCall(): Node {
    const start = this.#at.peek.start
    const dot = this.#at.skip('.')
    const word = this.#at.expect('ident')
    const text = this.#at.text(word)
    if (RESERVED.has(text)) this.#at.report(start, `reserved identifier: ${text}`)
    const name = dot === undefined ? text : `.${text}`
    const open = this.#at.skip('(')
    if (open !== undefined) {
      return this.#callOrMacro(name, this.#args(), undefined, start, open.start)
    }
    return { k: 'ident', id: this.#id(word.start), pos: [start, this.#at.end], name }
  }

  /** True when names joined by dots and then `{` come next; the first of them is `ahead` tokens away. */
  #isMessage(ahead: number): boolean {
    let at = ahead + 1
    while (this.#at.kindAt(at) === '.' && this.#at.kindAt(at + 1) === 'ident') at += 2
    return this.#at.kindAt(at) === '{'
  }

  #message(): Node {
    const start = this.#at.peek.start
    let name = this.#at.skip('.') === undefined ? '' : '.'
    name += this.#at.text(this.#at.take())
    while (this.#at.skip('.')) name += `.${this.#at.text(this.#at.take())}`
    const open = this.#at.expect('{')
    const fields: StructNode['fields'] = []
    this.#items('}', true, (optional) => {
      const field =
        this.#at.skip('ident') ?? this.#at.skip('quoted') ?? this.#at.unexpected('IDENTIFIER')
      const colon = this.#at.expect(':')
      const entry = { name: this.#fieldName(field), value: this.#expr(), ...optional }
      this.places.addField(entry, colon.start)
      fields.push(entry)
    })
    return { k: 'struct', id: this.#id(open.start), pos: [start, this.#at.end], name, fields }
  }

  #list(): Node {
    const open = this.#at.take()
    const elements: Node[] = []
    const optionals: number[] = []
    this.#items(']', true, (optional) => {
      if (optional.optional) optionals.push(elements.length)
      elements.push(this.#expr())
    })
    const node: ListNode = {
      k: 'list',
      id: this.#id(open.start),
      pos: [open.start, this.#at.end],
      elements,
    }
    return optionals.length === 0 ? node : { ...node, optional: optionals }
  }

  #map(): Node {
    const open = this.#at.take()
    const entries: MapNode['entries'] = []
    this.#items('}', true, (optional) => {
      const key = this.#expr()
      this.#at.expect(':')
      entries.push({ key, value: this.#expr(), ...optional })
    })
    return { k: 'map', id: this.#id(open.start), pos: [open.start, this.#at.end], entries }
  }

  #args(): Node[] {
    const args: Node[] = []
    this.#items(')', false, () => {
      args.push(this.#expr())
    })
    return args
  }

  /**
   * Reads items up to `close`, which it takes. Brackets and braces allow `?` before an item, one comma after the last,
   * and in lists and maps a comma alone. What cannot be read is skipped to the next comma or to `close`.
   */
  #items(
    close: ')' | ']' | '}',
    literal: boolean,
    item: (optional: { optional?: true }) => void,
  ): void {
    let height = 0
    let more = this.#at.peek.kind !== close && !(literal && this.#loneComma(close))
    while (more) {
      this.#height = 0
      this.#at.recovering(() => item(literal && this.#at.skip('?') ? { optional: true } : {}))
      height = Math.max(height, this.#height)
      more = this.#at.skip(',') !== undefined
      if (literal && this.#at.peek.kind === close) more = false
    }
    this.#at.expect(close)
    this.#height = height
  }

  #loneComma(close: TokenKind): boolean {
    if (this.#at.peek.kind !== ',' || this.#at.kindAt(1) !== close) return false
    this.#at.take()
    return true
  }

  /** An expression in brackets; after a fault in it, a placeholder up to the bracket. */
  #enclosed(): Node {
    return this.#at.recovering(() => this.#expr()) ?? this.#placeholder(this.#at.peek.start)
  }
}

interface Chain {
  fn: string
  terms: Node[]
  /** Offset of the operator before each term but the first. */
  operators: number[]
  starts: number[]
  ends: number[]
}

function isNumber(kind: TokenKind): boolean {
  return kind === 'int' || kind === 'double'
}
