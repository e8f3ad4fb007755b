import type { JsonObject } from '#shared/admission/types.ts'
import { OUTCOMES_ANNOTATION, SEAL_ANNOTATION } from '#shared/outcome/annotation.ts'
import { forgedPod, type Model } from './forgery.ts'
import { pinnedReference } from './images.ts'
import { annotationsOf, metadataOf, pod, withImage } from './pod.ts'
import {
  admitted,
  denied,
  type Scenario,
  sealCounts,
  sealRefused,
  unsigned,
  verifiedLive,
} from './scenario.ts'
import type { Stage } from './stage.ts'

/** No mutating webhook, and a validate function that remembers nothing: only the seal could speak for the image. */
const BARE = { cold: true, mutating: false }

/** Longer than a seal lives, clock difference included, milliseconds. */
const PAST_ITS_LIFETIME_MS = 130_000

/**
 * What somebody tries who may create Pods, read the annotations of others, or run a webhook after ours. For the replays the mutating webhook
 * is not registered: it would replace the annotations before anybody looks at them.
 */
export const ATTACKS: readonly Scenario[] = [
  {
    name: 'forged-outcome',
    title: 'A forged outcome annotation is worth nothing',
    async run(stage) {
      const image = await stage.image('forged', 'nobody')
      const object = forgedPod('forged', image, await sealedPod(stage, 'forged-from'))
      const full = await stage.create(object)
      const bare = await stage.create(object, BARE)
      const [before, after] = [annotationsOf(object), annotationsOf(full.object)]
      const replaced = [OUTCOMES_ANNOTATION, SEAL_ANNOTATION].every(
        (key) => before[key] !== after[key],
      )
      return [
        {
          sent: 'unsigned Pod with an outcome that says pass, and a seal right in all but the key it was made with',
          admission: full,
          checks: [
            denied(full, unsigned(image)),
            { what: 'mutate replaced both annotations', holds: replaced },
          ],
        },
        {
          sent: 'the same where the mutating webhook is not registered',
          admission: bare,
          checks: [denied(bare, unsigned(image)), sealRefused(bare)],
        },
      ]
    },
  },
  {
    name: 'replay-image',
    title: 'A seal replayed onto another image does not count',
    async run(stage) {
      const model = await sealedPod(stage, 'replay-image')
      const image = await stage.image('stowaway', 'nobody')
      const object = withImage(model.object, pinnedReference(image))
      const admission = await stage.create(object, BARE)
      const sent = 'an admitted Pod once more, seal and all, with an unsigned image in it'
      const checks = [denied(admission, unsigned(image)), verifiedLive(admission)]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'replay-namespace',
    title: 'A seal replayed into another namespace does not count',
    async run(stage) {
      const { object, image } = await withdrawnPod(stage, 'replay-namespace')
      const control = await stage.create(object, BARE)
      const moved = { ...object, metadata: { ...metadataOf(object), namespace: 'payments' } }
      const admission = await stage.create(moved, BARE)
      return [
        {
          sent: 'for comparison, an admitted Pod once more where it was; its signature was withdrawn a moment ago',
          admission: control,
          checks: [admitted(control), sealCounts(control)],
        },
        {
          sent: 'the same Pod, seal and all, in namespace payments',
          admission,
          checks: [denied(admission, unsigned(image)), sealRefused(admission)],
        },
      ]
    },
  },
  {
    name: 'replay-cluster',
    title: 'A seal replayed into another cluster does not count',
    async run(stage) {
      const { object, image } = await withdrawnPod(stage, 'replay-cluster')
      const admission = await stage.create(object, { ...BARE, cluster: 'prod-us' })
      const sent =
        'an admitted Pod of prod-eu, seal and all, in prod-us; its signature was withdrawn a moment ago'
      const checks = [denied(admission, unsigned(image)), sealRefused(admission)]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'replay-expired',
    title: 'A seal replayed after its lifetime does not count',
    async run(stage) {
      const { object, image } = await withdrawnPod(stage, 'replay-expired')
      stage.clock.shift(PAST_ITS_LIFETIME_MS)
      const admission = await stage.create(object, BARE)
      stage.clock.shift(-PAST_ITS_LIFETIME_MS)
      const sent =
        'an admitted Pod once more, 130 seconds later; its signature was withdrawn meanwhile'
      const checks = [denied(admission, unsigned(image)), sealRefused(admission)]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'swapped',
    title: 'An image swapped by a later webhook is denied',
    async run(stage) {
      const good = await stage.image('swapped', 'release')
      const bad = await stage.image('swapped-in', 'nobody')
      const object = pod({ name: 'swapped', image: good.reference })
      const swapFor = (image: string) => [(before: JsonObject) => withImage(before, image)]
      const pinned = await stage.create(object, { later: swapFor(pinnedReference(bad)) })
      const tagged = await stage.create(object, { later: swapFor(bad.reference) })
      const again = await stage.create(object, {
        later: swapFor(bad.reference),
        reinvocation: 'IfNeeded',
      })
      return [
        {
          sent: `Pod with signed ${good.reference}; a later webhook puts ${pinnedReference(bad)} in its place`,
          admission: pinned,
          checks: [denied(pinned, unsigned(bad)), verifiedLive(pinned)],
        },
        {
          sent: 'the same, swapped for an image by tag',
          admission: tagged,
          checks: [
            denied(
              tagged,
              `Policy signed-images failed: image ${bad.reference} does not have a digest`,
            ),
          ],
        },
        {
          sent: 'the same with reinvocationPolicy: IfNeeded, so that mutate sees the swapped image',
          admission: again,
          checks: [denied(again, unsigned(bad))],
        },
      ]
    },
  },
  {
    name: 'tampered',
    title: 'A manifest that does not hash to its digest is denied',
    async run(stage) {
      const image = await stage.image('tampered', 'release')
      const manifest = new RegExp(`manifests/${image.digest}$`)
      const heal = stage.registry.faults.add({ kind: 'wrong-bytes' }, { on: manifest })
      const object = pod({ name: 'tampered', image: pinnedReference(image) })
      const admission = await stage.create(object, { cold: true })
      heal()
      const sent = `Pod with ${pinnedReference(image)}, which is signed; the registry serves other bytes for it`
      return [{ sent, admission, checks: [denied(admission, /hashes to sha256:/)] }]
    },
  },
]

/** A Pod as it is stored after it was admitted with a signed image. */
async function sealedPod(stage: Stage, name: string): Promise<Model> {
  const image = await stage.image(name, 'release')
  const object = pod({ name, image: image.reference })
  const admission = await stage.create(object)
  return { object: admission.object ?? object, image }
}

/** The same, after its image has lost its signature: nothing but the seal could still speak for it. */
async function withdrawnPod(stage: Stage, name: string): Promise<Model> {
  const model = await sealedPod(stage, name)
  stage.withdraw(model.image)
  return model
}
