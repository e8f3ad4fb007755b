import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { JsonObject } from '#shared/admission/types.ts'
import { getOwn, isJsonObject, type JsonValue, stringifyJson } from '#shared/json.ts'
import { autogenStatus } from '#shared/policy/autogen-status.ts'
import { parseYaml } from '#shared/yaml.ts'
import { type SuiteResult, Tally } from '#test/conformance/cel.ts'
import { KYVERNO_DEVIATIONS } from '#test/conformance/kyverno-deviations.ts'
import { createMaterial, type Material, NOW } from '#test/conformance/kyverno-material.ts'
import { difference } from '#test/conformance/kyverno-subset.ts'
import { type Cluster, createCluster, inNamespace } from '#test/fakes/cluster.ts'

/** The namespace chainsaw would run a test in. */
const NAMESPACE = 'chainsaw'
const POLICIES = 'policies.kyverno.io/'

/** Kyverno's own cluster tests of image policies, replayed through both functions and the chain of an API server. */
export async function runKyvernoChainsaw(casesDir: string): Promise<SuiteResult> {
  const dir = path.join(casesDir, 'kyverno', 'chainsaw')
  const tally = new Tally(KYVERNO_DEVIATIONS)
  const material = await createMaterial()
  try {
    for (const folder of foldersWith(dir, 'chainsaw-test.yaml')) {
      const replay = new Replay(path.join(dir, folder), folder, material, tally)
      await replay.run()
    }
  } finally {
    await material.close()
  }
  return tally.result()
}

/** Folders below a folder that hold this file, by name. */
export function foldersWith(dir: string, file: string): string[] {
  return readdirSync(dir, { recursive: true })
    .map(String)
    .filter((name) => path.basename(name) === file)
    .map((name) => path.dirname(name))
    .sort()
}

/** One test folder. */
class Replay {
  readonly #dir: string
  readonly #name: string
  readonly #material: Material
  readonly #tally: Tally
  readonly #files: { name: string; text: string }[] = []
  #existing: JsonObject[] = []
  /** Undefined until something is created under the policies there are. */
  #cluster: Cluster | undefined
  #refused = false

  constructor(dir: string, name: string, material: Material, tally: Tally) {
    this.#dir = dir
    this.#name = name
    this.#material = material
    this.#tally = tally
  }

  async run(): Promise<void> {
    // What webhook configurations should look like is not what this replays.
    if (this.#name.includes('webhook-configuration')) {
      this.#tally.skipped++
      return
    }
    const [document] = this.#documents('chainsaw-test.yaml')
    try {
      for (const step of listAt(document, 'spec', 'steps')) await this.#step(step)
    } finally {
      await this.#cluster?.close()
    }
  }

  async #step(step: JsonValue): Promise<void> {
    const id = `${this.#name}: ${textAt(step, 'name') ?? 'step'}`
    const template = textAt(step, 'use', 'template')
    if (template?.endsWith('create-policy.yaml')) {
      const [binding] = listAt(step, 'use', 'with', 'bindings')
      for (const object of this.#documents(textAt(binding, 'value') ?? '')) {
        await this.#apply(id, object, [])
      }
    }
    for (const action of listAt(step, 'try')) {
      const made = at(action, 'create') ?? at(action, 'apply')
      if (made !== undefined) {
        for (const object of this.#objects(made)) {
          await this.#apply(id, object, listAt(made, 'expect'))
        }
      }
      const asserted = at(action, 'assert')
      if (asserted !== undefined) {
        for (const object of this.#objects(asserted)) this.#assert(id, object)
      }
      if (at(action, 'delete') !== undefined) this.#delete(at(action, 'delete', 'ref'))
      const said = textAt(action, 'script', 'check', '(trim_space($stderr))')
      if (said !== undefined) await this.#refuse(id, said)
    }
  }

