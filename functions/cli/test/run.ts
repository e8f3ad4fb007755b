import { countedFaults, toFault } from '#functions/files.ts'
import type { EngineOptions } from '#shared/engine/image-policy.ts'
import { AdmissionError, type Fault, toAdmissionError } from '#shared/errors.ts'
import { objectsOf, readDocuments } from '#shared/policy/documents.ts'
import { isPolicyKind, POLICY_GROUP } from '#shared/policy/kinds.ts'
import { type LoadOptions, loadPolicies } from '#shared/policy/load.ts'
import { isJsonMode } from '#shared/policy/schema.ts'
import { Faults, isRecord, own } from '#shared/policy/shape.ts'
import { type CompiledPolicy, policyKey } from '#shared/policy/types.ts'
import { readTest, type TestDocument } from './document.ts'
import { TestEngine } from './engine.ts'
import { type Inputs, readInputs } from './inputs.ts'
import { isOfAnother, type Judged, type Row, rowsOf } from './judge.ts'
import { creationOf, payloadOf } from './requests.ts'

/** One test file that was run. */
export interface Ran {
  file: string
  title: string
  rows: readonly Row[]
  /** Results that are about other kinds of policies. */
  others: number
  /** Why it could not be run at all. */
  error?: string
  faults?: readonly Fault[]
}

export interface RunOptions {
  /** What the config says of keys, logins and trusted roots in policies. */
  load: LoadOptions
  /** What the engine of a test is made with. */
  engine: (
    test: TestDocument,
    inputs: Inputs,
  ) => Promise<Omit<EngineOptions, 'policies' | 'outcomes'>>
  /** Images are pinned first, as the mutating webhook does it. */
  pin: boolean
  strict: boolean
  signal: AbortSignal
}

/** One test file, run. What is wrong with it or with what it names is in its `error`. */
export async function runTest(file: string, options: RunOptions): Promise<Ran> {
  let title = file
  try {
    const test = await readTest(file)
    title = test.title
    const rows = await rowsOfTest(test, options)
    return { file, title, ...rows }
  } catch (thrown) {
    const { message, faults } = toAdmissionError(thrown, 'running the test')
    return {
      file,
      title,
      rows: [],
      others: 0,
      error: message,
      ...(faults.length > 0 && { faults }),
    }
  }
}

async function rowsOfTest(
  test: TestDocument,
  { load, engine, pin, strict, signal }: RunOptions,
): Promise<Pick<Ran, 'rows' | 'others' | 'error'>> {
  const inputs = await readInputs(test)
  const found = namesIn(inputs)
  const options = await engine(test, inputs)
  const policies = await policiesOf(inputs, { ...load, now: options.now() })
  const judged = await judgeAll(
    policies,
    inputs,
    found.json,
    (chosen) => new TestEngine(chosen, options, signal),
    { pin },
  )
  const keys = [...new Set(policies.map(policyKey))]
  const trial = { keys, others: found.others, unscored: found.unscored, judged, strict }
  const results = test.results ?? []
  const ours = results.filter((result) => !isOfAnother(result, trial))
  const others = results.length - ours.length
  const rows = ours.flatMap((result) => rowsOf(result, trial))
  if (rows.length > 0 || (others > 0 && policies.length === 0)) return { rows, others }
  const error =
    'the test expects nothing of any image policy, so that it would pass whatever they do'
  return { rows, others, error }
}

/** Loads what is an image policy; a fault in any of them fails the test. */
async function policiesOf(inputs: Inputs, load: LoadOptions): Promise<readonly CompiledPolicy[]> {
  const { policies, faults } = await loadPolicies(inputs.policies, {
    ...load,
    ignoreOtherKinds: true,
    jsonMode: true,
    // What the Kyverno command line does with a namespaced policy of no namespace.
    defaultNamespace: load.defaultNamespace ?? 'default',
  })
  if (faults.length === 0) return policies
  const message = `${countedFaults(faults)} in its policies`
  throw new AdmissionError('POLICY_INVALID', message, { faults: faults.map(toFault) })
}

/** Every resource under the policies about requests, and the payload under those about JSON (image-validating-policy.md 3.16). */
async function judgeAll(
  policies: readonly CompiledPolicy[],
  { resources, payload, userInfo }: Inputs,
  json: ReadonlySet<string>,
  engineOf: (policies: readonly CompiledPolicy[]) => TestEngine,
  how: { pin: boolean },
): Promise<Judged[]> {
  const isJson = (policy: CompiledPolicy) => json.has(policyKey(policy))
  const engine = engineOf(policies.filter((policy) => !isJson(policy)))
  const judged: Judged[] = []
  for (const object of resources) {
    const request = creationOf(object, userInfo)
    judged.push({ object, verdicts: await engine.evaluate(request, how) })
  }
  if (payload !== undefined) {
    const { name, value: object } = payload
    const payloads = engineOf(policies.filter(isJson).map(aboutEverything))
    const verdicts = await payloads.evaluate(payloadOf(object), { pin: false })
    judged.push({ object, name, verdicts })
  }
  return judged
}

/** A policy about JSON is about every payload: its rules, if it has any, are about requests. */
function aboutEverything(policy: CompiledPolicy): CompiledPolicy {
  const all = { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }
  return { ...policy, matchConstraints: { resourceRules: [all], excludeResourceRules: [] } }
}

/** What the documents say that compiled policies do not. */
function namesIn({ policies }: Inputs) {
  const json = new Set<string>()
  const unscored = new Set<string>()
  const others = new Set<string>()
  for (const { text } of policies) {
    for (const document of readDocuments(text).documents) {
      for (const { value } of objectsOf(document, new Faults())) {
        const key = keyOf(value)
        if (key === undefined) continue
        if (!isOurs(value)) others.add(key)
        else if (isJsonMode(value)) json.add(key)
        if (isOurs(value) && !isScored(value)) unscored.add(key)
      }
    }
  }
  return { json, unscored, others }
}

function isOurs(value: Record<string, unknown>): boolean {
  const kind = own(value, 'kind')
  const isGroup = String(own(value, 'apiVersion')).startsWith(`${POLICY_GROUP}/`)
  return isGroup && typeof kind === 'string' && isPolicyKind(kind)
}

function isScored(value: Record<string, unknown>): boolean {
  const metadata = own(value, 'metadata')
  const annotations = isRecord(metadata) ? own(metadata, 'annotations') : undefined
  return !isRecord(annotations) || own(annotations, 'policies.kyverno.io/scored') !== 'false'
}

function keyOf(value: Record<string, unknown>): string | undefined {
  const metadata = own(value, 'metadata')
  const name = isRecord(metadata) ? own(metadata, 'name') : undefined
  if (!isRecord(metadata) || typeof name !== 'string') return undefined
  if (own(value, 'kind') !== 'NamespacedImageValidatingPolicy') return name
  const namespace = own(metadata, 'namespace')
  return `${typeof namespace === 'string' ? namespace : 'default'}/${name}`
}
