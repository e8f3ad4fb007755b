import { type DemoImage, pinnedReference } from './images.ts'
import { pod } from './pod.ts'
import { denied, type Scenario, within } from './scenario.ts'

/** More than enough for functions that do not wait for what does not answer, milliseconds. */
const SOON_MS = 3000

/** What happens when the outside world does not answer: a denial with the reason, before the API server gives up. */
export const OUTAGES: readonly Scenario[] = [
  {
    name: 'registry-down',
    title: 'While the registry is down, nothing unproven gets in',
    async run(stage) {
      const image = await stage.image('registry-down', 'release')
      const heal = stage.registry.faults.add({ kind: 'down' })
      const object = pod({ name: 'registry-down', image: pinnedReference(image) })
      const admission = await stage.create(object, { cold: true })
      heal()
      const sent = `Pod with ${pinnedReference(image)}, signed, while the registry cuts every connection`
      const checks = [
        denied(admission, couldNotVerify(image, /connection failed \([A-Z_]+\)$/)),
        within(admission, SOON_MS),
      ]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'kms-down',
    title: 'While KMS is down, nothing unproven gets in',
    async run(stage) {
      const image = await stage.image('kms-down', 'release')
      stage.kms.fail({ kind: 'down' })
      const object = pod({ name: 'kms-down', image: pinnedReference(image) })
      const admission = await stage.create(object, { cold: true })
      stage.kms.fail(undefined)
      const sent = `Pod with ${pinnedReference(image)}, signed, while KMS cuts every connection`
      const checks = [
        denied(
          admission,
          couldNotVerify(image, /KMS GetPublicKey of alias\/countersign-release .+$/),
        ),
        within(admission, SOON_MS),
      ]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'deadline',
    title: 'A registry that stalls is not waited for longer than the API server waits',
    async run(stage) {
      const image = await stage.image('deadline', 'release')
      const heal = stage.registry.faults.add({ kind: 'stall' })
      const object = pod({ name: 'deadline', image: pinnedReference(image) })
      const admission = await stage.create(object, { cold: true, timeoutSeconds: 2 })
      heal()
      const sent = `Pod with ${pinnedReference(image)}, signed, timeoutSeconds: 2, and a registry that never answers`
      const checks = [
        denied(admission, couldNotVerify(image, /not answered before the deadline$/)),
        within(admission, 2000),
      ]
      return [{ sent, admission, checks }]
    },
  },
]

/** The message about an image that nobody could be asked about. */
function couldNotVerify(image: DemoImage, why: RegExp): RegExp {
  return new RegExp(
    `^Policy signed-images error: .*could not verify image ${literal(pinnedReference(image))}, .*${why.source}`,
  )
}

function literal(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
