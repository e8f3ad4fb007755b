import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { type Document, isNode, LineCounter, parseDocument } from 'yaml'
import { AdmissionError, type ErrorCode, type Fault } from '#shared/errors.ts'
import { MAX_POLICY_BYTES, MAX_YAML_ALIASES } from '#shared/limits.ts'
import { type LoadOptions, loadPolicies } from '#shared/policy/load.ts'
import type { LoadedPolicies, PolicyFault } from '#shared/policy/types.ts'
import { withAuthorities } from './cluster/authorities.ts'
import { type Config, parseConfig } from './config.ts'
import { configNotes } from './config-notes.ts'
import { fileReason } from './file-reason.ts'
import { withBundleKey } from './policy-bundle/key-file.ts'
import { type PolicySettings, policyOptionsOf, settingsBesideFaults } from './policy-settings.ts'
import { loadTrust, type TrustStore } from './trust/store.ts'
import { yamlFaults } from './yaml-fault.ts'

/** Where the config is when `--config` is not given: in a checkout, or where `countersign init` writes it. */
export function defaultConfig(exists: (file: string) => boolean): string {
  const usual = 'infra/countersign.yaml'
  const own = 'countersign.yaml'
  return exists(own) && !exists(usual) ? own : usual
}

/** The one of the folder this program was started in. */
export const DEFAULT_CONFIG = defaultConfig(existsSync)

/** A file as it was read; `file` is the path as the operator knows it. */
export interface TextFile {
  file: string
  text: string
}

/** A YAML file whose nodes can be found again by path. */
export interface YamlFile extends TextFile {
  document: Document
  /** `file:line:column` of the node at a path such as `clusters[0].name`, or of the closest one above it. */
  locate: (path: string) => string
}

const POLICY_FILE = /\.(ya?ml|json)$/

/** Text of one file. Throws with the given code when it cannot be read, is too large, or is not UTF-8. */
export async function readText(
  file: string,
  code: ErrorCode,
  maxBytes: number = MAX_POLICY_BYTES,
): Promise<TextFile> {
  try {
    const { size } = await stat(file)
    if (size > maxBytes) {
      throw new AdmissionError(code, `${file} has ${size} bytes; at most ${maxBytes} are read`)
    }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file))
    return { file, text }
  } catch (thrown) {
    if (thrown instanceof AdmissionError) throw thrown
    throw new AdmissionError(code, `cannot read ${file}: ${fileReason(thrown)}`, { cause: thrown })
  }
}

/** Text of one file, or undefined where there is none. Throws `CONFIG_INVALID` when it cannot be read. */
export async function readTextIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (thrown) {
    const { code } = thrown as { code?: string }
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    const message = `cannot read ${file}: ${fileReason(thrown)}`
    throw new AdmissionError('CONFIG_INVALID', message, { cause: thrown })
  }
}

/** Every policy document file (`.yaml`, `.yml`, `.json`) of a folder and its subfolders, by name; or the one file that was named. */
export async function readPolicyFiles(where: string): Promise<TextFile[]> {
  try {
    if ((await stat(where)).isFile()) return [await readText(where, 'POLICY_INVALID')]
    const names = await readdir(where, { recursive: true })
    const files = names.filter((name) => POLICY_FILE.test(name)).sort()
    return await readAll(where, files)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) throw thrown
    throw new AdmissionError('POLICY_INVALID', `cannot read ${where}: ${fileReason(thrown)}`, {
      cause: thrown,
    })
  }
}

/** The texts of files of a folder. Throws `POLICY_INVALID` with every one that cannot be read. */
async function readAll(folder: string, names: readonly string[]): Promise<TextFile[]> {
  const faults: Fault[] = []
  const files: TextFile[] = []
  for (const name of names) {
    const file = path.join(folder, name)
    try {
      const found = await stat(file)
      // Whoever reads a pipe waits for somebody to write into it.
      if (!found.isFile() && !found.isDirectory()) throw new Error('is no file')
      files.push(await readText(file, 'POLICY_INVALID'))
    } catch (thrown) {
      // One of ours says what its cause is, and where, once more.
      const cause = thrown instanceof AdmissionError ? (thrown.cause ?? thrown) : thrown
      faults.push({ path: file, message: fileReason(cause) })
    }
  }
  if (faults.length === 0) return files
  throw new AdmissionError('POLICY_INVALID', `${folder}: ${countedFaults(faults)}`, { faults })
}

/**
 * The policies of a folder (or one file), checked with what the config says about KMS, and what their author should
 * know. Throws `POLICY_INVALID` with `file:line:column` and path of every fault when any document has one: a folder
 * loads whole or not at all.
 */
export async function loadPolicyFolder(
  where: string,
  options: LoadOptions = {},
): Promise<LoadedPolicies> {
  const files = await readPolicyFiles(where)
  const named = files.map(({ file, text }) => ({ name: file, text }))
  const loaded = await loadPolicies(named, options)
  if (loaded.faults.length === 0) return loaded
  const faults = loaded.faults.map(toFault)
  throw new AdmissionError('POLICY_INVALID', `${where}: ${countedFaults(faults)}`, { faults })
}

/** How many there are: `1 fault`, `2 faults`. */
export function countedFaults({ length }: readonly unknown[]): string {
  return length === 1 ? '1 fault' : `${length} faults`
}

/** A fault of a policy with its place in one string. */
export function toFault({ file, line, column, path: where, message }: PolicyFault): Fault {
  const place = line > 0 ? `${file}:${line}:${column}` : file
  return { path: place, message: where === '' ? message : `${where}: ${message}` }
}

