import { sha256, toHex, utf8 } from '../bytes.ts'
import { contradiction } from '../policy/impossible.ts'
import { NAMESPACE_NAME_LABEL } from '../policy/selector.ts'
import { type CompiledPolicy, compareTexts, type LabelSelector } from '../policy/types.ts'

/** The selectors of one webhook; undefined is none at all. */
export interface Selectors {
  namespaceSelector: LabelSelector | undefined
  objectSelector: LabelSelector | undefined
}

/**
 * The selectors of a policy with those of the configuration merged in (specs/image-validating-policy.md 7.6). A namespaced policy is
 * pinned to its namespace: its own namespace selector stays with the function.
 */
export function resolveSelectors(
  { namespace, matchConstraints }: CompiledPolicy,
  configured: Partial<Selectors>,
): Selectors {
  const own =
    namespace === undefined
      ? matchConstraints.namespaceSelector
      : {
          matchExpressions: [
            { key: NAMESPACE_NAME_LABEL, operator: 'In' as const, values: [namespace] },
          ],
        }
  return {
    namespaceSelector: mergeSelectors(own, configured.namespaceSelector),
    objectSelector: mergeSelectors(matchConstraints.objectSelector, configured.objectSelector),
  }
}

/**
 * Both selectors in one, empty parts dropped. Where they want different values of one label, both are kept, so that nothing matches:
 * upstream drops one of them, and the policy is about more than it says.
 */
export function mergeSelectors(
  a: LabelSelector | undefined,
  b: LabelSelector | undefined,
): LabelSelector | undefined {
  if (a === undefined || b === undefined) return withoutEmptyParts(a ?? b)
  const contradictory = Object.entries(a.matchLabels ?? {}).filter(
    ([key, value]) =>
      b.matchLabels !== undefined &&
      Object.hasOwn(b.matchLabels, key) &&
      b.matchLabels[key] !== value,
  )
  return withoutEmptyParts({
    matchLabels: { ...a.matchLabels, ...b.matchLabels },
    matchExpressions: [
      ...(a.matchExpressions ?? []),
      ...(b.matchExpressions ?? []),
      ...contradictory.map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
    ],
  })
}

function withoutEmptyParts(selector: LabelSelector | undefined): LabelSelector | undefined {
  if (selector === undefined) return undefined
  const { matchLabels = {}, matchExpressions = [] } = selector
  const labels = Object.entries(matchLabels).sort(([left], [right]) => compareTexts(left, right))
  return {
    ...(labels.length === 0 ? {} : { matchLabels: Object.fromEntries(labels) }),
    ...(matchExpressions.length === 0
      ? {}
      : {
          matchExpressions: matchExpressions.map(({ key, operator, values = [] }) => ({
            key,
            operator,
            ...(values.length === 0 ? {} : { values: [...values] }),
          })),
        }),
  }
}

/** Why no object can match both selectors; undefined when some can. */
export function selectsNothing({
  namespaceSelector,
  objectSelector,
}: Selectors): string | undefined {
  const namespaces = contradiction(namespaceSelector)
  if (namespaces !== undefined) return `namespaceSelector: ${namespaces}`
  const objects = contradiction(objectSelector)
  return objects === undefined ? undefined : `objectSelector: ${objects}`
}

/** What webhooks of the same selectors have in common: SHA-256 hex of both, members in the order of the Go structs (7.5). */
export async function selectorHash({
  namespaceSelector,
  objectSelector,
}: Selectors): Promise<string> {
  const text = JSON.stringify([
    withoutEmptyParts(namespaceSelector) ?? null,
    withoutEmptyParts(objectSelector) ?? null,
  ])
  return toHex(await sha256(utf8(text)))
}
