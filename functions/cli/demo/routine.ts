import { SUBJECT } from '#functions/local/sigstore/authority.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { type DemoImage, OTHER_WORKFLOW } from './images.ts'
import { labelsOf, pod, withLabel } from './pod.ts'
import {
  type Act,
  admitted,
  callOf,
  denied,
  offline,
  pinned,
  type Scenario,
  sealCounts,
  unsigned,
  unsignedByWorkflow,
} from './scenario.ts'

/** Where cosign 2 and cosign 3 put what goes with a signature. */
const WORKFLOW_SIGNATURES = [
  ['workflow', 'beside it under its tag'],
  ['workflow-bundle', 'with it in a bundle'],
] as const

/** An ordinary day: what is signed gets in, what is not stays out, and what a policy only reports is reported. */
export const ROUTINE: readonly Scenario[] = [
  {
    name: 'signed',
    title: 'A signed image is admitted, pinned to its digest',
    async run(stage) {
      const image = await stage.image('api', 'release')
      const admission = await stage.create(pod({ name: 'api', image: image.reference }))
      const sent = `Pod with ${image.reference}, signed with the release key in KMS`
      return [{ sent, admission, checks: [admitted(admission), pinned(admission, image)] }]
    },
  },
  {
    name: 'bundle',
    title: 'An image signed by a Sigstore bundle is admitted',
    async run(stage) {
      const image = await stage.image('bundled', 'release-bundle')
      const admission = await stage.create(pod({ name: 'bundled', image: image.reference }))
      const sent = `Pod with ${image.reference}, whose signature is a bundle among its referrers`
      return [{ sent, admission, checks: [admitted(admission), pinned(admission, image)] }]
    },
  },
  {
    name: 'keyless',
    title: 'An image signed by a workflow, without a key, is admitted',
    async run(stage) {
      const acts: Act[] = []
      for (const [by, where] of WORKFLOW_SIGNATURES) {
        const image = await stage.image(by, by)
        const object = pod({ name: by, image: image.reference })
        const admission = await stage.create(object, { policy: 'signed-images-keyless' })
        const sent = `Pod with ${image.reference}, signed by ${SUBJECT}; certificate and log entry are ${where}`
        acts.push({ sent, admission, checks: [admitted(admission), pinned(admission, image)] })
      }
      return acts
    },
  },
  {
    name: 'wrong-identity',
    title: 'An image signed by another workflow, or by a key, is denied',
    async run(stage) {
      const other = await stage.image('tested', 'other-workflow')
      const keyed = await stage.image('keyed', 'release')
      const submit = async (image: DemoImage, sent: string): Promise<Act> => {
        const object = pod({ name: 'foreign', image: image.reference })
        const admission = await stage.create(object, { policy: 'signed-images-keyless' })
        return { sent, admission, checks: [denied(admission, unsignedByWorkflow(image))] }
      }
      return [
        await submit(other, `Pod with ${other.reference}, signed by ${OTHER_WORKFLOW}`),
        await submit(keyed, `Pod with ${keyed.reference}, signed with the release key alone`),
      ]
    },
  },
  {
    name: 'sealed',
    title: 'Under a covering seal, validate asks nobody',
    async run(stage) {
      const image = await stage.image('sealed', 'release')
      // The first request of the hour derives the sealing key in both functions.
      await stage.create(pod({ name: 'first', image: image.reference }))
      const admission = await stage.create(pod({ name: 'second', image: image.reference }))
      const sent = `another Pod with ${image.reference}, now that both functions are warm`
      return [{ sent, admission, checks: [admitted(admission), offline(admission, 'validate')] }]
    },
  },
  {
    name: 'generated-name',
    title: 'A name that is made up between the phases does not break the seal',
    async run(stage) {
      const image = await stage.image('generated', 'release')
      const admission = await stage.create(pod({ name: 'generated-', image: image.reference }))
      const sent = `Pod with ${image.reference} and generateName: generated-`
      const names = [callOf(admission, 'mutate'), callOf(admission, 'validate')].map(
        (call) => call?.request.name,
      )
      const madeUp = names[0] === undefined && /^generated-[a-z0-9]{5}$/.test(names[1] ?? '')
      const checks = [
        admitted(admission),
        { what: 'only validate knows the name', holds: madeUp },
        sealCounts(admission),
      ]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'reinvoked',
    title: 'Mutate called again on its own output changes nothing',
    async run(stage) {
      const image = await stage.image('reinvoked', 'release')
      const object = pod({ name: 'reinvoked', image: image.reference })
      const addLabel = (before: JsonObject) => withLabel(before, 'mesh', 'on')
      const admission = await stage.create(object, { reinvocation: 'IfNeeded', later: [addLabel] })
      const again = callOf(admission, 'reinvoke')
      const sent = `Pod with ${image.reference}; a later webhook adds a label, so mutate runs a second time`
      const checks = [
        admitted(admission),
        pinned(admission, image),
        { what: 'the second run patches nothing', holds: again?.patch.length === 0 },
        { what: 'the label is kept', holds: labelsOf(admission.object).mesh === 'on' },
      ]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'unsigned',
    title: 'An unsigned image is denied',
    async run(stage) {
      const image = await stage.image('unsigned', 'nobody')
      const admission = await stage.create(pod({ name: 'unsigned', image: image.reference }))
      const sent = `Pod with ${image.reference}, which nobody signed`
      return [{ sent, admission, checks: [denied(admission, unsigned(image))] }]
    },
  },
  {
    name: 'wrong-key',
    title: 'An image signed with another key is denied',
    async run(stage) {
      const image = await stage.image('foreign', 'other-key')
      const admission = await stage.create(pod({ name: 'foreign', image: image.reference }))
      const sent = `Pod with ${image.reference}, signed, but not with the release key`
      return [{ sent, admission, checks: [denied(admission, unsigned(image))] }]
    },
  },
  {
    name: 'audit',
    title: 'Under an Audit policy the image is admitted and the audit log says what is wrong',
    async run(stage) {
      const image = await stage.image('audited', 'nobody')
      const object = pod({ name: 'audited', image: image.reference })
      const admission = await stage.create(object, { policy: 'signed-images-audit' })
      const sent = `Pod with unsigned ${image.reference}, to the policy with validationActions: [Audit]`
      const entries = Object.values(admission.auditAnnotations)
      const audited = entries.some((text) => text.includes('not signed by the release key'))
      const checks = [admitted(admission), { what: 'the audit log says why', holds: audited }]
      return [{ sent, admission, checks }]
    },
  },
  {
    name: 'warn',
    title: 'Under a Warn policy the image is admitted with a warning',
    async run(stage) {
      const image = await stage.image('warned', 'nobody')
      const object = pod({ name: 'warned', image: image.reference })
      const admission = await stage.create(object, { policy: 'signed-images-warn' })
      const sent = `Pod with unsigned ${image.reference}, to the policy with validationActions: [Warn]`
      const warned = admission.warnings.some((text) =>
        text.includes('not signed by the release key'),
      )
      const checks = [admitted(admission), { what: 'the user is warned', holds: warned }]
      return [{ sent, admission, checks }]
    },
  },
]
