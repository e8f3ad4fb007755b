/**
 * A JSON value as the engine holds it. Ordinary numbers are JavaScript numbers; an integer beyond 2^53 is a bigint and a
 * number written with a fraction or exponent whose value is integral (`1.0`, `1e3`) is a JsonDouble, so that both
 * survive and CEL can tell `int` from `double`.
 */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | JsonDouble
  | JsonValue[]
  | { [key: string]: JsonValue }

/** A number whose text says it is not an integer although its value is, such as `1.0`. */
export class JsonDouble {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}