/** A config file with what stands in the files it names. */
export interface ConfigFiles {
  config: Config
  /** For the paths inside it. */
  folder: string
  trust: TrustStore
  /** What the config says about keys and trusted roots in policies. */
  policyOptions: LoadOptions
}

/** A config file, checked, with its trusted roots. Throws `CONFIG_INVALID` with `file:line:column` of every fault. */
export async function readConfig(file: string, now: number = Date.now()): Promise<ConfigFiles> {
  const yaml = await readYaml(file)
  const checked = checkConfig(yaml)
  const folder = path.dirname(file)
  try {
    const read = async (name: string) => (await readText(name, 'CONFIG_INVALID')).text
    const [{ clusters }, { policyBundle }, trust] = await allOf([
      withAuthorities(checked, folder, read),
      withBundleKey(checked, folder, read),
      loadTrust(checked.trust ?? [], folder, now),
    ])
    const config = { ...checked, clusters, ...(policyBundle !== undefined && { policyBundle }) }
    const policyOptions = policyOptionsOf(config, trust, now)
    const notes = () =>
      [...trust.notes(), ...configNotes(config, now)].map((note) => locatedFault(yaml, note))
    return { config, folder, trust: { ...trust, notes }, policyOptions }
  } catch (thrown) {
    throw located(yaml, thrown)
  }
}

/**
 * What a config file that `readConfig` refuses still says about policies; undefined where it is wrong about what they need, or no YAML.
 */
export async function readPolicySettings(
  file: string,
  now: number = Date.now(),
): Promise<PolicySettings | undefined> {
  try {
    const { document } = await readYaml(file)
    return await settingsBesideFaults(document.toJS(), path.dirname(file), now)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return undefined
    throw thrown
  }
}

/** What all of these come to. Throws one error with the faults of every one that has some. */
async function allOf<T extends readonly unknown[]>(
  work: readonly [...{ [K in keyof T]: Promise<T[K]> }],
): Promise<T> {
  const settled = await Promise.allSettled(work)
  const thrown = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  // Each is what its place in `work` promised.
  if (thrown.length === 0) return (await Promise.all(work)) as unknown as T
  const faults = thrown.flatMap((each) => {
    if (!(each instanceof AdmissionError) || each.faults.length === 0) throw each
    return each.faults
  })
  const lines = faults.map(({ path: where, message }) => `${where}: ${message}`)
  throw new AdmissionError('CONFIG_INVALID', lines.join('\n'), { faults, cause: thrown[0] })
}

/** The Config of a YAML file as its document stands now. Throws `CONFIG_INVALID` with the place of every fault. */
export function checkConfig(yaml: YamlFile): Config {
  try {
    return parseConfig(yaml.document.toJS())
  } catch (thrown) {
    throw located(yaml, thrown)
  }
}

/** The same error with the places of its faults in the file, if it is about them; their paths are paths inside it. */
export function located(yaml: YamlFile, thrown: unknown): unknown {
  if (!(thrown instanceof AdmissionError) || thrown.faults.length === 0) return thrown
  const faults = thrown.faults.map((fault) => locatedFault(yaml, fault))
  return configError(yaml.file, faults, thrown)
}

/** A YAML file parsed with comments and positions kept. Throws `CONFIG_INVALID` with the place of every syntax error. */
export async function readYaml(file: string): Promise<YamlFile> {
  const { text } = await readText(file, 'CONFIG_INVALID').catch((thrown: unknown) => {
    throw file === DEFAULT_CONFIG ? withHint(thrown) : thrown
  })
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { lineCounter, prettyErrors: false })
  const at = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset)
    return `${file}:${line}:${col}`
  }
  const faults = yamlFaults(document).map(({ offset, message }) => ({ path: at(offset), message }))
  if (faults.length > 0) throw configError(file, faults)
  try {
    document.toJS({ maxAliasCount: MAX_YAML_ALIASES })
  } catch (thrown) {
    throw new AdmissionError('CONFIG_INVALID', `${file}: ${fileReason(thrown)}`, { cause: thrown })
  }
  return { file, text, document, locate: (where) => at(offsetOf(document, where)) }
}

/** Whoever named no config, and has none, learns how to. */
function withHint(thrown: unknown): unknown {
  if (!(thrown instanceof AdmissionError)) return thrown
  const { code, message, cause } = thrown
  if ((cause as { code?: unknown } | undefined)?.code !== 'ENOENT') return thrown
  const hint = 'name the config with --config, or `countersign init` makes one'
  return new AdmissionError(code, `${message}; ${hint}`, { cause })
}

function configError(file: string, faults: readonly Fault[], cause?: unknown): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', `${file}: ${countedFaults(faults)}`, {
    faults,
    cause,
  })
}

function locatedFault(yaml: YamlFile, { path: where, message }: Fault): Fault {
  return { path: yaml.locate(where), message: `${where}: ${message}` }
}

/** Offset of the node at a path, or of the closest ancestor that exists. */
function offsetOf(document: Document, where: string): number {
  const steps = [...where.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g)].map(
    ([, index, quoted, name]) => (index === undefined ? (quoted ?? name) : Number(index)),
  )
  for (let length = steps.length; length > 0; length--) {
    const node = document.getIn(steps.slice(0, length), true)
    if (isNode(node) && node.range) return node.range[0]
  }
  return document.contents?.range?.[0] ?? 0
}
