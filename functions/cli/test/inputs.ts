import path from 'node:path'
import { readPolicyFiles, readText } from '#functions/files.ts'
import type { JsonObject, UserInfo } from '#shared/admission/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { getOwn, isJsonObject, type JsonValue } from '#shared/json.ts'
import {
  anything,
  listOf,
  mapOf,
  object,
  optional,
  required,
  type Shape,
  text,
} from '#shared/policy/shape.ts'
import { parseJsonOrYaml } from '#shared/yaml.ts'
import { readShaped, type TestDocument, valuesShape } from './document.ts'

/** What a test is about, read from the files it names. */
export interface Inputs {
  policies: readonly { name: string; text: string }[]
  /** Objects to be created, lists expanded. */
  resources: readonly JsonObject[]
  /** The payload of policies about JSON, and the name it goes by. */
  payload?: { name: string; value: JsonObject }
  /** What is in the cluster already. */
  existing: readonly JsonObject[]
  userInfo?: UserInfo
}

const meta = { apiVersion: optional(text), kind: optional(text), metadata: optional(anything) }
const valuesFile = object({ ...meta, spec: required(valuesShape) })
const userInfoFile = object({
  ...meta,
  roles: optional(listOf(text)),
  clusterRoles: optional(listOf(text)),
  userInfo: required(
    object({
      username: optional(text),
      uid: optional(text),
      groups: optional(listOf(text)),
      extra: optional(mapOf(listOf(text))),
    }),
  ),
})
const clusterFile = object({
  ...meta,
  spec: required(
    object({
      resources: optional(listOf(anything)),
      crds: optional(anything),
      images: optional(
        unsupported('recorded image data is not supported: images come from registries'),
      ),
    }),
  ),
})

function unsupported(message: string): Shape<never> {
  return (_, at, faults) => faults.add(at, message, 'POLICY_UNSUPPORTED')
}

/** Everything a test names. Throws with the file and the place of what is wrong. */
export async function readInputs(test: TestDocument): Promise<Inputs> {
  const folder = path.dirname(test.file)
  const at = (name: string) => path.join(folder, name)
  const texts = await Promise.all(
    [...test.policies, ...(test.exceptions ?? [])].map((name) => readPolicyFiles(at(name))),
  )
  const resources = await Promise.all((test.resources ?? []).map((name) => readObjects(at(name))))
  const clusters = await Promise.all(
    [...(test.clusterResources ?? []), ...(test.context === undefined ? [] : [test.context])].map(
      async (name) => (await readShaped(at(name), clusterFile)).spec.resources ?? [],
    ),
  )
  const values = [
    ...(test.values === undefined ? [] : [test.values]),
    ...(test.variables === undefined
      ? []
      : [(await readShaped(at(test.variables), valuesFile)).spec]),
  ]
  const user =
    test.userinfo === undefined ? undefined : await readShaped(at(test.userinfo), userInfoFile)
  const payload =
    test.jsonPayload === undefined ? undefined : await readPayload(at(test.jsonPayload))
  return {
    policies: texts.flat().map((each) => ({ name: each.file, text: each.text })),
    resources: resources.flat(),
    existing: [...clusters.flat(), ...values.flatMap(namespacesOf)].map(asObject),
    ...(payload !== undefined && { payload }),
    ...(user !== undefined && { userInfo: user.userInfo as UserInfo }),
  }
}

/** The objects of a file or of the files of a folder. */
async function readObjects(where: string): Promise<JsonObject[]> {
  const files = await readPolicyFiles(where)
  return files.flatMap(({ file, text: content }) =>
    documentsOf(file, content).flatMap((value) => {
      const items =
        isJsonObject(value) && getOwn(value, 'kind') === 'List' ? getOwn(value, 'items') : undefined
      return (Array.isArray(items) ? items : [value]).map((each) => {
        if (isJsonObject(each)) return each
        throw new AdmissionError('CONFIG_INVALID', `${file} holds something that is no object`)
      })
    }),
  )
}

async function readPayload(file: string): Promise<{ name: string; value: JsonObject }> {
  const { text: content } = await readText(file, 'CONFIG_INVALID')
  const [value, ...more] = documentsOf(file, content)
  if (isJsonObject(value) && more.length === 0) return { name: path.basename(file), value }
  throw new AdmissionError('CONFIG_INVALID', `${file} has to hold one JSON object`)
}

function documentsOf(file: string, content: string): JsonValue[] {
  try {
    return parseJsonOrYaml(content)
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    const faults = thrown.faults.map((fault) => ({ ...fault, path: `${file}:${fault.path}` }))
    throw new AdmissionError('CONFIG_INVALID', `${file}: ${thrown.message}`, { faults })
  }
}

/** Namespaces that a test sets labels of, and those it spells out. */
function namespacesOf({
  namespaceSelector = [],
  namespaces = [],
}: NonNullable<TestDocument['values']>): unknown[] {
  const labelled = namespaceSelector.map(({ name, labels }) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name, ...labels } },
  }))
  return [...namespaces, ...labelled]
}

function asObject(value: unknown): JsonObject {
  // Read from YAML or made above, so it is JSON.
  if (isJsonObject(value as JsonValue)) return value as JsonObject
  throw new AdmissionError('CONFIG_INVALID', 'an object of the cluster is none')
}
