import type { App, Transport } from '#functions/app.ts'
import type { Flows } from '#functions/compose.ts'
import { parseDuration, timeLeftMs } from '#functions/deadline.ts'
import { AdmissionError } from '#shared/errors.ts'
import {
  DEFAULT_TIMEOUT_SECONDS,
  MAX_POLICY_BUNDLE_LOOKS,
  POLICY_BUNDLE_POLL_MS,
  POLICY_BUNDLE_RETRY_MS,
  POLICY_BUNDLE_TIMEOUT_MS,
  POLICY_BUNDLE_WAIT_MS,
} from '#shared/limits.ts'
import { wait, withTimeout } from '#shared/registry/timeout.ts'
import { type Accepted, acceptPayload, checkExpiry, isNewer } from './accept.ts'
import type { PolicyBundleConfig } from './config.ts'
import { openBundle } from './envelope.ts'
import { asBundleFault } from './faults.ts'
import { fetchBundle, nameOf } from './fetch.ts'
import type { FollowOptions } from './follow.ts'
import { type BundleKey, bundleKey } from './key.ts'
import { bundleRecord, type Outcome, outcomeOf } from './report.ts'

/** Answers requests by the policies that count when they come. */
export interface Keeper {
  answer(request: Request, transport: Transport | undefined): Promise<Response>
}

/** A Keeper for a config that has a `policyBundle`. Throws TypeError for one that has none. */
export function createKeeper(options: FollowOptions): Keeper {
  const { policyBundle } = options.deployment.config
  if (policyBundle === undefined) throw new TypeError('the config has no policyBundle')
  return new PolicyKeeper(options, policyBundle)
}

/** The bundle in use, and the app that was made of it. */
interface InUse {
  accepted: Accepted
  app: App
  etag: string | undefined
}

/**
 * Holds settled values only: which app counts, and when to look again. Whoever looks does so in the course of a request of its own, and no
 * request waits for what another one has begun: on Workers it could not, and elsewhere the other one may end without a word.
 */
class PolicyKeeper implements Keeper {
  readonly #options: FollowOptions
  readonly #settings: PolicyBundleConfig
  readonly #key: BundleKey
  readonly #embedded: App
  readonly #nothing: App
  readonly #now: () => number
  #inUse: InUse | undefined
  /** When what counts was confirmed last, or when this isolate began. */
  #confirmedAt: number
  /** When the last look that has ended began, and how long there is none after that; undefined before the first one. */
  #looked: { at: number; restMs: number } | undefined
  /** Until when a look under way keeps others from starting. */
  #busyUntil = 0
  /** When the looks under way before the first one has ended began. */
  #first: number[] = []

  constructor(options: FollowOptions, settings: PolicyBundleConfig) {
    const { deployment, platform, flows, assemble } = options
    this.#options = options
    this.#settings = settings
    this.#key = bundleKey(settings, deployment.config, platform)
    this.#embedded = assemble(deployment, flows)
    this.#nothing = assemble(deployment, refusing(flows))
    this.#now = platform.now ?? Date.now
    this.#confirmedAt = this.#now()
  }

  async answer(request: Request, transport: Transport | undefined): Promise<Response> {
    // Probes are about the function.
    if (request.method !== 'POST') return this.#app().fetch(request, transport)
    const started = this.#now()
    const mustWait = this.#lacksPolicies(started)
    const look = this.#isDue(started) ? this.#look(started) : undefined
    if (mustWait) {
      if (look !== undefined) await atMost(look, waitMs(request, transport))
      else if (this.#looked === undefined) await this.#othersLook(waitMs(request, transport))
    }
    const waitedMs = this.#now() - started
    const response = await this.#app().fetch(request, { ...transport, waitedMs })
    if (look !== undefined) {
      const elapsed = this.#now() - started
      transport?.afterAnswer?.(look, timeLeftMs({ timeout: timeoutOf(request), waitedMs: elapsed }))
    }
    return response
  }

  /** What answers a request that comes now, to its end. */
  #app(): App {
    const isStrict = this.#settings.onUnavailable === 'deny'
    if (this.#inUse === undefined) return isStrict ? this.#nothing : this.#embedded
    return isStrict && this.#isExpired(this.#now()) ? this.#nothing : this.#inUse.app
  }

  #isExpired(now: number): boolean {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#inUse?.accepted.payload ?? {}
    return now >= expiresAt
  }

  /** True when a request would be answered without policies, or by those of the build before anybody has looked for others. */
  #lacksPolicies(now: number): boolean {
    if (this.#settings.onUnavailable === 'embedded') return this.#looked === undefined
    return this.#inUse === undefined || this.#isExpired(now)
  }

  #isDue(now: number): boolean {
    if (this.#looked === undefined) return this.#mayBeFirst(now)
    const { at, restMs } = this.#looked
    // A clock that was set back must not keep it from looking.
    const busyMs = this.#busyUntil - now
    const isBusy = busyMs > 0 && busyMs <= POLICY_BUNDLE_TIMEOUT_MS
    return !isBusy && Math.abs(now - at) >= restMs
  }

