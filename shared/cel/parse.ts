import { CEL_MAX_EXPRESSION_CHARS, CEL_MAX_NODES, CEL_MAX_RECURSION } from '../limits.ts'
import type { ConstNode, ListNode, MapNode, Node, StructNode } from './ast.ts'
import { codePoints, issueAt, MAX_REPORTED_ISSUES, sortIssues } from './issues.ts'
import { type Token, type TokenKind, tokenize } from './lexer.ts'
import {
  bytesLiteral,
  doubleLiteral,
  intLiteral,
  type Literal,
  stringLiteral,
  uintLiteral,
} from './literals.ts'
import { type Macro, MacroFault } from './macros.ts'
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
  const parser = new Parser(source, macros)
  const ast = parser.start()
  const issues = sortIssues(parser.issues)
  return ast === undefined || issues.length > 0
    ? { ok: false, issues }
    : { ok: true, ast, places: parser.places }
}

function sizeIssue(source: string): Issue | undefined {
  if (source.length <= CEL_MAX_EXPRESSION_CHARS) return undefined
  const size = codePoints(source)
  if (size <= CEL_MAX_EXPRESSION_CHARS) return undefined
  const message = `expression code point size exceeds limit: size: ${size}, limit ${CEL_MAX_EXPRESSION_CHARS}`
  return issueAt('parse', source, CEL_MAX_EXPRESSION_CHARS, message)
}

/** Words that name nothing: they are fields of messages only. */
const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

const RELATIONS: ReadonlyMap<TokenKind, string> = new Map([
  ['<', '_<_'],
  ['<=', '_<=_'],
  ['>', '_>_'],
  ['>=', '_>=_'],
  ['==', '_==_'],
  ['!=', '_!=_'],
  ['in', '@in'],
])

const ARITHMETIC: ReadonlyMap<TokenKind, { fn: string; level: number }> = new Map([
  ['+', { fn: '_+_', level: 1 }],
  ['-', { fn: '_-_', level: 1 }],
  ['*', { fn: '_*_', level: 2 }],
  ['/', { fn: '_/_', level: 2 }],
  ['%', { fn: '_%_', level: 2 }],
])

const OPERAND =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

/** Ends the part of the expression that cannot be read; an enclosing list, map or call goes on after it. */
class Unreadable extends Error {}
/** Ends the whole parse. */
class Abort extends Error {}

/** The rules whose nesting is bounded, as cel-go counts them: one level for each rule entered and not yet left. */
interface Depths {
  expr: number
  relation: number
  calc: number
  member: number
}

class Parser {
  readonly places = new Places()
  readonly issues: Issue[] = []
  readonly #source: string
  readonly #macros: MacroTable
  readonly #tokens: readonly Token[]
  readonly #depths: Depths = { expr: 0, relation: 0, calc: 0, member: 0 }
  #next = 0
  /** Levels of operators, selections and calls in the subtree read last. */
  #height = 0

  constructor(source: string, macros: MacroTable) {
    this.#source = source
    this.#macros = macros
    const tokens = tokenize(source)
    for (const token of tokens) {
      if (token.kind === 'bad') this.#reportBad(token)
    }
    this.#tokens = tokens.filter((token) => token.kind !== 'bad')
  }

  /** The whole expression; undefined when none could be made. */
  start(): Node | undefined {
    try {
      const ast = this.#expr()
      if (this.#peek.kind !== 'end') this.#unexpected('<EOF>')
      return ast
    } catch (thrown) {
      if (thrown instanceof Unreadable || thrown instanceof Abort) return undefined
      throw thrown
    }
  }

  // --- tokens

  get #peek(): Token {
    // The last token is `end`, and nothing reads past it.
    return this.#tokens[this.#next] as Token
  }

