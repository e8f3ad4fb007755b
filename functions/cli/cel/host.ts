import { gunzipSync, gzipSync } from 'node:zlib'
import { fromBase64, fromUtf8, toBase64, utf8 } from '#shared/bytes.ts'
import { withDoubles } from '#shared/cel/doubles.ts'
import type { Host, HostAnswer, HostCall } from '#shared/cel/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { JsonValue } from '#shared/json.ts'
import { CEL_MAX_UNPACKED_BYTES } from '#shared/limits.ts'
import { parseYaml } from '#shared/yaml.ts'

type Answer = (argument: JsonValue | undefined, now: () => number) => JsonValue

/** What a command line can answer of Kyverno's functions that ask a host. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  // Go reads YAML into an `any` by way of JSON.
  'yaml.parse': (text) => withDoubles(parseYaml(String(text))[0] ?? null),
  'gzip.compress': (text) => toBase64(gzipSync(utf8(String(text)))),
  'gzip.decompress': (data) => unpacked(String(data)),
  'time.now': (_, now) => new Date(now()).toISOString(),
}

/** A host that answers at once, from this process alone. */
export function localHost(now: () => number): Host {
  return ({ name, args }: HostCall): HostAnswer => {
    const answer = Object.hasOwn(ANSWERS, name) ? ANSWERS[name] : undefined
    if (answer === undefined) return { kind: 'error', message: `${name}: nobody answers here` }
    try {
      return { kind: 'value', value: answer(args[0], now) }
    } catch (thrown) {
      // Whatever the text or the bytes are not: the call has failed, and the expression goes on with that.
      return { kind: 'error', message: `${name}: ${reasonOf(thrown)}` }
    }
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof AdmissionError || thrown instanceof Error
    ? thrown.message
    : String(thrown)
}

function unpacked(data: string): string {
  const bytes = fromBase64(data)
  if (bytes === undefined) throw new TypeError('not base64')
  return fromUtf8(gunzipSync(bytes, { maxOutputLength: CEL_MAX_UNPACKED_BYTES }))
}