  /** Several may, since one may end without a word, but not all that come: what has no time left counts no more. */
  #mayBeFirst(now: number): boolean {
    this.#first = this.#first.filter((began) => Math.abs(now - began) < POLICY_BUNDLE_TIMEOUT_MS)
    return this.#first.length < MAX_POLICY_BUNDLE_LOOKS
  }

  /** Until one of the first looks has ended, or the time is up. It waits by timers of its own: on Workers nobody can wait for another request. */
  async #othersLook(ms: number): Promise<void> {
    const { signal } = new AbortController()
    for (let left = ms; left > 0 && this.#looked === undefined; left -= POLICY_BUNDLE_POLL_MS) {
      await wait(Math.min(left, POLICY_BUNDLE_POLL_MS), signal)
    }
  }

  /** Looks for a bundle, and goes on with it when it counts. Never rejects. */
  async #look(started: number): Promise<void> {
    this.#busyUntil = started + POLICY_BUNDLE_TIMEOUT_MS
    if (this.#looked === undefined) this.#first.push(started)
    const outcome = await this.#outcome()
    const isFine = outcome.kind === 'swapped' || outcome.kind === 'current'
    const now = this.#now()
    if (isFine) this.#confirmedAt = now
    const restMs = this.#settings.refreshSeconds * 1000
    // Counted from its beginning: on Lambda its end may come with the next review, whenever that is.
    this.#looked = {
      at: started,
      restMs: isFine ? restMs : Math.min(restMs, POLICY_BUNDLE_RETRY_MS),
    }
    this.#busyUntil = 0
    this.#report(outcome, now)
  }

  async #outcome(): Promise<Outcome> {
    const where = nameOf(this.#settings.source)
    try {
      const found = await withTimeout(
        new AbortController().signal,
        POLICY_BUNDLE_TIMEOUT_MS,
        where,
        (signal) => this.#find(signal),
      )
      const isSwapped = found !== undefined && this.#swap(found)
      return { kind: isSwapped ? 'swapped' : 'current', accepted: this.#inUse?.accepted }
    } catch (thrown) {
      return outcomeOf(asBundleFault(thrown, where), this.#inUse?.accepted)
    }
  }

  /** A bundle that counts and is not in use yet, with the app made of it. */
  async #find(signal: AbortSignal): Promise<InUse | undefined> {
    const { deployment, platform, flows, assemble } = this.#options
    const { config } = deployment
    const known = this.#inUse
    const fetched = await fetchBundle(this.#settings, known?.etag, { config, platform, signal })
    if (fetched.status === 'unchanged') {
      // What is still stored may be over by now, and says so itself.
      if (known !== undefined) checkExpiry(known.accepted.payload, this.#now())
      return undefined
    }
    const payload = await openBundle(fetched.file, this.#key, signal)
    const accepted = await acceptPayload(payload, config, known?.accepted, this.#now())
    if (accepted === undefined) {
      // Stored once more, as it is.
      if (known !== undefined) known.etag = fetched.etag
      return undefined
    }
    signal.throwIfAborted()
    return { accepted, app: assemble(accepted.deployment, flows), etag: fetched.etag }
  }

  /** Another look may have ended in between: what counts is looked at once more, and nothing waits from there to the swap. */
  #swap(found: InUse): boolean {
    if (!isNewer(found.accepted, this.#inUse?.accepted)) return false
    this.#inUse = found
    return true
  }

  #report(outcome: Outcome, now: number): void {
    const { platform, flows, deployment } = this.#options
    const metrics = platform.metrics === true && deployment.config.metrics !== false
    // That nothing has changed is no news; its age is.
    if (outcome.kind === 'current' && !metrics) return
    const phase = phasesOf(flows)
    const ageMs = now - this.#confirmedAt
    platform.log(bundleRecord(outcome, { phase, ageMs, now, metrics }))
  }
}

/** Flows that find nothing out: what is asked of them is denied, as far as their phase denies. */
function refusing({ mutate, validate, imageReviews }: Flows): Flows {
  const refuse = () => async () => {
    throw unprovided()
  }
  return {
    ...(mutate && { mutate: refuse }),
    ...(validate && { validate: refuse }),
    ...(imageReviews && {
      // Their answer is for the part that knows what API servers make of it.
      imageReviews: (options) => {
        const load = imageReviews(options)
        return async () => {
          const reviews = await load()
          return {
            policiesOf: (cluster) => reviews.policiesOf(cluster),
            answer: (call, refused) => reviews.answer(call, refused ?? unprovided()),
          }
        }
      },
    }),
  }
}

function unprovided(): AdmissionError {
  return new AdmissionError(
    'POLICY_BUNDLE_UNAVAILABLE',
    'the policies are not available; the log of the function says why',
  )
}

/** What an app answers for, as it stands in the log. */
function phasesOf({ mutate, validate, imageReviews }: Flows): string {
  const phases = [mutate && 'mutate', validate && 'validate', imageReviews && 'image-review']
  return phases.filter(Boolean).join('+')
}

/** How long a request waits for policies: a part of its own time, so that enough is left for its answer. */
function waitMs(request: Request, transport: Transport | undefined): number {
  const asked = parseDuration(timeoutOf(request) ?? '') ?? DEFAULT_TIMEOUT_SECONDS * 1000
  const remaining = transport?.remainingMs?.() ?? asked
  return Math.max(0, Math.min(POLICY_BUNDLE_WAIT_MS, Math.min(asked, remaining) / 3))
}

function timeoutOf(request: Request): string | undefined {
  return new URL(request.url).searchParams.get('timeout') ?? undefined
}

/** Resolves with the work, or when the time is up. */
async function atMost(work: Promise<void>, ms: number): Promise<void> {
  const over = new AbortController()
  const late = wait(ms, over.signal).catch(() => undefined)
  await Promise.race([work, late])
  over.abort()
}
