import { sha256, toHex, utf8 } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { canonicalJson, type JsonValue } from '../json.ts'
import { resolveKeyReference, type VaultSettings } from '../signature/kms-reference.ts'
import { createNotaryAttestor } from '../signature/notary/attestor.ts'
import type { RevocationMode } from '../signature/revocation/types.ts'
import type { Attestor } from '../signature/types.ts'
import { assemble } from './assemble.ts'
import { addAttestorNotes } from './attestor-notes.ts'
import type { AttestorFields } from './attestors.ts'
import { compileExpressions } from './compile.ts'
import { cosignAttestor, FieldFault } from './cosign.ts'
import { checkCredentials, checkSecrets, type KnownRegistries } from './credentials.ts'
import {
  type FileFault,
  objectsOf,
  placeOf,
  readDocuments,
  type SourceDocument,
  type SourceObject,
} from './documents.ts'
import { addNote, addNotes } from './notes.ts'
import { signaturePredicates } from './predicates.ts'
import { addRevocationNotes, notaryRevocation } from './revocation.ts'
import {
  nameOf,
  POLICY_GROUP,
  POLICY_VERSIONS,
  type PolicyDocument,
  type PolicySpec,
  readPolicy,
} from './schema.ts'
import {
  type DocumentFault,
  Faults,
  formatPath,
  own,
  type Path,
  unsupportedValue,
} from './shape.ts'
import type { CompiledPolicy, LoadedPolicies, PolicyFault } from './types.ts'

/** The text of one file. The name is for messages, as the operator would write it: `policies/signed.yaml`. */
export interface PolicyFile {
  name: string
  text: string
}

/** What the operator's config says about keys and logins in policies. */
export interface LoadOptions {
  /** Region of `awskms://` references that name none. */
  kmsRegion?: string
  /** KMS endpoints that references may name: origins such as `https://kms.internal:4566`. */
  kmsEndpoints?: readonly string[]
  /** Where keys of `hashivault://` references are; without it they are refused. */
  kmsVault?: VaultSettings
  /** What policies may name as their logins. Undefined: nobody checks, and a name that is not there is an error of every call. */
  registries?: KnownRegistries
  /** JSON of the trusted root of a TUF mirror, or of Sigstore's public-good instance for undefined; undefined where there is none. */
  trustedRoot?: (mirror: string | undefined) => string | undefined
  /**
   * SHA-256 hex of the TUF root that the mirror's trusted root descends from; undefined where the operator named none. A policy that
   * names another root must not load.
   */
  tufRootHash?: (mirror: string | undefined) => string | undefined
  /** How notary attestors look up revocation where a policy does not say; `skip` unless given. */
  notaryRevocation?: RevocationMode
}

/** Part of every policy hash: raised when the same document may mean something else than before. */
const POLICY_HASH_VERSION = 1

/**
 * The policies of a set of files, compiled, with every fault and every note of every document and its place. A policy with a
 * fault is not among the policies; whether the others are deployed without it is the caller's decision. What the
 * engine does not support is a fault with code `POLICY_UNSUPPORTED`, never ignored. Never throws for what a file holds.
 */
export async function loadPolicies(
  files: readonly PolicyFile[],
  options: LoadOptions = {},
): Promise<LoadedPolicies> {
  const loading = new Loading(options)
  for (const file of files) await loading.file(file)
  return loading.result()
}

/** What annotations of a policy say for all of its attestors. */
interface AnnotatedFields {
  predicateTypes: readonly string[]
  revocation: RevocationMode
}

class Loading {
  readonly #options: LoadOptions
  readonly #policies: CompiledPolicy[] = []
  readonly #faults: PolicyFault[] = []
  readonly #warnings: PolicyFault[] = []
  /** Where each name was first used. */
  readonly #names = new Map<string, string>()

  constructor(options: LoadOptions) {
    this.#options = options
  }

  result(): LoadedPolicies {
    const byName = (a: CompiledPolicy, b: CompiledPolicy) => (a.name < b.name ? -1 : 1)
    return {
      policies: this.#policies.sort(byName),
      faults: this.#faults,
      warnings: this.#warnings,
    }
  }

