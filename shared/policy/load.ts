import { assemble } from './assemble.ts'
import { addAttestorNotes } from './attestor-notes.ts'
import { compileExpressions } from './compile.ts'
import { checkCredentials } from './credentials.ts'
import {
  type FileFault,
  objectsOf,
  placeOf,
  readDocuments,
  type SourceDocument,
  type SourceObject,
} from './documents.ts'
import { attestorsOf, policyHash } from './materials.ts'
import { addNote, addNotes } from './notes.ts'
import type { LoadOptions, PolicyFile } from './options.ts'
import { signaturePredicates } from './predicates.ts'
import { addRevocationNotes, notaryRevocation } from './revocation.ts'
import { nameOf, POLICY_GROUP, POLICY_VERSIONS, type PolicySpec, readPolicy } from './schema.ts'
import {
  type DocumentFault,
  Faults,
  formatPath,
  own,
  type Path,
  unsupportedValue,
} from './shape.ts'
import type { CompiledPolicy, LoadedPolicies, PolicyFault } from './types.ts'

export type { LoadOptions, PolicyFile } from './options.ts'

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
    const attestors = await attestorsOf(document.spec, specPath, shared, this.#options, faults)
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
    const hash = await policyHash(document.spec, attestors, this.#options)
    return assemble(document, { source, hash, attestors, compiled, specPath })
  }

  #checkCredentials({ credentials }: PolicySpec, path: Path, faults: Faults): void {
    const { registries } = this.#options
    if (credentials === undefined || registries === undefined) return
    checkCredentials(credentials, [...path, 'credentials'], registries, faults)
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
