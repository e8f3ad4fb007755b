import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { countedFaults, readText, toFault } from '#functions/files.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { placeOf, readDocuments, type SourceDocument } from '#shared/policy/documents.ts'
import {
  anything,
  Faults,
  flag,
  formatPath,
  isRecord,
  listOf,
  mapOf,
  type ObjectOf,
  object,
  oneOf,
  optional,
  own,
  refused,
  required,
  type Shape,
  text,
  words,
} from '#shared/policy/shape.ts'

/** The name of test files, unless another one is asked for. */
export const TEST_FILE = 'kyverno-test.yaml'
const SIDE_FILE = 'countersign-test.yaml'

/** What a result of a test can expect of a policy. */
const EXPECTATIONS = ['pass', 'fail', 'skip', 'error', 'warn'] as const
export type Expectation = (typeof EXPECTATIONS)[number]

const names = listOf(words)

/** Results of other kinds of policies, which say so. */
export const OTHER_FLAGS = [
  'isValidatingAdmissionPolicy',
  'isMutatingAdmissionPolicy',
  'isValidatingPolicy',
  'isMutatingPolicy',
  'isGeneratingPolicy',
  'isDeletingPolicy',
] as const

const otherFlags = Object.fromEntries(OTHER_FLAGS.map((name) => [name, optional(flag)])) as Record<
  (typeof OTHER_FLAGS)[number],
  ReturnType<typeof optional<boolean>>
>

const resourceSpec = object({
  group: optional(text),
  version: optional(text),
  resource: optional(text),
  subresource: optional(text),
  namespace: optional(text),
  name: required(words),
})

const resultFields = {
  policy: required(words),
  rule: optional(text),
  ...otherFlags,
  isImageValidatingPolicy: optional(flag),
  kind: optional(text),
  resources: optional(names),
  resourceSpecs: optional(listOf(resourceSpec)),
  result: optional(oneOf(...EXPECTATIONS)),
  // Older spellings of the same.
  status: optional(oneOf(...EXPECTATIONS)),
  resource: optional(text),
  namespace: optional(text),
  // Of policies that change or make objects.
  patchedResource: optional(anything),
  patchedResources: optional(anything),
  generatedResource: optional(anything),
  cloneSourceResource: optional(anything),
}

const result = object(resultFields, (fields, at, faults) => {
  if (own(fields, 'result') === undefined && own(fields, 'status') === undefined) {
    faults.add([...at, 'result'], 'Required value')
  }
})

/** One expectation of a test: of these resources, this policy gives this result. */
export type ExpectedResult = ObjectOf<typeof resultFields>

const namespaceLabels = object({ name: required(words), labels: required(mapOf(text)) })

/** What is set about the cluster and its variables (`Values` of the same API group). */
export const valuesShape = object({
  globalValues: optional(anything),
  policies: optional(anything),
  namespaceSelector: optional(listOf(namespaceLabels)),
  namespaces: optional(listOf(anything)),
  subresources: optional(anything),
  variables: optional(anything),
})

const testFields = {
  apiVersion: optional(oneOf('cli.kyverno.io/v1alpha1')),
  kind: optional(oneOf('Test')),
  metadata: optional(anything),
  name: optional(text),
  policies: required(names),
  resources: optional(names),
  jsonPayload: optional(words),
  exceptions: optional(names),
  variables: optional(words),
  values: optional(valuesShape),
  userinfo: optional(words),
  clusterResources: optional(names),
  context: optional(words),
  results: optional(listOf(result)),
  checks: optional(refused('checks are not supported: write results')),
  targetResources: optional(anything),
  paramResources: optional(anything),
}

const testShape = object(testFields)

const sideFields = {
  apiVersion: required(oneOf('countersign.dev/v1')),
  kind: required(oneOf('TestSettings')),
  registry: optional(words),
  now: optional(words),
}
const sideShape = object(sideFields)

/** A test file that can be run. */
export interface TestDocument extends ObjectOf<typeof testFields> {
  file: string
  title: string
  /** The folder with images in place of registries, as the side file names it. */
  registry?: string
  /** The time of the test, epoch milliseconds; the machine's unless the side file names one. */
  at?: number
}

/** The test files in these folders and below them, and those that are named themselves. Throws `CONFIG_INVALID` where there are none. */
export async function findTests(where: readonly string[], name: string): Promise<string[]> {
  const found = (await Promise.all(where.map((each) => testsIn(each, name)))).flat()
  if (found.length > 0) return [...new Set(found)].sort()
  throw new AdmissionError('CONFIG_INVALID', `no ${name} in ${where.join(', ')}`)
}

async function testsIn(where: string, name: string): Promise<string[]> {
  const found = await stat(where).catch(() => undefined)
  if (found === undefined) {
    throw new AdmissionError('CONFIG_INVALID', `cannot read ${where}: no such file or folder`)
  }
  if (found.isFile()) return [where]
  const entries = await readdir(where, { recursive: true })
  return entries
    .filter((entry) => path.basename(entry) === name && !entry.includes('node_modules'))
    .map((entry) => path.join(where, entry))
}

/** A test file, with what stands beside it. Throws `CONFIG_INVALID` with `file:line:column` of every fault. */
export async function readTest(file: string): Promise<TestDocument> {
  const fields = await readShaped(file, testShape)
  const side = path.join(path.dirname(file), SIDE_FILE)
  const settings = existsSync(side) ? await readShaped(side, sideShape) : undefined
  const { metadata } = fields
  const named = isRecord(metadata) ? own(metadata, 'name') : undefined
  const at = settings?.now === undefined ? undefined : timeOf(settings.now, side)
  return {
    ...fields,
    file,
    title: typeof named === 'string' ? named : (fields.name ?? path.basename(path.dirname(file))),
    ...(settings?.registry !== undefined && {
      registry: path.join(path.dirname(file), settings.registry),
    }),
    ...(at !== undefined && { at }),
  }
}

function timeOf(written: string, file: string): number {
  const at = Date.parse(written)
  if (!Number.isNaN(at)) return at
  const faults = [{ path: file, message: `now: ${JSON.stringify(written)} is no time` }]
  throw new AdmissionError('CONFIG_INVALID', `${file}: 1 fault`, { faults })
}

/** The one document of a file, read by a shape. */
export async function readShaped<T>(file: string, shape: Shape<T>): Promise<T> {
  const { text: content } = await readText(file, 'CONFIG_INVALID')
  const { documents, faults: syntax } = readDocuments(content)
  const [document, ...more] = documents
  if (syntax.length > 0) {
    const faults = syntax.map(({ message, place }) =>
      toFault({ code: 'POLICY_INVALID', file, ...place, path: '', message }),
    )
    throw invalid(file, faults)
  }
  if (document === undefined || more.length > 0) {
    throw new AdmissionError('CONFIG_INVALID', `${file} has to hold one document`)
  }
  const faults = new Faults()
  const value = shape(document.value, [], faults)
  if (value !== undefined && faults.count === 0) return value
  throw invalid(file, located(file, document, faults))
}

function located(file: string, document: SourceDocument, { found }: Faults): Fault[] {
  return found.map((fault) =>
    toFault({
      code: fault.code,
      file,
      ...placeOf(document, fault),
      path: formatPath(fault.path),
      message: fault.message,
    }),
  )
}

function invalid(file: string, faults: readonly Fault[]): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `${file}: ${countedFaults(faults)}`, { faults })
}