  async file({ name, text }: PolicyFile): Promise<void> {
    const { documents, faults } = readDocuments(text)
    for (const fault of faults) this.#faults.push(fileFault(name, fault))
    for (const document of documents) {
      const found = new Faults()
      for (const object of objectsOf(document, found)) await this.#object(name, object)
      this.#report(name, document, found.found)
    }
  }

  async #object(file: string, object: SourceObject): Promise<void> {
    const { document, path, value } = object
    const faults = new Faults()
    const notes = new Faults()
    if (isPolicy(value, path, faults)) {
      const place = `${file}:${document.place(path).line}`
      this.#claimName(value, path, place, faults)
      const policy = await this.#policy(value, path, place, faults, notes)
      if (policy !== undefined && faults.count === 0) this.#policies.push(policy)
    }
    this.#report(file, document, faults.found)
    this.#report(file, document, notes.found, this.#warnings)
  }

  /** Two policies of one name would answer for each other on the webhook's path, so the second one is refused. */
  #claimName(value: unknown, path: Path, place: string, faults: Faults): void {
    const name = nameOf(value)
    if (name === undefined) return
    const first = this.#names.get(name)
    if (first === undefined) this.#names.set(name, place)
    else {
      faults.add(
        [...path, 'metadata', 'name'],
        `Duplicate value: ${JSON.stringify(name)}: ${place} and ${first} define the same policy`,
      )
    }
  }

  async #policy(
    value: Record<string, unknown>,
    path: Path,
    source: string,
    faults: Faults,
    notes: Faults,
  ): Promise<CompiledPolicy | undefined> {
    const document = readPolicy(value, path, faults)
    const specPath = [...path, 'spec']
    const compiled = await compileExpressions(own(value, 'spec'), specPath, faults)
    if (document === undefined) return undefined
    this.#checkCredentials(document.spec, specPath, faults)
    const types = signaturePredicates(value, path, faults)
    const { notaryRevocation: common = 'skip' } = this.#options
    const revocation = notaryRevocation(value, path, faults) ?? common
    const shared = { predicateTypes: types, revocation }
    const attestors = await this.#attestors(document.spec, specPath, shared, faults)
    if (faults.count > 0) return undefined
    if (document.spec.evaluation?.admission?.enabled === false) {
      addNote(
        notes,
        [...specPath, 'evaluation', 'admission', 'enabled'],
        'the policy is switched off at admission, so it is left out',
      )
      return undefined
    }
    addNotes(document.spec, specPath, notes)
    addAttestorNotes(document.spec, specPath, notes)
    if (revocation === 'skip') addRevocationNotes(document.spec, specPath, notes)
    const hash = await this.#hash(document, attestors)
    return assemble(document, { source, hash, attestors, compiled, specPath })
  }

  #checkCredentials({ credentials }: PolicySpec, path: Path, faults: Faults): void {
    const { registries } = this.#options
    if (credentials === undefined || registries === undefined) return
    checkCredentials(credentials, [...path, 'credentials'], registries, faults)
  }

  #checkPullSecrets(fields: AttestorFields, path: Path, faults: Faults): void {
    const { registries } = this.#options
    const secrets = 'cosign' in fields ? (fields.cosign.source?.PullSecrets ?? []) : []
    if (registries === undefined) return
    const names = secrets.map(({ name }) => name)
    checkSecrets(names, [...path, 'cosign', 'source', 'PullSecrets'], registries, faults)
  }

  /** Keys are checked now, so that a bad one shows before the first image asks for it. */
  async #attestors(
    spec: PolicySpec,
    path: Path,
    shared: AnnotatedFields,
    faults: Faults,
  ): Promise<Attestor[]> {
    const attestors: Attestor[] = []
    for (const [index, fields] of spec.attestors.entries()) {
      this.#checkPullSecrets(fields, [...path, 'attestors', index], faults)
      try {
        attestors.push(await this.#attestor(fields, shared))
      } catch (error) {
        if (!(error instanceof AdmissionError)) throw error
        const code = error.code === 'POLICY_UNSUPPORTED' ? error.code : 'POLICY_INVALID'
        const at = [...path, 'attestors', index, ...materialOf(fields, error)]
        faults.add(at, error.message, code)
      }
    }
    return attestors
  }

  async #attestor(
    fields: AttestorFields,
    { predicateTypes, revocation }: AnnotatedFields,
  ): Promise<Attestor> {
    if ('notary' in fields) {
      return createNotaryAttestor({ name: fields.name, ...fields.notary, revocation })
    }
    const kms = fields.cosign.key?.kms
    if (kms !== undefined) this.#resolveKey(kms)
    return cosignAttestor(fields, predicateTypes, this.#options)
  }

  #resolveKey(reference: string) {
    const { kmsRegion, kmsEndpoints, kmsVault } = this.#options
    return resolveKeyReference(reference, {
      ...(kmsRegion === undefined ? {} : { region: kmsRegion }),
      ...(kmsEndpoints === undefined ? {} : { endpoints: kmsEndpoints }),
      ...(kmsVault === undefined ? {} : { vault: kmsVault }),
    })
  }

  /** Everything a verdict depends on: another region may hold another key under the same alias. */
  async #hash({ spec }: PolicyDocument, attestors: readonly Attestor[]): Promise<string> {
    const keys = attestors.map((attestor) => {
      const kms =
        attestor.kind === 'cosign-key' && 'kms' in attestor.key ? attestor.key.kms : undefined
      const resolved = kms === undefined ? null : { ...this.#resolveKey(kms) }
      return { name: attestor.name, hash: attestor.hash, resolved }
    })
    // A spec with its defaults is JSON: it was read from JSON values.
    const content = { version: POLICY_HASH_VERSION, spec: spec as unknown as JsonValue, keys }
    return toHex(await sha256(utf8(canonicalJson(content))))
  }

  #report(
    file: string,
    document: SourceDocument,
    found: readonly DocumentFault[],
    into: PolicyFault[] = this.#faults,
  ): void {
    const faults = found.map((fault) => {
      const { code, message, path } = fault
      return { code, file, ...placeOf(document, fault), path: formatPath(path), message }
    })
    into.push(...faults.sort((a, b) => a.line - b.line || a.column - b.column))
  }
}

