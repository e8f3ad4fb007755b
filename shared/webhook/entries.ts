import { sha256, toHex, utf8 } from '../bytes.ts'
import type { Environment } from '../cel/environment.ts'
import { type CompiledPolicy, compareTexts } from '../policy/types.ts'
import { bootstrapCondition } from './bootstrap.ts'
import { offloadedConditions } from './conditions.ts'
import type { EntryIdentity } from './names.ts'
import { webhookRules } from './rules.ts'
import { resolveSelectors, type Selectors, selectorHash, selectsNothing } from './selectors.ts'
import { type PolicySource, placeOf } from './sources.ts'
import type { WebhookCondition, WebhookNote, WebhookOptions, WebhookRule } from './types.ts'
import { isShadowed, mayConvert } from './versions.ts'

/** One webhook of both phases, before it has a name and an address. */
export interface Entry {
  identity: EntryIdentity
  /** Names of its policies, by which the path calls them. */
  policies: string[]
  rules: WebhookRule[]
  selectors: Selectors
  matchPolicy: 'Exact' | 'Equivalent'
  conditions: WebhookCondition[]
  /** Of the policy itself. */
  timeoutSeconds?: number
}

/** A policy and what its webhook needs to know. */
export interface Prepared {
  source: PolicySource
  failure: 'fail' | 'ignore'
  isFineGrained: boolean
  conditions: WebhookCondition[]
  selectors: Selectors
  /** Of the selectors: SHA-256 hex. */
  hash: string
}

/** The policies with their selectors and conditions; what is notable about them and what is wrong goes to both lists. */
export async function preparePolicies(
  sources: readonly PolicySource[],
  environment: Environment,
  options: WebhookOptions,
  { notes, faults }: { notes: WebhookNote[]; faults: WebhookNote[] },
): Promise<Prepared[]> {
  const reserved = [bootstrapCondition(options)?.name].filter((name) => name !== undefined)
  return Promise.all(
    sources.map(async (source): Promise<Prepared> => {
      const { base } = source
      const path = placeOf(source)
      const selectors = resolveSelectors(base, options)
      const nothing = selectsNothing(selectors)
      if (nothing !== undefined) {
        const message = `${nothing}, so that the policy would never be enforced in this cluster: change the selectors of the policy or of the cluster, or leave the policy out there`
        faults.push({ path, message })
      }
      if (webhookRules(formsOf(source)).length === 0) {
        const message =
          'its rules are about nothing that is in a namespace, so that the policy would never be enforced: write it as an ImageValidatingPolicy'
        faults.push({ path, message })
      }
      const offloaded = offloadedConditions(source, environment, reserved)
      for (const message of offloaded.notes) notes.push({ path, message })
      return {
        source,
        failure: options.forceIgnore || base.failurePolicy === 'Ignore' ? 'ignore' : 'fail',
        isFineGrained:
          offloaded.isFineGrained || isExact(base) || base.timeoutSeconds !== undefined,
        conditions: offloaded.conditions,
        selectors,
        hash: await selectorHash(selectors),
      }
    }),
  )
}

function isExact({ matchConstraints }: CompiledPolicy): boolean {
  return matchConstraints.matchPolicy === 'Exact'
}

/**
 * The entries for these policies: one for each fine-grained policy, one for all others of the same kind, selectors and failure policy. A
 * path names the policies of its own entry only: upstream names those of both failure policies in both, and evaluates them twice. A policy
 * that others would keep the API server from converting objects for shares an entry with those alone that have the same rules.
 */
export async function entriesFor(policies: readonly Prepared[]): Promise<Entry[]> {
  const entries = (['ivpol', 'nivpol'] as const).map(async (route) => {
    const ofRoute = policies.filter(({ source }) => source.route === route)
    const fine = ofRoute.filter(({ isFineGrained }) => isFineGrained)
    const basic = ofRoute.filter(({ isFineGrained }) => !isFineGrained)
    const hidden = basic.filter((policy) => isHidden(policy, basic))
    const shared = basic.filter((policy) => !hidden.includes(policy))
    return [...fine.map(fineEntry), ...basicEntries(shared), ...(await hiddenEntries(hidden))]
  })
  return (await Promise.all(entries)).flat()
}

/** One that it would share a webhook with hides requests from it. */
function isHidden(policy: Prepared, all: readonly Prepared[]): boolean {
  const { hash, failure, source } = policy
  const forms = formsOf(source)
  if (!mayConvert(forms)) return false
  return all.some(
    (other) =>
      other !== policy &&
      other.hash === hash &&
      other.failure === failure &&
      isShadowed(forms, formsOf(other.source)),
  )
}

function formsOf({ base, variants }: PolicySource): CompiledPolicy[] {
  return [base, ...variants]
}

function fineEntry({ source, failure, conditions, selectors }: Prepared): Entry {
  const { base, route } = source
  return {
    identity: { route, failure, of: { policy: source } },
    policies: [base.name],
    rules: webhookRules(formsOf(source)),
    selectors,
    matchPolicy: isExact(base) ? 'Exact' : 'Equivalent',
    conditions,
    ...(base.timeoutSeconds === undefined ? {} : { timeoutSeconds: base.timeoutSeconds }),
  }
}

function basicEntries(policies: readonly Prepared[]): Entry[] {
  const hashes = [...new Set(policies.map(({ hash }) => hash))].sort()
  return hashes.flatMap((hash) => {
    const ofHash = policies.filter((each) => each.hash === hash)
    return sharedEntries(ofHash, { selectors: hash, isOnly: hashes.length === 1 })
  })
}

/** They are told apart by their selectors and rules. */
async function hiddenEntries(policies: readonly Prepared[]): Promise<Entry[]> {
  const byHash = new Map<string, Prepared[]>()
  for (const policy of policies) {
    const text = JSON.stringify([policy.hash, webhookRules(formsOf(policy.source))])
    const hash = toHex(await sha256(utf8(text)))
    byHash.set(hash, [...(byHash.get(hash) ?? []), policy])
  }
  return [...byHash].flatMap(([hash, group]) =>
    sharedEntries(group, { selectors: hash, isOnly: false }),
  )
}

/** One entry for each failure policy there is. */
function sharedEntries(
  policies: readonly Prepared[],
  of: { selectors: string; isOnly: boolean },
): Entry[] {
  return (['fail', 'ignore'] as const).flatMap((failure): Entry[] => {
    const group = policies.filter((each) => each.failure === failure)
    const [first] = group
    if (first === undefined) return []
    return [
      {
        identity: { route: first.source.route, failure, of },
        policies: group.map(({ source }) => source.base.name).sort(compareTexts),
        rules: webhookRules(group.flatMap(({ source }) => formsOf(source))),
        selectors: first.selectors,
        matchPolicy: 'Equivalent',
        conditions: [],
      },
    ]
  })
}
