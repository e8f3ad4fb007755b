import { expect } from 'vitest'
import { type LoadOptions, loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy, PolicyFault } from '#shared/policy/types.ts'

/** A PEM public key (P-256) that nobody signs with. */
export const PEM = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf/1/Oj3Y4yXhHmgKFL31qx94T8EC
wXE2dmhOgRncIXTGLuQeK0vEvn3tV+zuYSXuT/Ax2WMxdbjZrWV4ivqvpg==
-----END PUBLIC KEY-----
`

/** An attestor as a document has it. */
export function keyAttestor(name: string, key: object = { data: PEM }) {
  return { name, cosign: { key, ctlog: { insecureIgnoreTlog: true } } }
}

export const POD_RULE = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE', 'UPDATE'],
  resources: ['pods', 'pods/ephemeralcontainers'],
}

/** A document that loads without a fault or a note, its spec changed as a test needs it; undefined takes a field away. */
export function policyDocument(spec: object = {}, name = 'must-sign') {
  return {
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'ImageValidatingPolicy',
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [POD_RULE] },
      attestors: [keyAttestor('release')],
      validations: [{ expression: 'true' }],
      ...spec,
    },
  }
}

/** Loads documents as one JSON file each. */
export function load(documents: readonly object[], options?: LoadOptions) {
  const files = documents.map((document, index) => ({
    name: `${index}.json`,
    text: JSON.stringify(document),
  }))
  return loadPolicies(files, options)
}

/** The compiled policy of a document that must load without a fault. */
export async function compiledPolicy(spec: object = {}, name?: string): Promise<CompiledPolicy> {
  const { policies, faults } = await load([policyDocument(spec, name)], { kmsRegion: 'eu-west-1' })
  expect(faults).toEqual([])
  return policies[0]!
}

/** Faults without their places. */
export function said(faults: readonly PolicyFault[]) {
  return faults.map(({ code, path, message }) => ({ code, path, message }))
}

/** Faults on one line each: `file:line:column CODE path: message`. */
export function listed(faults: readonly PolicyFault[]): string[] {
  return faults.map(
    ({ file, line, column, code, path, message }) =>
      `${file}:${line}:${column} ${code} ${path}: ${message}`,
  )
}
