import type { CheckedExpression } from '../cel/types.ts'
import { assemble } from './assemble.ts'
import { addAttestorNotes } from './attestor-notes.ts'
import { type AutogenVariant, autogenVariants } from './autogen.ts'
import { type CompileOptions, compileExpressions } from './compile.ts'
import { checkCredentials } from './credentials.ts'
import type { SourceObject } from './documents.ts'
import { requestEnvironment } from './environment.ts'
import { expressionsOf } from './expressions.ts'
import { addImpossible } from './impossible.ts'
import { type AttestorContext, attestorsOf, policyHash } from './materials.ts'
import { addAutogenNotes, addNote, addNotes, addWholeObjectNotes } from './notes.ts'
import type { LoadOptions } from './options.ts'
import { signaturePredicates } from './predicates.ts'
import { addRevocationNotes, notaryRevocation } from './revocation.ts'
import { isJsonMode, type PolicyDocument, readPolicy } from './schema.ts'
import { Faults, formatPath, own, type Path } from './shape.ts'
import type { CompiledPolicy, PolicyKind } from './types.ts'

/** Upstream's word on `http.*`, which names its own switch. */
const NO_HTTP = new Map([
  [
    'http',
    'Forbidden: http.* is not allowed in namespaced policies; set --allowHTTPInNamespacedPolicies to enable (http.namespacedPolicies: true in the config)',
  ],
])

/**
 * A policy and what it means for Pod controllers, exceptions not attached; nothing when it has a fault, or is switched off at admission.
 * `source` is `file.yaml:12`.
 */
export async function compilePolicy(
  { value, path }: SourceObject,
  kind: PolicyKind,
  source: string,
  options: LoadOptions,
  found: { faults: Faults; notes: Faults },
): Promise<CompiledPolicy[]> {
  const { faults, notes } = found
  const specPath = [...path, 'spec']
  const compileOptions = compileOptionsFor(value, kind, options)
  const document = readPolicy(value, path, faults, kind, options)
  const compiled = await compileExpressions(own(value, 'spec'), specPath, faults, compileOptions)
  if (document === undefined) return []
  const { spec } = document
  if (spec.credentials !== undefined && options.registries !== undefined) {
    checkCredentials(spec.credentials, [...specPath, 'credentials'], options.registries, faults)
  }
  const shared: Annotated = {
    predicateTypes: signaturePredicates(value, path, faults),
    revocation: notaryRevocation(value, path, faults) ?? options.notaryRevocation ?? 'skip',
  }
  const builder = { source, specPath, shared, options, compileOptions, faults }
  addImpossible(document, compiled, specPath, faults)
  const policy = await build(document, compiled, builder)
  if (faults.count > 0 || policy === undefined) return []
  if (spec.evaluation?.admission?.enabled === false) {
    const at = [...specPath, 'evaluation', 'admission', 'enabled']
    addNote(notes, at, 'the policy is switched off at admission, so it is left out')
    return []
  }
  const variants = isJsonMode(value) ? [] : variantsOf(own(value, 'spec'))
  addNotes(spec, variants.length > 0, specPath, notes)
  addAutogenNotes(spec, variants.length > 0, specPath, notes)
  if (variants.length > 0) {
    const written = expressionsOf(own(value, 'spec'), specPath).flatMap(({ path: at }) => {
      const expression = compiled.get(formatPath(at))
      return expression === undefined ? [] : [[at, expression] as const]
    })
    addWholeObjectNotes(written, notes)
  }
  addAttestorNotes(spec, specPath, compiled, notes)
  if (shared.revocation === 'skip') addRevocationNotes(spec, specPath, notes)
  const policies = [policy]
  for (const variant of variants) {
    const compiledVariant = await compileVariant(value, variant, document, builder)
    if (compiledVariant !== undefined) policies.push(compiledVariant)
  }
  return faults.count > 0 ? [] : policies
}

/** The variants of a policy as it was written: upstream's algorithm looks at the document, not at its defaults. */
function variantsOf(spec: unknown): readonly AutogenVariant[] {
  return autogenVariants(spec, requestEnvironment().macros)
}

function compileOptionsFor(
  value: unknown,
  kind: PolicyKind,
  { httpInNamespacedPolicies = false }: LoadOptions,
): CompileOptions {
  const isNamespaced = kind !== 'ImageValidatingPolicy'
  const isRestricted = isNamespaced && !httpInNamespacedPolicies
  return {
    isJson: isJsonMode(value),
    isNamespaced,
    ...(isRestricted ? { forbidden: NO_HTTP } : {}),
  }
}

/** What annotations say for all attestors. */
type Annotated = Omit<AttestorContext, 'compiled'>

interface Builder {
  source: string
  specPath: Path
  shared: Annotated
  options: LoadOptions
  compileOptions: CompileOptions
  faults: Faults
}

/** The policy of a document; undefined when there is any fault, here or before. */
async function build(
  document: PolicyDocument,
  compiled: ReadonlyMap<string, CheckedExpression>,
  { source, specPath, shared, options, faults }: Builder,
): Promise<CompiledPolicy | undefined> {
  const { spec } = document
  const attestors = await attestorsOf(spec, specPath, { ...shared, compiled }, options, faults)
  if (faults.count > 0) return undefined
  const hash = await policyHash(spec, attestors, options)
  return assemble(document, { source, hash, attestors, compiled, specPath })
}

/** A variant; undefined when its expressions have faults, which are told at the places they were written. */
async function compileVariant(
  value: Record<string, unknown>,
  variant: AutogenVariant,
  { kind }: PolicyDocument,
  builder: Builder,
): Promise<CompiledPolicy | undefined> {
  const { specPath, options, compileOptions, faults } = builder
  const found = new Faults()
  const path = specPath.slice(0, -1)
  const document = readPolicy({ ...value, spec: variant.spec }, path, found, kind, options)
  const compiled = await compileExpressions(variant.spec, specPath, found, compileOptions)
  const policy =
    document === undefined
      ? undefined
      : await build(document, compiled, { ...builder, faults: found })
  const controllers = variant.targets.map(({ resource }) => resource).join(', ')
  const sources = new Map(
    expressionsOf(variant.spec, specPath).map((each) => [formatPath(each.path), each.source]),
  )
  for (const fault of found.found) {
    const source = sources.get(formatPath(fault.path))
    const where =
      source === undefined ? '' : `, where it is ${JSON.stringify(source.slice(0, 200))}`
    // The offset is one of the rewritten expression, which nobody has in front of them.
    const { offset, ...rest } = fault
    faults.report({ ...rest, message: `for ${controllers}${where}: ${fault.message}` })
  }
  return policy === undefined ? undefined : { ...policy, autogen: variant.config }
}
