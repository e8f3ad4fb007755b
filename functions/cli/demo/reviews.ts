import { pinnedReference } from './images.ts'
import { pod } from './pod.ts'
import { REVIEWED_POLICY } from './reviewed.ts'
import { admitted, deniedByReview, pinned, reviewedImages, type Scenario } from './scenario.ts'

/** The API server asks about images itself, with ImagePolicyWebhook. */
export const REVIEWS: readonly Scenario[] = [
  {
    name: 'image-review',
    title: 'ImagePolicyWebhook gets the same answers, also about init containers',
    async run(stage) {
      const good = await stage.image('reviewed', 'release')
      const bad = await stage.image('unreviewed', 'nobody')
      const send = (init: string) =>
        stage.create(pod({ name: 'reviewed', image: good.reference, init }), {
          policy: REVIEWED_POLICY,
          imageReview: true,
        })
      const twice = await send(good.reference)
      const mixed = await send(bad.reference)
      const reason = `Policy ${REVIEWED_POLICY} failed: not signed by the release key: ${pinnedReference(bad)}`
      return [
        {
          sent: `Pod with ${good.reference}, signed, in a container and an init container`,
          admission: twice,
          checks: [admitted(twice), pinned(twice, good), reviewedImages(twice, 2)],
        },
        {
          sent: `Pod with ${good.reference} and an init container of ${bad.reference}, unsigned`,
          admission: mixed,
          checks: [deniedByReview(mixed, reason), reviewedImages(mixed, 2)],
        },
      ]
    },
  },
]
