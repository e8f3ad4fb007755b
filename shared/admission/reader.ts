import { AdmissionError, type Fault } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json.ts'
import { MAX_FAULTS, MAX_IDENTIFIER_CHARS, MAX_LISTED_FAULTS } from '../limits.ts'
import type { JsonObject } from './types.ts'

/** Reads members of the review and remembers everything that is wrong with them. */
export class Reader {
  /** What is read, for the message. */
  readonly #what: string
  readonly #faults: Fault[] = []
  #count = 0

  constructor(what = 'AdmissionReview') {
    this.#what = what
  }

  get hasFaults(): boolean {
    return this.#count > 0
  }

  fault(path: string, message: string): void {
    if (this.#count++ < MAX_FAULTS) this.#faults.push({ path, message })
  }

  /** `REVIEW_INVALID` with all faults, the first of them in its message. */
  error(): AdmissionError {
    const listed = this.#faults
      .slice(0, MAX_LISTED_FAULTS)
      .map(({ path, message }) => `${path}: ${message}`)
      .join('; ')
    const rest = this.#count - MAX_LISTED_FAULTS
    const more = rest > 0 ? `; and ${rest} more` : ''
    return new AdmissionError('REVIEW_INVALID', `${this.#what} is not valid: ${listed}${more}`, {
      faults: this.#faults,
    })
  }

  object(path: string, value: JsonValue | undefined): JsonObject | undefined {
    if (isJsonObject(value)) return value
    this.fault(path, `must be an object, is ${describe(value)}`)
    return undefined
  }

  nullableObject(path: string, value: JsonValue | undefined): JsonObject | null | undefined {
    return isAbsent(value) ? null : this.object(path, value)
  }

  text(path: string, value: JsonValue | undefined): string | undefined {
    if (typeof value !== 'string') {
      this.fault(path, `must be a string, is ${describe(value)}`)
      return undefined
    }
    if (value.length > MAX_IDENTIFIER_CHARS) {
      this.fault(path, `has ${value.length} characters, at most ${MAX_IDENTIFIER_CHARS} may be`)
      return undefined
    }
    return value
  }

  optionalText(path: string, value: JsonValue | undefined): string | undefined {
    return isAbsent(value) ? undefined : this.text(path, value)
  }

  /** A string that is not empty. */
  identifier(path: string, value: JsonValue | undefined): string | undefined {
    const text = this.text(path, value)
    if (text === '') this.fault(path, 'must not be empty')
    return text === '' ? undefined : text
  }

  /** The strings of a list, copied. */
  texts(path: string, value: JsonValue): string[] {
    if (!Array.isArray(value)) {
      this.fault(path, `must be a list of strings, is ${describe(value)}`)
      return []
    }
    return value.filter((item, index): item is string => {
      if (typeof item === 'string') return true
      this.fault(`${path}[${index}]`, `must be a string, is ${describe(item)}`)
      return false
    })
  }

  textMap(path: string, value: JsonValue | undefined): void {
    if (isAbsent(value)) return
    for (const [key, member] of Object.entries(this.object(path, value) ?? {})) {
      if (typeof member !== 'string') {
        this.fault(`${path}[${quote(key)}]`, `must be a string, is ${describe(member)}`)
      }
    }
  }
}

/** Go decodes a null member and a missing one to the same thing. */
export function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === null || value === undefined
}

/** What a value is, without showing what may be secret or large: short strings are quoted, the rest is named. */
export function describe(value: JsonValue | undefined): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (typeof value === 'string') return value.length <= 60 ? quote(value) : 'a long string'
  if (Array.isArray(value)) return 'a list'
  return isJsonObject(value)
    ? 'an object'
    : `a ${typeof value === 'boolean' ? 'boolean' : 'number'}`
}

/** A JSON string of the text, cut to 80 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}
