import { pushImage } from '#functions/local/image.ts'
import { EXCUSED_POLICY, EXCUSED_REPOSITORY, SKIPPED_NAMESPACE } from './excuses.ts'
import { imagesOf, pod } from './pod.ts'
import { admitted, denied, pinned, type Scenario, sealCounts } from './scenario.ts'

/** Exceptions let in what they are about and nothing else. */
export const EXCEPTIONS: readonly Scenario[] = [
  {
    name: 'exceptions',
    title: 'An exception lets in the image, or the namespace, that it is about',
    async run(stage) {
      const legacy = await stage.image('legacy', 'nobody')
      const other = await stage.image('legacy-copy', 'nobody')
      const send = (name: string, image: string, namespace?: string) =>
        stage.create(pod({ name, image, ...(namespace && { namespace }) }), {
          policy: EXCUSED_POLICY,
        })
      const excused = await send('legacy', legacy.reference)
      const foreign = await send('legacy-copy', other.reference)
      const target = { url: stage.registry.url, repository: EXCUSED_REPOSITORY }
      const { digest } = await pushImage(target, { text: 'something else\n', tag: 'other' })
      const smuggled = await send('smuggled', `${legacy.reference}@${digest}`)
      const skipped = await send('lab', other.reference, SKIPPED_NAMESPACE)
      const isAsWritten = imagesOf(skipped.object)[0] === other.reference
      return [
        {
          sent: `Pod with ${legacy.reference}, unsigned, for which there is an exception`,
          admission: excused,
          checks: [admitted(excused), pinned(excused, legacy), sealCounts(excused)],
        },
        {
          sent: `Pod with ${other.reference}, unsigned, for which there is none`,
          admission: foreign,
          checks: [denied(foreign, /^Policy signed-images-excused failed: not signed by /)],
        },
        {
          sent: `Pod with ${legacy.reference}@${digest}, the digest of another image of the repository`,
          admission: smuggled,
          checks: [denied(smuggled, /^Policy signed-images-excused failed: not signed by /)],
        },
        {
          sent: `Pod with ${other.reference} in namespace ${SKIPPED_NAMESPACE}, where an exception is about the whole policy`,
          admission: skipped,
          checks: [admitted(skipped), { what: 'not pinned', holds: isAsWritten }],
        },
      ]
    },
  },
]
