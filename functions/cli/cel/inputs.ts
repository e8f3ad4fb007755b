import { countedFaults, readText } from '#functions/files.ts'
import { fromUtf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { isJsonObject, type JsonValue } from '#shared/json.ts'
import { MAX_BODY_BYTES } from '#shared/limits.ts'
import { parseJsonOrYaml } from '#shared/yaml.ts'
import type { Io } from '../io.ts'

/** The one object in a YAML or JSON file, `-` being standard input. Throws `YAML_INVALID` with the place of what is wrong. */
export async function readObject(io: Io, file: string): Promise<JsonValue> {
  const isStdin = file === '-'
  const name = isStdin ? 'standard input' : file
  const text = isStdin
    ? await readAll(io)
    : (await readText(file, 'YAML_INVALID', MAX_BODY_BYTES)).text
  const [object, ...more] = documentsOf(text, name)
  if (more.length > 0) {
    throw new AdmissionError('YAML_INVALID', `${name} has ${1 + more.length} documents, not one`)
  }
  if (!isJsonObject(object)) throw new AdmissionError('YAML_INVALID', `${name} holds no object`)
  return object
}

function documentsOf(text: string, name: string): JsonValue[] {
  try {
    return parseJsonOrYaml(text)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    const faults = thrown.faults.map(({ path, message }) => ({ path: `${name}:${path}`, message }))
    const what = faults.length === 0 ? thrown.message : countedFaults(faults)
    throw new AdmissionError('YAML_INVALID', `${name}: ${what}`, { faults, cause: thrown })
  }
}

async function readAll({ input }: Io): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of input) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) {
      const message = `standard input has more than ${MAX_BODY_BYTES} bytes`
      throw new AdmissionError('YAML_INVALID', message)
    }
    chunks.push(chunk.slice())
  }
  try {
    return fromUtf8(Buffer.concat(chunks))
  } catch (cause) {
    throw new AdmissionError('YAML_INVALID', 'standard input is not UTF-8 text', { cause })
  }
}
