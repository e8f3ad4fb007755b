import { sha256, toHex, utf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { canonicalJson, type JsonValue } from '../json.ts'
import { resolveKeyReference } from '../signature/kms-reference.ts'
import { createNotaryAttestor } from '../signature/notary/attestor.ts'
import type { RevocationMode } from '../signature/revocation/types.ts'
import type { Attestor } from '../signature/types.ts'
import type { AttestorFields } from './attestors.ts'
import { cosignAttestor, FieldFault } from './cosign.ts'
import { checkSecrets } from './credentials.ts'
import type { LoadOptions } from './options.ts'
import type { PolicySpec } from './schema.ts'
import type { Faults, Path } from './shape.ts'

/** Part of every policy hash: raised when the same document may mean something else than before. */
const POLICY_HASH_VERSION = 1

/** What annotations of a policy say for all of its attestors. */
export interface AnnotatedFields {
  predicateTypes: readonly string[]
  revocation: RevocationMode
}

/** The attestors of a policy. Their keys are checked now, so that a bad one shows before the first image asks for it. */
export async function attestorsOf(
  spec: PolicySpec,
  path: Path,
  shared: AnnotatedFields,
  options: LoadOptions,
  faults: Faults,
): Promise<Attestor[]> {
  const attestors: Attestor[] = []
  for (const [index, fields] of spec.attestors.entries()) {
    checkPullSecrets(fields, [...path, 'attestors', index], options, faults)
    try {
      attestors.push(await attestorOf(fields, shared, options))
    } catch (error) {
      if (!(error instanceof AdmissionError)) throw error
      const code = error.code === 'POLICY_UNSUPPORTED' ? error.code : 'POLICY_INVALID'
      const at = [...path, 'attestors', index, ...materialOf(fields, error)]
      faults.add(at, error.message, code)
    }
  }
  return attestors
}

/** SHA-256 hex of everything a verdict depends on: another region may hold another key under the same alias. */
export async function policyHash(
  spec: PolicySpec,
  attestors: readonly Attestor[],
  options: LoadOptions,
): Promise<string> {
  const keys = attestors.map((attestor) => {
    const kms =
      attestor.kind === 'cosign-key' && 'kms' in attestor.key ? attestor.key.kms : undefined
    const resolved = kms === undefined ? null : { ...resolveKey(kms, options) }
    return { name: attestor.name, hash: attestor.hash, resolved }
  })
  // A spec with its defaults is JSON: it was read from JSON values.
  const content = { version: POLICY_HASH_VERSION, spec: spec as unknown as JsonValue, keys }
  return toHex(await sha256(utf8(canonicalJson(content))))
}

function checkPullSecrets(
  fields: AttestorFields,
  path: Path,
  { registries }: LoadOptions,
  faults: Faults,
): void {
  const secrets = 'cosign' in fields ? (fields.cosign.source?.PullSecrets ?? []) : []
  if (registries === undefined) return
  const names = secrets.map(({ name }) => name)
  checkSecrets(names, [...path, 'cosign', 'source', 'PullSecrets'], registries, faults)
}

async function attestorOf(
  fields: AttestorFields,
  { predicateTypes, revocation }: AnnotatedFields,
  options: LoadOptions,
): Promise<Attestor> {
  if ('notary' in fields) {
    return createNotaryAttestor({ name: fields.name, ...fields.notary, revocation })
  }
  const kms = fields.cosign.key?.kms
  if (kms !== undefined) resolveKey(kms, options)
  return cosignAttestor(fields, predicateTypes, options)
}

function resolveKey(reference: string, { kmsRegion, kmsEndpoints, kmsVault }: LoadOptions) {
  return resolveKeyReference(reference, {
    ...(kmsRegion === undefined ? {} : { region: kmsRegion }),
    ...(kmsEndpoints === undefined ? {} : { endpoints: kmsEndpoints }),
    ...(kmsVault === undefined ? {} : { vault: kmsVault }),
  })
}

/** Where what is wrong with an attestor's material stands in it. */
function materialOf(fields: AttestorFields, error: AdmissionError): Path {
  if (error instanceof FieldFault) return error.path
  return 'notary' in fields ? ['notary'] : ['cosign', 'key', 'kms']
}
