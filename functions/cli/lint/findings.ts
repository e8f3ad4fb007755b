import { existsSync } from 'node:fs'
import path from 'node:path'
import { createDeployment } from '#functions/create-deployment.ts'
import {
  type ConfigFiles,
  DEFAULT_CONFIG,
  readConfig,
  readPolicyFiles,
  readPolicySettings,
  readYaml,
  type TextFile,
} from '#functions/files.ts'
import type { PolicySettings } from '#functions/policy-settings.ts'
import { loadTrust } from '#functions/trust/store.ts'
import { AdmissionError, type Fault } from '#shared/errors.ts'
import { type LoadOptions, loadPolicies } from '#shared/policy/load.ts'
import {
  compareTexts,
  type LoadedPolicies,
  type PolicyFault,
  policyKey,
} from '#shared/policy/types.ts'
import { upstreamNotes } from './upstream.ts'

/** Something that is wrong, or that somebody should know. */
export interface Finding extends Omit<PolicyFault, 'code'> {
  severity: 'error' | 'warning'
  code: PolicyFault['code'] | 'CONFIG_INVALID' | 'CONFIG_NOTE'
}

/** What was looked at and what was found. */
export interface Linted {
  files: readonly TextFile[]
  /** Policies without a fault; variants for controllers are not counted. */
  policies: number
  findings: readonly Finding[]
}

/**
 * Every fault and every note of the config and of the policy documents in these files and folders; of the config's own folder where
 * none is named. Throws `CONFIG_INVALID` or `POLICY_INVALID` for what cannot be read at all.
 */
export async function lintFiles(
  paths: readonly string[],
  configFile: string | undefined,
): Promise<Linted> {
  const named = configFile ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined)
  if (named === undefined && paths.length === 0) {
    const message = `there is no ${DEFAULT_CONFIG}: name files or folders, or --config`
    throw new AdmissionError('CONFIG_INVALID', message)
  }
  const config = named === undefined ? undefined : await lintConfig(named)
  const beside =
    named !== undefined && config?.read === undefined ? await readPolicySettings(named) : undefined
  const folders = paths.length > 0 ? paths : foldersOf(config?.read, beside)
  const { files, unread } = await filesOf(folders, beside !== undefined)
  const options = config?.read?.policyOptions ?? beside?.options ?? (await usualOptions())
  const loaded = await loadPolicies(
    files.map(({ file, text }) => ({ name: file, text })),
    options,
  )
  const findings = [
    ...(config?.findings ?? []),
    ...unread,
    ...loaded.faults.map((fault): Finding => ({ severity: 'error', ...fault })),
    ...[...loaded.warnings, ...upstreamNotes(files)].map(
      (note): Finding => ({ severity: 'warning', ...note }),
    ),
    ...(paths.length > 0 || named === undefined
      ? []
      : await deploymentFindings(named, config?.read, loaded)),
    // Asked for by the policies that have just been loaded.
    ...(config?.read?.trust.notes() ?? []).map((note) => placed(note, 'warning', 'CONFIG_NOTE')),
  ]
  return { files, policies: countPolicies(loaded), findings: inOrder(findings) }
}

/** The texts of the policies. What cannot be read ends everything, unless there are other faults to tell: then it is one of them. */
async function filesOf(
  folders: readonly string[],
  hasOtherFaults: boolean,
): Promise<{ files: readonly TextFile[]; unread: readonly Finding[] }> {
  try {
    return { files: (await Promise.all(folders.map(readPolicyFiles))).flat(), unread: [] }
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError) || !hasOtherFaults) throw thrown
    const { message, faults } = thrown
    const all = faults.length === 0 ? [{ path: folders[0] ?? '', message }] : faults
    return { files: [], unread: all.map((fault) => placed(fault, 'error', 'POLICY_INVALID')) }
  }
}

/** Policies by key, as their variants for controllers have the same one. */
function countPolicies({ policies }: LoadedPolicies): number {
  return new Set(policies.map(policyKey)).size
}

function foldersOf(read: ConfigFiles | undefined, beside: PolicySettings | undefined): string[] {
  if (read !== undefined) return [path.join(read.folder, read.config.policies)]
  return beside === undefined ? [] : [beside.policies]
}

async function usualOptions(): Promise<LoadOptions> {
  return (await loadTrust([], '', Date.now())).options
}

/** A config as it was read, or what is wrong with it. */
async function lintConfig(
  file: string,
): Promise<{ read: ConfigFiles | undefined; findings: Finding[] }> {
  try {
    return { read: await readConfig(file), findings: [] }
  } catch (thrown) {
    // Without a list of faults it could not be read.
    if (!(thrown instanceof AdmissionError) || thrown.faults.length === 0) throw thrown
    const findings = thrown.faults.map((fault) => placed(fault, 'error', 'CONFIG_INVALID'))
    return { read: undefined, findings }
  }
}

/** What shows only where config and policies meet. */
async function deploymentFindings(
  file: string,
  read: ConfigFiles | undefined,
  { policies, faults }: LoadedPolicies,
): Promise<Finding[]> {
  // A policy that is missing because of a fault of its own is told about once.
  if (read === undefined || faults.length > 0) return []
  const yaml = await readYaml(file)
  const error = (where: string, message: string) =>
    placed({ path: yaml.locate(where), message: `${where}: ${message}` }, 'error', 'CONFIG_INVALID')
  if (policies.length === 0) {
    return [error('policies', 'holds no policy; a deployment without any would admit everything')]
  }
  try {
    await createDeployment(read.config, policies)
    return []
  } catch (thrown) {
    if (!(thrown instanceof AdmissionError)) throw thrown
    return thrown.faults.map((fault) => error(fault.path, fault.message))
  }
}

/** A fault whose path is a place: `file:line:column`, and whose message begins with the path inside the file. */
function placed(
  { path: place, message }: Fault,
  severity: Finding['severity'],
  code: Finding['code'],
): Finding {
  const [, file = place, line = '0', column = '0'] = /^(.*):(\d+):(\d+)$/s.exec(place) ?? []
  const [, inside = '', rest = message] = /^([\w.[\]"-]+): (.*)$/s.exec(message) ?? []
  const at = { file, line: Number(line), column: Number(column), path: inside }
  return { severity, code, ...at, message: inside === '' ? message : rest }
}

/** By file, then by place; what is said twice of one place is said once. */
function inOrder(findings: readonly Finding[]): Finding[] {
  const texts = new Map(findings.map((finding) => [JSON.stringify(finding), finding]))
  return [...texts.values()].sort(
    (a, b) => compareTexts(a.file, b.file) || a.line - b.line || a.column - b.column,
  )
}