  /** The kind of the token `ahead` places after the next one. */
  #kindAt(ahead: number): TokenKind {
    return this.#tokens[this.#next + ahead]?.kind ?? 'end'
  }

  #take(): Token {
    const token = this.#peek
    if (token.kind !== 'end') this.#next++
    return token
  }

  #skip(kind: TokenKind): Token | undefined {
    return this.#peek.kind === kind ? this.#take() : undefined
  }

  #expect(kind: TokenKind): Token {
    return this.#skip(kind) ?? this.#unexpected(`'${kind}'`)
  }

  #text(token: Token): string {
    return this.#source.slice(token.start, token.end)
  }

  /** Where the token before the next one ends. */
  get #end(): number {
    return this.#tokens[this.#next - 1]?.end ?? 0
  }

  // --- faults

  #report(offset: number, message: string): void {
    if (this.issues.length < MAX_REPORTED_ISSUES) {
      this.issues.push(issueAt('parse', this.#source, offset, message))
      return
    }
    throw new Abort()
  }

  #reportBad(token: Token): void {
    if (this.issues.length >= MAX_REPORTED_ISSUES) return
    const text = this.#text(token).slice(0, 80)
    this.#report(token.start, `Syntax error: token recognition error at: '${text}'`)
  }

  #unexpected(expected: string): never {
    const token = this.#peek
    const found = token.kind === 'end' ? '<EOF>' : this.#text(token).slice(0, 80)
    this.#report(token.start, `Syntax error: mismatched input '${found}' expecting ${expected}`)
    throw new Unreadable()
  }

  #deeper(rule: keyof Depths): void {
    this.#depths[rule]++
    if (this.#depths[rule] > CEL_MAX_RECURSION) this.#tooDeep(this.#peek.start)
  }

  #shallower(rule: keyof Depths, levels = 1): void {
    this.#depths[rule] -= levels
  }

  #raise(height: number, offset: number): void {
    this.#height = height
    if (height > CEL_MAX_RECURSION) this.#tooDeep(offset)
  }

  #tooDeep(offset: number): never {
    this.#report(offset, `expression recursion limit exceeded: ${CEL_MAX_RECURSION}`)
    throw new Abort()
  }

  #id(offset: number): number {
    if (this.places.count >= CEL_MAX_NODES) {
      this.#report(offset, `expression count exceeds limit of ${CEL_MAX_NODES}`)
      throw new Abort()
    }
    return this.places.add(offset)
  }

  // --- operators

  #expr(): Node {
    this.#deeper('expr')
    const start = this.#peek.start
    const condition = this.#logical('||', '_||_')
    const node = this.#peek.kind === '?' ? this.#conditional(condition, start) : condition
    this.#shallower('expr')
    return node
  }

  #conditional(condition: Node, start: number): Node {
    const height = this.#height
    const question = this.#take()
    const yes = this.#logical('||', '_||_')
    const yesHeight = this.#height
    this.#expect(':')
    const no = this.#expr()
    this.#raise(Math.max(height, yesHeight, this.#height) + 1, question.start)
    return this.#call('_?_:_', [condition, yes, no], start, question.start)
  }

  /** A chain of `||` or `&&`, balanced as cel-go balances it. */
  #logical(kind: '||' | '&&', fn: string): Node {
    const start = this.#peek.start
    const term = () => (kind === '||' ? this.#logical('&&', '_&&_') : this.#relation())
    const first = term()
    if (this.#peek.kind !== kind) return first
    let height = this.#height
    const chain: Chain = { fn, terms: [first], operators: [], starts: [start], ends: [this.#end] }
    while (this.#peek.kind === kind) {
      chain.operators.push(this.#take().start)
      chain.starts.push(this.#peek.start)
      chain.terms.push(term())
      chain.ends.push(this.#end)
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
    this.#deeper('relation')
    const start = this.#peek.start
    let levels = 1
    let node = this.#calc(0)
    for (let fn = RELATIONS.get(this.#peek.kind); fn; fn = RELATIONS.get(this.#peek.kind)) {
      const height = this.#height
      this.#deeper('relation')
      levels++
      const operator = this.#take()
      this.#deeper('relation')
      const right = this.#calc(0)
      this.#shallower('relation')
      this.#raise(Math.max(height, this.#height) + 1, operator.start)
      node = this.#call(fn, [node, right], start, operator.start)
    }
    this.#shallower('relation', levels)
    return node
  }

  /** Sums and products; `level` 2 reads products only, 3 a single operand. */
  #calc(level: number): Node {
    this.#deeper('calc')
    const start = this.#peek.start
    let levels = 1
    let node = this.#unary()
    for (;;) {
      const operation = ARITHMETIC.get(this.#peek.kind)
      if (operation === undefined || operation.level < level) break
      const height = this.#height
      this.#deeper('calc')
      levels++
      const operator = this.#take()
      const right = this.#calc(operation.level + 1)
      this.#raise(Math.max(height, this.#height) + 1, operator.start)
      node = this.#call(operation.fn, [node, right], start, operator.start)
    }
    this.#shallower('calc', levels)
    return node
  }

  /** An operand after any number of `!` or of `-`, pairs of which cancel out. */
  #unary(): Node {
    const first = this.#peek
    if (first.kind === '-' && isNumber(this.#kindAt(1))) return this.#member()
    if (first.kind !== '!' && first.kind !== '-') return this.#member()
    let count = 0
    while (this.#skip(first.kind)) count++
    const operand = this.#member()
    if (count % 2 === 0) return operand
    return this.#call(first.kind === '!' ? '!_' : '-_', [operand], first.start, first.start)
  }

  #call(fn: string, args: Node[], start: number, place: number): Node {
    return { k: 'call', id: this.#id(place), pos: [start, this.#end], fn, args }
  }

  // --- selections and calls

  #member(): Node {
    this.#deeper('member')
    const start = this.#peek.start
    let levels = 1
    let node = this.#primary()
    for (let kind = this.#peek.kind; kind === '.' || kind === '['; kind = this.#peek.kind) {
      this.#deeper('member')
      levels++
      node = kind === '.' ? this.#selection(node, start) : this.#index(node, start)
    }
    this.#shallower('member', levels)
    return node
  }

  #selection(operand: Node, start: number): Node {
    const height = this.#height
    const dot = this.#take()
    const optional = this.#skip('?')
    const name = this.#skip('ident') ?? this.#skip('quoted') ?? this.#unexpected('IDENTIFIER')
    const field = this.#fieldName(name)
    if (optional === undefined && name.kind === 'ident' && this.#peek.kind === '(') {
      return this.#memberCall(operand, field, start)
    }
    this.#raise(height + 1, dot.start)
    if (optional !== undefined) {
      const key = this.#literal({ value: { string: field } }, name.start)
      return this.#call('_?._', [operand, key], start, dot.start)
    }
    const id = this.#id(dot.start)
    return { k: 'select', id, pos: [start, this.#end], operand, field }
  }

  #fieldName(token: Token): string {
    return token.kind === 'quoted'
      ? this.#source.slice(token.start + 1, token.end - 1)
      : this.#text(token)
  }

  #memberCall(target: Node, name: string, start: number): Node {
    const height = this.#height
    const open = this.#take()
    const args = this.#args()
    this.#raise(Math.max(height, this.#height) + 1, open.start)
    return this.#callOrMacro(name, args, target, start, open.start)
  }

  #index(operand: Node, start: number): Node {
    const height = this.#height
    const open = this.#take()
    const optional = this.#skip('?')
    const index = this.#within(() => this.#expr())
    this.#expect(']')
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
    const pos: [number, number] = [start, this.#end]
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
    if (macro === undefined || this.issues.length > 0) return undefined
    const build = new Builder(this.places, [start, this.#end], open)
    try {
      const node = macro.expand(build, args, target)
      if (this.places.count > CEL_MAX_NODES) this.#id(open)
      return node
    } catch (thrown) {
      if (!(thrown instanceof MacroFault)) throw thrown
      this.#report(this.places.of(thrown.node), thrown.message)
      return this.#literal({ value: { null: true } }, open)
    }
  }

  // --- operands

  #primary(): Node {
    this.#height = 0
    const token = this.#peek
    switch (token.kind) {
      case 'ident':
        return this.#isMessage(0) ? this.#message() : this.#identOrCall()
      case '.':
        if (this.#kindAt(1) !== 'ident') break
        return this.#isMessage(1) ? this.#message() : this.#identOrCall()
      case '(':
        return this.#nested()
      case '[':
        return this.#list()
      case '{':
        return this.#map()
      case 'true':
      case 'false':
        return this.#literal({ value: { bool: this.#take().kind === 'true' } }, token.start)
      case 'null':
        this.#take()
        return this.#literal({ value: { null: true } }, token.start)
      case '-':
        if (isNumber(this.#kindAt(1))) return this.#number()
        break
      case 'int':
      case 'uint':
      case 'double':
        return this.#number()
      case 'string':
        return this.#literal(stringLiteral(this.#text(this.#take())), token.start)
      case 'bytes':
        return this.#literal(bytesLiteral(this.#text(this.#take())), token.start)
      default:
        break
    }
    return this.#unexpected(OPERAND)
  }

  #nested(): Node {
    this.#take()
    const node = this.#within(() => this.#expr())
    this.#expect(')')
    return node
  }

  #number(): Node {
    const start = this.#peek.start
    const negative = this.#skip('-') !== undefined
    const token = this.#take()
    const text = this.#text(token)
    if (token.kind === 'uint') return this.#literal(uintLiteral(text), start)
    const read = token.kind === 'int' ? intLiteral : doubleLiteral
    return this.#literal(read(text, negative), start)
  }

  /** A constant that ends where the token before the next one ends. */
  #literal(literal: Literal, start: number): Node {
    const value: ConstNode['value'] = 'value' in literal ? literal.value : { null: true }
    if ('error' in literal) this.#report(start, literal.error)
    return { k: 'const', id: this.#id(start), pos: [start, this.#end], value }
  }

  #identOrCall(): Node {
    const start = this.#peek.start
    const dot = this.#skip('.')
    const word = this.#expect('ident')
    const text = this.#text(word)
    if (RESERVED.has(text)) this.#report(start, `reserved identifier: ${text}`)
    const name = dot === undefined ? text : `.${text}`
    const open = this.#skip('(')
    if (open !== undefined) {
      return this.#callOrMacro(name, this.#args(), undefined, start, open.start)
    }
    return { k: 'ident', id: this.#id(word.start), pos: [start, this.#end], name }
  }

  /** True when names joined by dots and then `{` come next; the first of them is `ahead` tokens away. */
  #isMessage(ahead: number): boolean {
    let at = ahead + 1
    while (this.#kindAt(at) === '.' && this.#kindAt(at + 1) === 'ident') at += 2
    return this.#kindAt(at) === '{'
  }

  #message(): Node {
    const start = this.#peek.start
    let name = this.#skip('.') === undefined ? '' : '.'
    name += this.#text(this.#take())
    while (this.#skip('.')) name += `.${this.#text(this.#take())}`
    const open = this.#expect('{')
    const fields: StructNode['fields'] = []
    this.#items('}', true, (optional) => {
      const field = this.#skip('ident') ?? this.#skip('quoted') ?? this.#unexpected('IDENTIFIER')
      const colon = this.#expect(':')
      const entry = { name: this.#fieldName(field), value: this.#expr(), ...optional }
      this.places.addField(entry, colon.start)
      fields.push(entry)
    })
    return { k: 'struct', id: this.#id(open.start), pos: [start, this.#end], name, fields }
  }

  #list(): Node {
    const open = this.#take()
    const elements: Node[] = []
    const optionals: number[] = []
    this.#items(']', true, (optional) => {
      if (optional.optional) optionals.push(elements.length)
      elements.push(this.#expr())
    })
    const node: ListNode = {
      k: 'list',
      id: this.#id(open.start),
      pos: [open.start, this.#end],
      elements,
    }
    return optionals.length === 0 ? node : { ...node, optional: optionals }
  }

  #map(): Node {
    const open = this.#take()
    const entries: MapNode['entries'] = []
    this.#items('}', true, (optional) => {
      const key = this.#expr()
      this.#expect(':')
      entries.push({ key, value: this.#expr(), ...optional })
    })
    return { k: 'map', id: this.#id(open.start), pos: [open.start, this.#end], entries }
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
    let more = this.#peek.kind !== close && !(literal && this.#loneComma(close))
    while (more) {
      this.#height = 0
      this.#within(() => item(literal && this.#skip('?') ? { optional: true } : {}))
      height = Math.max(height, this.#height)
      more = this.#skip(',') !== undefined
      if (literal && this.#peek.kind === close) more = false
    }
    this.#expect(close)
    this.#height = height
  }

  #loneComma(close: TokenKind): boolean {
    if (this.#peek.kind !== ',' || this.#kindAt(1) !== close) return false
    this.#take()
    return true
  }

  /** Reads something in brackets; after a fault goes on at the comma or bracket that ends it. */
  #within<T>(read: () => T): T {
    const depths = { ...this.#depths }
    try {
      return read()
    } catch (thrown) {
      if (!(thrown instanceof Unreadable)) throw thrown
      Object.assign(this.#depths, depths)
      if (!this.#recover()) throw thrown
      // The issue that is already reported keeps the result from being used.
      return this.#literal({ value: { null: true } }, this.#peek.start) as T
    }
  }

  /** Skips to the comma or bracket that ends the current item; false when there is none. */
  #recover(): boolean {
    let open = 0
    for (;;) {
      const { kind } = this.#peek
      if (kind === 'end') return false
      const closes = kind === ')' || kind === ']' || kind === '}'
      if (open === 0 && (closes || kind === ',')) return true
      if (kind === '(' || kind === '[' || kind === '{') open++
      if (closes) open--
      this.#take()
    }
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
