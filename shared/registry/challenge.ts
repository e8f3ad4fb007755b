/** One challenge of a `WWW-Authenticate` header. */
export interface Challenge {
  /** Lower case: `bearer`, `basic`. */
  scheme: string
  /** By lower-case name. */
  params: ReadonlyMap<string, string>
  /** The token68 form (`Negotiate abc==`), which no registry uses for pulling. */
  token68?: string
}

/** A header past this many characters is not read. Real ones have two hundred. */
const MAX_CHALLENGE_CHARS = 8192

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const TOKEN68 = /[-A-Za-z0-9._~+/]+=*(?=[ \t]*(?:,|$))/y
const PARAM_START = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*=[ \t]*(?![=,]|$)/y
const QUOTED = /"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\uffff]|\\[\t \x21-\x7e\x80-\uffff])*)"/y
const SEPARATORS = /[ \t,]*/y
const SPACES = /[ \t]*/y

/**
 * The challenges of a `WWW-Authenticate` header in the order given, or undefined when it is not written as RFC 9110
 * section 11.6.1 has it. A parameter that occurs twice in one challenge makes the header unreadable: two readers could
 * take different ones.
 *
 * @example parseChallenges('Bearer realm="https://auth.example/token",service="registry"')
 */
export function parseChallenges(header: string): readonly Challenge[] | undefined {
  if (header.length > MAX_CHALLENGE_CHARS) return undefined
  const reader = new Reader(header)
  const challenges: Challenge[] = []
  reader.take(SEPARATORS)
  while (!reader.atEnd) {
    const challenge = readChallenge(reader)
    if (challenge === undefined) return undefined
    challenges.push(challenge)
  }
  return challenges
}

function readChallenge(reader: Reader): Challenge | undefined {
  const scheme = reader.take(TOKEN)?.toLowerCase()
  if (scheme === undefined) return undefined
  const gap = reader.take(SPACES)
  if (gap !== '' && !reader.sees(PARAM_START)) {
    const token68 = reader.take(TOKEN68)
    if (token68 !== undefined) return reader.next({ scheme, params: new Map(), token68 })
  }
  const params = new Map<string, string>()
  // A parameter belongs to this challenge for as long as what follows a comma looks like `name=`.
  while (reader.sees(PARAM_START)) {
    if (!readParam(reader, params)) return undefined
  }
  return params.size > 0 ? { scheme, params } : reader.next({ scheme, params })
}

function readParam(reader: Reader, params: Map<string, string>): boolean {
  const name = reader.take(TOKEN)?.toLowerCase()
  reader.take(/[ \t]*=[ \t]*/y)
  const quoted = reader.take(QUOTED)
  const value = quoted === undefined ? reader.take(TOKEN) : unquote(quoted)
  if (name === undefined || value === undefined || params.has(name)) return false
  params.set(name, value)
  return reader.separated()
}

function unquote(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/gs, '$1')
}

/** A header and how far it has been read. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  get atEnd(): boolean {
    return this.#at === this.#text.length
  }

  /** What a sticky pattern matches here, read; or undefined. */
  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)?.[0]
    this.#at += match?.length ?? 0
    return match
  }

  sees(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    return pattern.test(this.#text)
  }

  /** True when the header ends here or a comma follows, which is read with the space around it. */
  separated(): boolean {
    this.take(SPACES)
    if (this.atEnd) return true
    return this.take(SEPARATORS) !== ''
  }

  /** The challenge, when a comma or the end follows it. */
  next(challenge: Challenge): Challenge | undefined {
    return this.separated() ? challenge : undefined
  }
}
