import { CEL_MAX_RECURSION } from '../limits.ts'
import { issueAt, MAX_REPORTED_ISSUES } from './issues.ts'
import { type Token, type TokenKind, tokenize } from './lexer.ts'
import type { Issue } from './types.ts'

/** Ends the part of an expression that cannot be read; an enclosing list, map or call goes on after it. */
export class Unreadable extends Error {}

/** Ends the whole parse. */
export class Abort extends Error {}

/** The rules whose nesting is bounded, as cel-go counts them: one level for each rule entered and not yet left. */
type Rule = 'expr' | 'relation' | 'calc' | 'member'

/** The place in the tokens of one expression, the faults found so far, and the depth reached. */
export class Cursor {
  readonly issues: Issue[] = []
  readonly #source: string
  readonly #tokens: readonly Token[]
  readonly #depths: Record<Rule, number> = { expr: 0, relation: 0, calc: 0, member: 0 }
  #next = 0

  constructor(source: string) {
    this.#source = source
    const tokens = tokenize(source)
    for (const token of tokens) {
      if (token.kind === 'bad') this.#reportBad(token)
    }
    this.#tokens = tokens.filter((token) => token.kind !== 'bad')
  }

  /** The next token; at the end it is `end`. */
  get peek(): Token {
    // The last token is `end`, and nothing reads past it.
    return this.#tokens[this.#next] as Token
  }

  /** The kind of the token `ahead` places after the next one. */
  kindAt(ahead: number): TokenKind {
    return this.#tokens[this.#next + ahead]?.kind ?? 'end'
  }

  take(): Token {
    const token = this.peek
    if (token.kind !== 'end') this.#next++
    return token
  }

  /** The next token when it is of this kind, and then the one after it is next. */
  skip(kind: TokenKind): Token | undefined {
    return this.peek.kind === kind ? this.take() : undefined
  }

  /** The next token; throws Unreadable when it is not of this kind. */
  expect(kind: TokenKind): Token {
    return this.skip(kind) ?? this.unexpected(`'${kind}'`)
  }

  text(token: Token): string {
    return this.#source.slice(token.start, token.end)
  }

  /** UTF-16 offset after the token taken last. */
  get end(): number {
    return this.#tokens[this.#next - 1]?.end ?? 0
  }

  /** Adds an issue; past the hundredth throws Abort. */
  report(offset: number, message: string): void {
    if (this.issues.length >= MAX_REPORTED_ISSUES) throw new Abort()
    this.issues.push(issueAt('parse', this.#source, offset, message))
  }

  /** Reports the next token and throws Unreadable. */
  unexpected(expected: string): never {
    const token = this.peek
    const found = token.kind === 'end' ? '<EOF>' : this.text(token).slice(0, QUOTED_CHARS)
    this.report(token.start, `Syntax error: mismatched input '${found}' expecting ${expected}`)
    throw new Unreadable()
  }

  /** Enters a rule; throws Abort when that is one level too many. */
  deeper(rule: Rule): void {
    this.#depths[rule]++
    if (this.#depths[rule] > CEL_MAX_RECURSION) this.tooDeep(this.peek.start)
  }

  shallower(rule: Rule, levels = 1): void {
    this.#depths[rule] -= levels
  }

  tooDeep(offset: number): never {
    this.report(offset, `expression recursion limit exceeded: ${CEL_MAX_RECURSION}`)
    throw new Abort()
  }

  /**
   * What `read` gives. When it throws Unreadable, the tokens up to the comma or bracket that ends the item are skipped and
   * it is undefined; when there is no such token, the error goes on.
   */
  recovering<T>(read: () => T): T | undefined {
    const depths = { ...this.#depths }
    try {
      return read()
    } catch (thrown) {
      if (!(thrown instanceof Unreadable) || !this.#skipItem()) throw thrown
      Object.assign(this.#depths, depths)
      return undefined
    }
  }

  #skipItem(): boolean {
    let open = 0
    for (;;) {
      const { kind } = this.peek
      if (kind === 'end') return false
      const closes = kind === ')' || kind === ']' || kind === '}'
      if (open === 0 && (closes || kind === ',')) return true
      if (kind === '(' || kind === '[' || kind === '{') open++
      if (closes) open--
      this.take()
    }
  }

  #reportBad(token: Token): void {
    if (this.issues.length >= MAX_REPORTED_ISSUES) return
    const text = this.text(token).slice(0, QUOTED_CHARS)
    this.report(token.start, `Syntax error: token recognition error at: '${text}'`)
  }
}

/** Source text quoted in a message, characters. */
const QUOTED_CHARS = 80
