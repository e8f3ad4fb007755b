import { addNote } from './notes.ts'
import { type Faults, own, type Path, unsupportedValue } from './shape.ts'
import type { PolicyKind } from './types.ts'

/** The API group of the documents. */
export const POLICY_GROUP = 'policies.kyverno.io'

/** What a folder may hold. */
export type DocumentKind = PolicyKind | 'PolicyException'

/** Served versions; those of one kind all mean the same (image-validating-policy.md 1.1, 1.7). */
const VERSIONS: Readonly<Record<DocumentKind, readonly string[]>> = {
  ImageValidatingPolicy: ['v1', 'v1beta1', 'v1alpha1'],
  NamespacedImageValidatingPolicy: ['v1', 'v1beta1'],
  PolicyException: ['v1', 'v1beta1', 'v1alpha1'],
}

const KINDS = Object.keys(VERSIONS)

/** The one exception of another group that is meant: for Kyverno's older policies. */
const OLD_GROUP = 'kyverno.io'

/**
 * The kind of an object that is ours. Everything else is undefined: a fault, or a note where `ignoreOthers` says so. What is ours but
 * for its spelling is always a fault, so that a slip does not take a policy away.
 */
export function kindOf(
  value: Record<string, unknown>,
  path: Path,
  ignoreOthers: boolean,
  { faults, notes }: { faults: Faults; notes: Faults },
): DocumentKind | undefined {
  const apiVersion = own(value, 'apiVersion')
  const kind = own(value, 'kind')
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') {
    if (typeof apiVersion !== 'string') faults.add([...path, 'apiVersion'], 'Required value')
    if (typeof kind !== 'string') faults.add([...path, 'kind'], 'Required value')
    return undefined
  }
  const [group, version = ''] = apiVersion.split('/')
  if (isDocumentKind(kind) && group === POLICY_GROUP) {
    if (VERSIONS[kind].includes(version)) return kind
    const served = VERSIONS[kind].map((each) => `${POLICY_GROUP}/${each}`)
    const message = unsupportedValue(apiVersion, served)
    return faults.add([...path, 'apiVersion'], message, 'POLICY_UNSUPPORTED')
  }
  const what = `${kind} of ${apiVersion}`
  if (ignoreOthers && !isSlip(kind, group)) {
    addNote(notes, [...path, 'kind'], `${what} is left out: it is no image policy`)
    return undefined
  }
  const advice = isSlip(kind, group) ? '' : '; ignoreOtherKinds: true in the config leaves it out'
  return faults.add(
    [...path, 'kind'],
    `${what}: only ${KINDS.slice(0, -1).join(', ')} and ${KINDS.at(-1)} of ${POLICY_GROUP} can be loaded${advice}`,
    'POLICY_UNSUPPORTED',
  )
}

function isDocumentKind(kind: string): kind is DocumentKind {
  return Object.hasOwn(VERSIONS, kind)
}

/** True for a kind of ours in other letters, in another group, or misspelt. */
function isSlip(kind: string, group: string | undefined): boolean {
  if (kind === 'PolicyException' && group === OLD_GROUP) return false
  return KINDS.some((ours) => edits(ours.toLowerCase(), kind.toLowerCase()) <= MAX_SLIPS)
}

/** Edits that make a misspelt kind of another: no other kind of Kyverno is as near as that to one of ours. */
const MAX_SLIPS = 3

/** Characters to add, leave out or change that make one text the other; beyond `MAX_SLIPS` it may be any number above. */
function edits(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > MAX_SLIPS) return Number.POSITIVE_INFINITY
  let row = [...to, ''].map((_, index) => index)
  for (const [index, character] of [...from].entries()) {
    const next = [index + 1]
    for (const [column, other] of [...to].entries()) {
      const [left = 0, above = 0, before = 0] = [next[column], row[column + 1], row[column]]
      next.push(Math.min(left + 1, above + 1, before + (character === other ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** True for a kind of policy that can be loaded. */
export function isPolicyKind(kind: string): kind is PolicyKind {
  return kind !== 'PolicyException' && isDocumentKind(kind)
}
