import { sha256, toHex, utf8 } from '../bytes.ts'
import type { LoadedException, PolicyRef } from './exceptions.ts'
import { isPolicyKind } from './kinds.ts'
import { addNote } from './notes.ts'
import type { ExceptionOptions } from './options.ts'
import type { Faults, Path } from './shape.ts'
import type { CompiledPolicy, PolicyKind } from './types.ts'

/** A policy that some document defines, whatever is wrong with it. */
export interface NamedPolicy {
  kind: PolicyKind
  name: string
  namespace?: string
}

/** True when exceptions in this namespace count at all. */
export function isAllowedNamespace(
  namespace: string,
  { namespaces = ['*'] }: ExceptionOptions,
): boolean {
  return namespaces.includes('*') || namespaces.includes(namespace)
}

/** The policy with the exceptions that reach it, by name. They are part of its hash: a verdict depends on them. */
export async function withExceptions(
  policy: CompiledPolicy,
  exceptions: readonly LoadedException[],
  options: ExceptionOptions,
): Promise<CompiledPolicy> {
  const reaching = exceptions
    .filter(({ refs, namespace }) => refs.some((ref) => reaches(ref, namespace, policy, options)))
    .sort((a, b) => (a.exception.name < b.exception.name ? -1 : 1))
  if (reaching.length === 0) return policy
  const content = [policy.hash, ...reaching.map((each) => each.content)]
  const hash = toHex(await sha256(utf8(JSON.stringify(content))))
  return { ...policy, hash, exceptions: reaching.map(({ exception }) => exception) }
}

/**
 * By kind and name. Upstream does not compare namespaces, so that whoever may write exceptions anywhere exempts the policies of every
 * namespace (image-validating-policy.md 1.7).
 */
function reaches(
  ref: PolicyRef,
  namespace: string,
  policy: NamedPolicy,
  { crossNamespace = false }: ExceptionOptions,
): boolean {
  if (ref.kind !== policy.kind || ref.name !== policy.name) return false
  return policy.namespace === undefined || policy.namespace === namespace || crossNamespace
}

/** Says of every reference that it exempts nothing, where that is so. `path` is the exception's. */
export function addTargetNotes(
  { refs, namespace }: LoadedException,
  policies: readonly NamedPolicy[],
  options: ExceptionOptions,
  path: Path,
  notes: Faults,
): void {
  for (const [index, ref] of refs.entries()) {
    if (policies.some((policy) => reaches(ref, namespace, policy, options))) continue
    const message = whyNothing(ref, namespace, policies)
    addNote(notes, [...path, 'spec', 'policyRefs', index], `it exempts nothing: ${message}`)
  }
}

function whyNothing(
  { kind, name }: PolicyRef,
  namespace: string,
  policies: readonly NamedPolicy[],
): string {
  if (!isPolicyKind(kind)) return `${JSON.stringify(kind)} is no kind of image policy`
  const others = policies.filter((policy) => policy.kind === kind && policy.name === name)
  const what = `${kind} ${JSON.stringify(name)}`
  if (others.length === 0) return `there is no ${what}`
  const where = [...new Set(others.map((other) => other.namespace))].sort().join(', ')
  return `${what} is in namespace ${where}, and an exception of ${namespace} reaches no other unless exceptions.crossNamespace of the config says so`
}
