import { type CompiledPolicy, compareTexts, policyKey } from '../policy/types.ts'
import type { WebhookNote } from './types.ts'

/** A policy with what it means for Pod controllers: all of it is called by one name. */
export interface PolicySource {
  key: string
  /** The first segment of its path. */
  route: 'ivpol' | 'nivpol'
  base: CompiledPolicy
  /** By group of controllers. */
  variants: CompiledPolicy[]
}

/** The policies of a set in any order, by namespace and name; those that answer for each other are faults. */
export function policySources(policies: readonly CompiledPolicy[]): {
  sources: PolicySource[]
  faults: WebhookNote[]
} {
  const faults: WebhookNote[] = []
  const byKey = new Map<string, CompiledPolicy[]>()
  for (const policy of policies) {
    // A policy about files is about no request.
    if (policy.mode === 'JSON') continue
    const key = policyKey(policy)
    byKey.set(key, [...(byKey.get(key) ?? []), policy])
  }
  const sources = [...byKey].flatMap(([key, forms]): PolicySource[] => {
    const bases = forms.filter(({ autogen }) => autogen === undefined)
    const variants = forms.filter(({ autogen }) => autogen !== undefined)
    const [base] = bases
    if (base === undefined || bases.length > 1 || hasTwice(variants)) {
      faults.push({ path: `policy ${key}`, message: duplicateText(forms) })
    }
    if (base === undefined) return []
    variants.sort((a, b) => compareTexts(a.autogen ?? '', b.autogen ?? ''))
    return [{ key, route: base.namespace === undefined ? 'ivpol' : 'nivpol', base, variants }]
  })
  sources.sort(
    (a, b) =>
      compareTexts(a.base.namespace ?? '', b.base.namespace ?? '') ||
      compareTexts(a.base.name, b.base.name),
  )
  return { sources, faults: faults.sort((a, b) => compareTexts(a.path, b.path)) }
}

function hasTwice(variants: readonly CompiledPolicy[]): boolean {
  return new Set(variants.map(({ autogen }) => autogen)).size < variants.length
}

function duplicateText(forms: readonly CompiledPolicy[]): string {
  const places = [...new Set(forms.map(({ source }) => source))].sort()
  return `two policies have this name (${places.join(', ')}): a webhook would call both by it; rename one`
}

/** `policy team-a/signed (policies/a.yaml:3)`. */
export function placeOf({ key, base }: PolicySource): string {
  return `policy ${key} (${base.source})`
}