  /** A policy is loaded; anything else is created, through the functions once there is a policy. */
  async #apply(id: string, object: JsonObject, expect: readonly JsonValue[]): Promise<void> {
    const apiVersion = textAt(object, 'apiVersion') ?? ''
    const name = `${id}: ${textAt(object, 'metadata', 'name')}`
    if (apiVersion.startsWith(POLICIES)) {
      this.#files.push({ name: `${this.#files.length}.yaml`, text: stringifyJson(object) })
      await this.#restart(name)
      return
    }
    if (apiVersion.startsWith('kyverno.io/') || this.#refused) {
      this.#tally.skipped++
      return
    }
    if (this.#cluster === undefined) {
      this.#existing.push(inNamespace(object, NAMESPACE))
      return
    }
    const error = expect.map((each) => at(each, 'check')).find((check) => check !== undefined)
    const wanted = textAt(error, '($error)')
    const [, validating] = /^admission webhook "([^"]+)"/.exec(wanted ?? '') ?? []
    const { allowed, message } = await this.#cluster.create(
      { operation: 'CREATE', object },
      // How webhooks are called is for their configuration: here the denial's own name is used.
      validating === undefined ? {} : { validating },
    )
    const expected = wanted ?? (error === undefined ? 'admitted' : 'denied')
    const got = allowed ? 'admitted' : expected === 'denied' ? 'denied' : message
    this.#tally.record(name, expected, got)
  }

  async #restart(id: string): Promise<void> {
    const stored = this.#cluster?.stored ?? this.#existing
    await this.#cluster?.close()
    this.#cluster = undefined
    // An exception alone has nothing to exempt from yet.
    const made = await createCluster({
      files: this.#files,
      namespace: NAMESPACE,
      existing: stored,
      fetch: this.#material.registries.fetch,
      trustedRoot: this.#material.trustedRoot,
      now: () => NOW,
    })
    this.#existing = [...stored]
    this.#refused = made.faults.length > 0
    if ('cluster' in made) this.#cluster = made.cluster
    this.#tally.record(
      id,
      'accepted',
      made.faults.map(({ path: where, message }) => `${where}: ${message}`).join('; ') ||
        'accepted',
    )
  }

  #assert(id: string, expected: JsonObject): void {
    const kind = textAt(expected, 'kind')
    const name = `${id}: assert ${kind} ${textAt(expected, 'metadata', 'name') ?? textAt(expected, 'scope', 'name')}`
    if (at(expected, 'status', 'autogen') !== undefined) {
      const policy = this.#files
        .map(({ text }) => parseYaml(text)[0])
        .find((each) => textAt(each, 'metadata', 'name') === textAt(expected, 'metadata', 'name'))
      const got = { autogen: JSON.parse(JSON.stringify(autogenStatus(policy))) }
      this.#compare(name, at(expected, 'status') ?? null, [got])
    } else if (kind === 'PolicyReport' && !this.#isBackground()) {
      // Reports are ours, and so is the label that says whose they are.
      const { metadata, ...report } = expected
      const owners = at(metadata, 'ownerReferences')
      const wanted = {
        ...report,
        ...(owners !== undefined && { metadata: { ownerReferences: owners } }),
      }
      this.#compare(name, wanted, this.#cluster?.reports() ?? [])
    } else if (
      NOT_HERE.includes(kind ?? '') ||
      at(expected, 'status') !== undefined ||
      this.#refused
    ) {
      this.#tally.skipped++
    } else if ((textAt(expected, 'apiVersion') ?? '').startsWith(POLICIES)) {
      const policies = this.#files.flatMap(({ text }) => parseYaml(text))
      this.#compare(name, expected, policies)
    } else {
      this.#compare(name, inNamespace(expected, NAMESPACE), this.#cluster?.stored ?? [])
    }
  }

  #compare(id: string, expected: JsonValue, among: readonly JsonValue[]): void {
    const differences = among.map((each) => difference(expected, each))
    const isThere = differences.includes(undefined)
    this.#tally.record(
      id,
      'as expected',
      isThere ? 'as expected' : (differences.at(-1) ?? 'nothing of the kind'),
    )
  }

  #delete(ref: JsonValue | undefined): void {
    const stored = this.#cluster?.stored as JsonObject[] | undefined
    const index =
      stored?.findIndex(
        (object) =>
          textAt(object, 'kind') === textAt(ref, 'kind') &&
          textAt(object, 'metadata', 'name') === textAt(ref, 'name'),
      ) ?? -1
    if (index >= 0) stored?.splice(index, 1)
  }

  /** `kubectl apply -f policy.yaml` with what it prints. */
  async #refuse(id: string, said: string): Promise<void> {
    const [object] = this.#documents('policy.yaml')
    const file = { name: 'policy.yaml', text: stringifyJson(object ?? {}) }
    const { faults } = await createCluster({
      files: [file],
      namespace: NAMESPACE,
      fetch: this.#material.registries.fetch,
      now: () => NOW,
      trustedRoot: this.#material.trustedRoot,
    })
    const told = faults.map(({ path: where, message }) => `${where}: ${message}`).join(', ')
    const got = `The ${textAt(object, 'kind')} "${textAt(object, 'metadata', 'name')}" is invalid: ${told}`
    this.#tally.record(id, said.trim(), got)
  }

  /** True for a policy that only background scans are about. */
  #isBackground(): boolean {
    return this.#files.some(
      ({ text }) => at(parseYaml(text)[0], 'spec', 'evaluation', 'admission', 'enabled') === false,
    )
  }

  #objects(action: JsonValue): JsonObject[] {
    const file = textAt(action, 'file')
    if (file !== undefined) return this.#documents(file)
    const resource = at(action, 'resource')
    return isJsonObject(resource) ? [resource] : []
  }

  #documents(file: string): JsonObject[] {
    const where = path.join(this.#dir, file)
    if (!existsSync(where)) throw new TypeError(`${where} is not there`)
    return parseYaml(this.#material.substitute(readFileSync(where, 'utf8'))).filter(isJsonObject)
  }
}

/** Kinds that nothing here makes: events of a cluster, and what Kyverno watches on its own. */
const NOT_HERE: readonly string[] = ['Event', 'GlobalContextEntry', 'PolicyReport']

function at(value: JsonValue | undefined, ...steps: string[]): JsonValue | undefined {
  return steps.reduce<JsonValue | undefined>(
    (found, step) => (isJsonObject(found) ? getOwn(found, step) : undefined),
    value,
  )
}

function listAt(value: JsonValue | undefined, ...steps: string[]): readonly JsonValue[] {
  const found = at(value, ...steps)
  return Array.isArray(found) ? found : []
}

function textAt(value: JsonValue | undefined, ...steps: string[]): string | undefined {
  const found = at(value, ...steps)
  return typeof found === 'string' ? found : undefined
}
