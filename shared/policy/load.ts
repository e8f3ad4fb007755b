import { compilePolicy } from './compile-policy.ts'
import {
  type FileFault,
  objectsOf,
  placeOf,
  readDocuments,
  type SourceDocument,
  type SourceObject,
} from './documents.ts'
import {
  addTargetNotes,
  isAllowedNamespace,
  type NamedPolicy,
  withExceptions,
} from './exception-targets.ts'
import { type LoadedException, loadException } from './exceptions.ts'
import { kindOf } from './kinds.ts'
import { nameOf } from './metadata.ts'
import { addNote } from './notes.ts'
import type { ExceptionOptions, LoadOptions, PolicyFile } from './options.ts'
import { type DocumentFault, Faults, formatPath, type Path } from './shape.ts'
import {
  type CompiledPolicy,
  compareTexts,
  type LoadedPolicies,
  type PolicyFault,
  type PolicyKind,
  policyKey,
} from './types.ts'

export type { ExceptionOptions, LoadOptions, PolicyFile } from './options.ts'

/**
 * The policies of a set of files, compiled and with their exceptions, with every fault and every note of every document and its place. A policy with a
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

/** An exception and where it stands. */
interface FoundException {
  exception: LoadedException
  file: string
  object: SourceObject
}

class Loading {
  readonly #options: LoadOptions
  readonly #policies: CompiledPolicy[] = []
  readonly #exceptions: FoundException[] = []
  readonly #faults: PolicyFault[] = []
  readonly #warnings: PolicyFault[] = []
  /** Where each name was first used. */
  readonly #names = new Map<string, string>()
  /** Every policy of every document, also those with faults. */
  readonly #named: NamedPolicy[] = []

  constructor(options: LoadOptions) {
    this.#options = options
  }

  async result(): Promise<LoadedPolicies> {
    const { exceptions = {} } = this.#options
    for (const found of this.#exceptions) this.#addExceptionNotes(found, exceptions)
    const loaded = this.#exceptions.map(({ exception }) => exception)
    const policies = await Promise.all(
      this.#policies.sort(inOrder).map((policy) => withExceptions(policy, loaded, exceptions)),
    )
    return { policies, faults: this.#faults, warnings: this.#warnings }
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
    const found = { faults: new Faults(), notes: new Faults() }
    const kind = kindOf(value, path, this.#options.ignoreOtherKinds ?? false, found)
    const source = `${file}:${document.place(path).line}`
    if (kind === 'PolicyException') await this.#exception(file, object, source, found)
    else if (kind !== undefined) await this.#policy(kind, object, source, found)
    this.#report(file, document, found.faults.found)
    this.#report(file, document, found.notes.found, this.#warnings)
  }

  async #policy(
    kind: PolicyKind,
    object: SourceObject,
    source: string,
    found: { faults: Faults; notes: Faults },
  ): Promise<void> {
    const named = nameOf(object.value, kind !== 'ImageValidatingPolicy', this.#options)
    if (named !== undefined) {
      this.#named.push({ kind, ...named })
      this.#claimName('policy', named, object.path, source, found.faults)
    }
    const policies = await compilePolicy(object, kind, source, this.#options, found)
    if (found.faults.count === 0) this.#policies.push(...policies)
  }

  async #exception(
    file: string,
    object: SourceObject,
    source: string,
    found: { faults: Faults; notes: Faults },
  ): Promise<void> {
    const named = nameOf(object.value, true, this.#options)
    if (named !== undefined) {
      this.#claimName('exception', named, object.path, source, found.faults)
    }
    const exception = await loadException(object, source, this.#options, found)
    if (found.faults.count > 0 || exception === undefined) return
    if (isAllowedNamespace(exception.namespace, this.#options.exceptions ?? {})) {
      this.#exceptions.push({ exception, file, object })
      return
    }
    const message = `exceptions of namespace ${exception.namespace} do not count: it is not among exceptions.namespaces of the config`
    addNote(found.notes, [...object.path, 'metadata'], message)
  }

  /** Two policies of one name would answer for each other on the webhook's path, so the second one is refused. */
  #claimName(
    what: 'policy' | 'exception',
    named: { name: string; namespace?: string },
    path: Path,
    place: string,
    faults: Faults,
  ): void {
    const key = policyKey(named)
    const first = this.#names.get(`${what} ${key}`)
    if (first === undefined) this.#names.set(`${what} ${key}`, place)
    else {
      faults.add(
        [...path, 'metadata', 'name'],
        `Duplicate value: ${JSON.stringify(key)}: ${place} and ${first} define the same ${what}`,
      )
    }
  }

  /** Once every policy is known: what exceptions refer to may stand in a later file. */
  #addExceptionNotes({ exception, file, object }: FoundException, options: ExceptionOptions): void {
    const { path, document } = object
    const notes = new Faults()
    if (exception === this.#exceptions[0]?.exception && options.namespaces === undefined) {
      const message =
        'exceptions of every namespace count, as in Kyverno; exceptions.namespaces of the config says which do'
      addNote(notes, [...path, 'metadata'], message)
    }
    addTargetNotes(exception, this.#named, options, path, notes)
    this.#report(file, document, notes.found, this.#warnings)
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

const VARIANTS: readonly CompiledPolicy['autogen'][] = [undefined, 'defaults', 'cronjobs']

/** By key, then variant. */
function inOrder(a: CompiledPolicy, b: CompiledPolicy): number {
  return (
    compareTexts(policyKey(a), policyKey(b)) ||
    VARIANTS.indexOf(a.autogen) - VARIANTS.indexOf(b.autogen)
  )
}
