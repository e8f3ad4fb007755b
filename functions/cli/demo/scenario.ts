import type { Admission, Phase, WebhookCall } from '#functions/local/apiserver.ts'
import { type DemoImage, pinnedReference } from './images.ts'
import { imagesOf } from './pod.ts'
import { type Stage, type Staged, VALIDATING } from './stage.ts'

/** A story of the demo: one or more submissions, each with what has to come out of it. */
export interface Scenario {
  /** For `--scenario`. */
  name: string
  title: string
  run: (stage: Stage) => Promise<readonly Act[]>
}

/** One submission and its outcome. */
export interface Act {
  /** What was sent, for people. */
  sent: string
  admission: Staged
  checks: readonly Check[]
}

/** Something that has to be true of an admission, and whether it is. */
export interface Check {
  what: string
  holds: boolean
}

/** A scenario that was played. */
export interface Played {
  name: string
  title: string
  /** True when every check of every act holds. */
  ok: boolean
  acts: readonly Act[]
  ms: number
}

/** Plays one scenario. */
export async function play(scenario: Scenario, stage: Stage): Promise<Played> {
  const { name, title } = scenario
  const started = performance.now()
  const acts = await scenario.run(stage)
  const ok = acts.every(({ checks }) => checks.every(({ holds }) => holds))
  return { name, title, ok, acts, ms: performance.now() - started }
}

/** The submission was let in. */
export function admitted(admission: Admission): Check {
  return { what: 'admitted', holds: admission.allowed }
}

/** The stored object names the image by exactly this digest, behind the reference the user wrote. */
export function pinned(admission: Admission, image: DemoImage): Check {
  const [stored] = imagesOf(admission.object)
  return { what: 'pinned to the digest', holds: stored === pinnedReference(image) }
}

/** The validating webhook refused the submission, with this message or one that matches. */
export function denied(admission: Admission, message: string | RegExp): Check {
  const prefix = `admission webhook "${VALIDATING}" denied the request: `
  const said = admission.message.slice(prefix.length)
  const right = typeof message === 'string' ? said === message : message.test(said)
  const holds = !admission.allowed && admission.message.startsWith(prefix) && right
  return {
    what: holds ? 'denied for the right reason' : `expected a denial with ${message}`,
    holds,
  }
}

/** ImagePolicyWebhook refused the submission, with this reason of its backend. */
export function deniedByReview(
  { allowed, message, imageReviews }: Admission,
  reason: string,
): Check {
  const said = message.replace(/^pods ".*?" is forbidden: /, '')
  const wanted = `image policy webhook backend denied one or more images: ${reason}`
  const holds = !allowed && imageReviews.length === 1 && said === wanted
  return { what: holds ? 'denied for the right reason' : `expected a denial with ${reason}`, holds }
}

/** The API server asked about all images of the Pod, and got an answer. */
export function reviewedImages({ imageReviews: [review] }: Admission, count: number): Check {
  const asked = review?.spec.containers
  const holds = review?.status !== undefined && Array.isArray(asked) && asked.length === count
  return { what: `asked about ${count} images`, holds }
}

/** What `signed-images` says of an image without a signature by the release key. */
export function unsigned(image: DemoImage): string {
  return `Policy signed-images failed: not signed by the release key: ${pinnedReference(image)}`
}

/** What `signed-images-keyless` says of an image without a signature by the release workflow. */
export function unsignedByWorkflow(image: DemoImage): string {
  return `Policy signed-images-keyless failed: not signed by the release workflow: ${pinnedReference(image)}`
}

/** The call of this phase made no request to the registry and none to KMS. */
export function offline(admission: Admission, phase: Phase): Check {
  const { used } = callOf(admission, phase) ?? { used: { missing: 1 } }
  const holds = Object.values(used).every((count) => count === 0)
  return { what: `${phase}: 0 registry and 0 KMS requests`, holds }
}

/** Validate opened the seal and made no request to the registry. */
export function sealCounts(admission: Staged): Check {
  const requests = callOf(admission, 'validate')?.used.registry
  return { what: 'the seal counts', holds: admission.seal === 'open' && requests === 0 }
}

/** Validate refused the seal and asked the registry itself. */
export function sealRefused(admission: Staged): Check {
  const requests = callOf(admission, 'validate')?.used.registry ?? 0
  const refused = admission.seal?.startsWith('refused: ') ?? false
  return { what: 'the seal is refused, the image verified live', holds: refused && requests > 0 }
}

/** Validate asked the registry itself: the seal, if it opened, says nothing about this image. */
export function verifiedLive(admission: Admission): Check {
  const requests = callOf(admission, 'validate')?.used.registry ?? 0
  return { what: 'the image is verified live', holds: requests > 0 }
}

/** Every call was answered within so many milliseconds. */
export function within(admission: Admission, ms: number): Check {
  return { what: `answered within ${ms} ms`, holds: admission.calls.every((call) => call.ms < ms) }
}

/** The first call of a phase. */
export function callOf(admission: Admission, phase: Phase): WebhookCall | undefined {
  return admission.calls.find((call) => call.phase === phase)
}