function fileFault(file: string, { message, place }: FileFault): PolicyFault {
  return { code: 'POLICY_INVALID', file, ...place, path: '', message }
}

const UNSUPPORTED_KINDS: Readonly<Record<string, string>> = {
  NamespacedImageValidatingPolicy: 'namespaced policies are not supported yet',
  PolicyException: 'policy exceptions are not supported yet',
}

/** True for an ImageValidatingPolicy of a served version; everything else is refused with a reason. */
function isPolicy(value: Record<string, unknown>, path: Path, faults: Faults): boolean {
  const apiVersion = own(value, 'apiVersion')
  const kind = own(value, 'kind')
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    if (typeof apiVersion !== 'string') faults.add([...path, 'apiVersion'], 'Required value')
    if (typeof kind !== 'string') faults.add([...path, 'kind'], 'Required value')
    return false
  }
  const [group, version = ''] = apiVersion.split('/')
  if (group !== POLICY_GROUP || kind !== 'ImageValidatingPolicy') {
    const known = group === POLICY_GROUP && Object.hasOwn(UNSUPPORTED_KINDS, kind)
    const reason = known
      ? UNSUPPORTED_KINDS[kind]
      : `only ImageValidatingPolicy of ${POLICY_GROUP} can be loaded`
    faults.add([...path, 'kind'], `${kind} of ${apiVersion}: ${reason}`, 'POLICY_UNSUPPORTED')
    return false
  }
  if (POLICY_VERSIONS.includes(version)) return true
  const versions = POLICY_VERSIONS.map((served) => `${POLICY_GROUP}/${served}`)
  faults.add([...path, 'apiVersion'], unsupportedValue(apiVersion, versions), 'POLICY_UNSUPPORTED')
  return false
}

/** Where what is wrong with an attestor's material stands in it. */
function materialOf(fields: AttestorFields, error: AdmissionError): Path {
  if (error instanceof FieldFault) return error.path
  return 'notary' in fields ? ['notary'] : ['cosign', 'key', 'kms']
}
