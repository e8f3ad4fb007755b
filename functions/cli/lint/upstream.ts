import type { TextFile } from '#functions/files.ts'
import { objectsOf, placeOf, readDocuments, type SourceObject } from '#shared/policy/documents.ts'
import { POLICY_GROUP } from '#shared/policy/kinds.ts'
import { Faults, formatPath, isRecord, own, type Path } from '#shared/policy/shape.ts'
import type { PolicyFault } from '#shared/policy/types.ts'

/** A field that upstream takes and does not act upon, and what it does here. */
interface Field {
  /** `*` stands for every item of a list. */
  path: readonly string[]
  /** Undefined: nothing to say about this value. */
  says: (value: unknown) => string | undefined
}

const always = (message: string) => () => message

/** What image policies of Kyverno accept and nobody there enforces (image-validating-policy.md 1.2, 1.3, 5.4). */
const OF_POLICIES: readonly Field[] = [
  {
    path: ['metadata', 'annotations', 'pod-policies.kyverno.io/autogen-controllers'],
    says: always(
      'image policies ignore this annotation, in Kyverno as here: spec.autogen.podControllers.controllers is what counts',
    ),
  },
  {
    path: ['spec', 'attestors', '*', 'cosign', 'keyless', 'identities', '*', 'subjectExpression'],
    says: always(
      'Kyverno accepts this and checks nothing; here the certificate has to name what it gives, and nothing else will do',
    ),
  },
  {
    path: ['spec', 'attestors', '*', 'cosign', 'keyless', 'additionalExtensions'],
    says: always(
      'Kyverno accepts this and checks nothing; here every one of them has to be in the certificate',
    ),
  },
  {
    path: ['spec', 'validations', '*', 'reason'],
    says: always('no answer carries this, in Kyverno as here'),
  },
]

/** The same of exceptions from image policies (image-validating-policy.md 1.7). */
const OF_EXCEPTIONS: readonly Field[] = [
  {
    path: ['spec', 'images'],
    says: always(
      'Kyverno does not look at this for image policies and skips all of the policy; here only these images are exempt',
    ),
  },
  {
    path: ['spec', 'allowedValues'],
    says: always(
      'Kyverno does not look at this for image policies and skips all of the policy; here expressions read it as exceptions.allowedValues, and the policy is evaluated',
    ),
  },
  {
    path: ['spec', 'reportResult'],
    says: (value) =>
      value === 'pass'
        ? 'Kyverno reports a skip for image policies whatever this says; here it is a pass'
        : undefined,
  },
]

const IMAGE_POLICIES: readonly unknown[] = [
  'ImageValidatingPolicy',
  'NamespacedImageValidatingPolicy',
]

/** What an author who knows Kyverno should know about these files: fields nobody enforces there, and what they do here. */
export function upstreamNotes(files: readonly TextFile[]): PolicyFault[] {
  return files.flatMap(({ file, text }) =>
    readDocuments(text).documents.flatMap((document) =>
      // What is wrong with a document is for the loader to say.
      objectsOf(document, new Faults()).flatMap((object) =>
        notesOf(object).map(({ at, message }): PolicyFault => {
          const place = placeOf(document, { code: 'POLICY_NOTE', path: at, message, at: 'key' })
          return { code: 'POLICY_NOTE', file, ...place, path: formatPath(at), message }
        }),
      ),
    ),
  )
}

function notesOf({ value, path }: SourceObject): { at: Path; message: string }[] {
  const [group, version] = String(own(value, 'apiVersion')).split('/')
  if (group !== POLICY_GROUP) return []
  const kind = own(value, 'kind')
  const fields = fieldsOf(kind)
  const found = fields.flatMap((field) =>
    valuesAt(value, field.path, path).flatMap(({ at, found: each }) => {
      const message = field.says(each)
      return message === undefined ? [] : [{ at, message }]
    }),
  )
  const deprecated = fields.length > 0 && version === 'v1alpha1'
  if (!deprecated) return found
  const message = `${POLICY_GROUP}/v1alpha1 is deprecated, and ${POLICY_GROUP}/v1 means the same`
  return [{ at: [...path, 'apiVersion'], message }, ...found]
}

function fieldsOf(kind: unknown): readonly Field[] {
  if (kind === 'PolicyException') return OF_EXCEPTIONS
  return IMAGE_POLICIES.includes(kind) ? OF_POLICIES : []
}

/** Every value that a path with wildcards leads to; those that say nothing are left out. */
function valuesAt(
  value: unknown,
  steps: readonly string[],
  at: Path,
): { at: Path; found: unknown }[] {
  const [step, ...rest] = steps
  if (step === undefined) return saysNothing(value) ? [] : [{ at, found: value }]
  if (step === '*') {
    return Array.isArray(value)
      ? value.flatMap((item, index) => valuesAt(item, rest, [...at, index]))
      : []
  }
  return isRecord(value) && Object.hasOwn(value, step)
    ? valuesAt(value[step], rest, [...at, step])
    : []
}

function saysNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === null || value === '' || (isRecord(value) && Object.keys(value).length === 0)
}
