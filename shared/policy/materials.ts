import { sha256, toHex, utf8 } from '../bytes.ts'
import type { CheckedExpression } from '../cel/types.ts'
import { AdmissionError } from '../errors.ts'
import { canonicalJson, type JsonValue } from '../json.ts'
import { withHash } from '../signature/attestor.ts'
import { resolveKeyReference } from '../signature/kms-reference.ts'
import { createNotaryAttestor, demandCertificates } from '../signature/notary/attestor.ts'
import type { RevocationMode } from '../signature/revocation/types.ts'
import type { AttestorDraft } from '../signature/types.ts'
import { attestorSources } from './attestor-expressions.ts'
import type { AttestorFields, NotaryFields } from './attestors.ts'
import { type CosignDraft, checkedCosign, cosignDraft, FieldFault } from './cosign.ts'
import { checkSecrets } from './credentials.ts'
import type { LoadOptions } from './options.ts'
import type { PolicySpec } from './schema.ts'
import { type Faults, formatPath, type Path } from './shape.ts'
import { type AttestorExpression, draftOf, type PolicyAttestor } from './types.ts'

/** Part of every policy hash: raised when the same document may mean something else than before. */
const POLICY_HASH_VERSION = 1

/** What is said elsewhere in a policy about its attestors. */
export interface AttestorContext {
  /** By its annotations. */
  predicateTypes: readonly string[]
  revocation: RevocationMode
  /** Checked expressions by path. */
  compiled: ReadonlyMap<string, CheckedExpression>
}

/**
 * The attestors of a policy. Their keys are checked now, so that a bad one shows before the first image asks for it; what expressions
 * give is checked when a request gives it.
 */
export async function attestorsOf(
  spec: PolicySpec,
  path: Path,
  context: AttestorContext,
  options: LoadOptions,
  faults: Faults,
): Promise<PolicyAttestor[]> {
  const attestors: PolicyAttestor[] = []
  for (const [index, fields] of spec.attestors.entries()) {
    const where = [...path, 'attestors', index]
    checkPullSecrets(fields, where, options, faults)
    try {
      attestors.push(await attestorOf(fields, where, context, options))
    } catch (error) {
      if (!(error instanceof AdmissionError)) throw error
      const code = error.code === 'POLICY_UNSUPPORTED' ? error.code : 'POLICY_INVALID'
      faults.add([...where, ...materialOf(fields, error)], error.message, code)
    }
  }
  return attestors
}

/** SHA-256 hex of everything a verdict depends on: another region may hold another key under the same alias. */
export async function policyHash(
  spec: PolicySpec,
  attestors: readonly PolicyAttestor[],
  options: LoadOptions,
): Promise<string> {
  const keys = attestors.map((attestor) => {
    const draft = draftOf(attestor)
    const kms = draft.kind === 'cosign-key' && 'kms' in draft.key ? draft.key.kms : undefined
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
  path: Path,
  { predicateTypes, revocation, compiled }: AttestorContext,
  options: LoadOptions,
): Promise<PolicyAttestor> {
  const kms = 'cosign' in fields ? fields.cosign.key?.kms : undefined
  if (kms !== undefined) resolveKey(kms, options)
  const draft =
    'notary' in fields
      ? notaryDraft(fields, revocation)
      : await cosignDraft(fields, predicateTypes, options)
  const sources = attestorSources(fields)
  if (sources.length === 0) {
    return draft.kind === 'notary' ? createNotaryAttestor(draft) : checkedCosign(draft)
  }
  const gaps = sources.map(({ at }) => formatPath(at))
  await (draft.kind === 'notary' ? checkNotary(draft) : checkCosign(draft, gaps))
  const expressions = sources.flatMap(({ path: below, gives, at }): AttestorExpression[] => {
    const expression = compiled.get(formatPath([...path, ...below]))
    // Without one there is a fault already.
    return expression === undefined ? [] : [{ gives, at, expression }]
  })
  const { hash } = await withHash({
    name: draft.name,
    draft,
    sources: sources.map(({ at, source }) => [formatPath(at), source]),
  })
  return { kind: 'unresolved', name: draft.name, draft, expressions, hash }
}

type NotaryDraft = Extract<AttestorDraft, { kind: 'notary' }>

function notaryDraft({ name, notary }: NotaryFields, revocation: RevocationMode): NotaryDraft {
  const { certs, tsaCerts } = notary
  return {
    kind: 'notary',
    name,
    certs: certs.value ?? '',
    ...(tsaCerts?.value === undefined ? {} : { tsaCerts: tsaCerts.value }),
    ...(revocation === 'skip' ? {} : { revocation }),
  }
}

function checkNotary({ certs, tsaCerts }: NotaryDraft): void {
  if (certs !== '') demandCertificates(certs, 'certs')
  if (tsaCerts !== undefined) demandCertificates(tsaCerts, 'tsaCerts')
}

/** Checks what is there, with stand-ins for what is not. */
async function checkCosign(draft: CosignDraft, gaps: readonly string[]): Promise<void> {
  const isRootAwaited = gaps.includes('trust.root')
  // What stands beside the root was checked without it.
  const trust = isRootAwaited ? { ...draft.trust, ignoreTlog: true, ignoreSct: true } : draft.trust
  switch (draft.kind) {
    case 'cosign-key':
      if (!gaps.includes('key.data')) await checkedCosign(draft)
      return
    case 'cosign-keyless': {
      const identities = draft.identities.map((identity, index) =>
        gaps.includes(`identities[${index}].subject`) ? { ...identity, subject: 'any' } : identity,
      )
      await checkedCosign({ ...draft, identities, trust: trust ?? {} })
      return
    }
    case 'cosign-certificate':
      if ((draft.certificate ?? draft.chain) === undefined) return
      await checkedCosign({ ...draft, ...(trust === undefined ? {} : { trust }) })
  }
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
