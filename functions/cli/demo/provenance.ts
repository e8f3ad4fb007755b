import type { JsonValue } from '#shared/json.ts'
import { BUILDER, PROVENANCE } from './built-images.ts'
import { type DemoImage, pinnedReference } from './images.ts'
import { pod } from './pod.ts'
import { admitted, callOf, denied, pinned, type Scenario } from './scenario.ts'

/** Somebody else who might have built an image. */
const LAPTOP = 'https://laptop.example.com/bob'

/** A provenance that names its builder. */
function provenanceBy(builder: string): JsonValue {
  return {
    buildDefinition: { buildType: 'https://ci.example.com/container', externalParameters: {} },
    runDetails: { builder: { id: builder } },
  }
}

/** What is known of how an image was built decides, not only who vouches for it. */
export const PROVENANCES: readonly Scenario[] = [
  {
    name: 'provenance',
    title: 'An image whose provenance names the right builder is admitted, another is denied',
    async run(stage) {
      const send = async (name: string, builder?: string) => {
        const image = await stage.image(name, 'nobody')
        if (builder !== undefined) await stage.attest(image, PROVENANCE, provenanceBy(builder))
        const object = pod({ name, image: image.reference })
        return { image, admission: await stage.create(object, { policy: 'built-images' }) }
      }
      const right = await send('built', BUILDER)
      const wrong = await send('homemade', LAPTOP)
      const none = await send('unknown', undefined)
      const onlyBlob = callOf(right.admission, 'validate')?.used.registry === 1
      return [
        {
          sent: `Pod with ${right.image.reference}, attested by the release workflow to come from ${BUILDER}`,
          admission: right.admission,
          checks: [
            admitted(right.admission),
            pinned(right.admission, right.image),
            { what: 'validate reads the sealed provenance and nothing else', holds: onlyBlob },
          ],
        },
        {
          sent: `Pod with ${wrong.image.reference}, attested by the release workflow to come from ${LAPTOP}`,
          admission: wrong.admission,
          checks: [denied(wrong.admission, says(`built by ${LAPTOP}: `, wrong.image))],
        },
        {
          sent: `Pod with ${none.image.reference}, which nobody attested anything about`,
          admission: none.admission,
          checks: [
            denied(none.admission, says('no provenance by the release workflow: ', none.image)),
          ],
        },
      ]
    },
  },
]

function says(reason: string, image: DemoImage): string {
  return `Policy built-images failed: ${reason}${pinnedReference(image)}`
}
