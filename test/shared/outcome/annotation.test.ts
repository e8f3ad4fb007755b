import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { applyPatch } from '#shared/admission/patch.ts'
import type { JsonObject, JsonPatchOperation } from '#shared/admission/types.ts'
import type { JsonValue } from '#shared/json.ts'
import {
  annotationOf,
  annotationPatch,
  hasAnnotations,
  OUTCOMES_ANNOTATION,
  type OutcomeAnnotations,
  SEAL_ANNOTATION,
} from '#shared/outcome/annotation.ts'

const OUTCOMES_PATH = '/metadata/annotations/kyverno.io~1image-verification-outcomes'
const SEAL_PATH = '/metadata/annotations/countersign.dev~1seal'
const CREATE: JsonPatchOperation = { op: 'add', path: '/metadata/annotations', value: {} }

const pod = (metadata: JsonValue): JsonObject => ({ kind: 'Pod', metadata })
const annotated = (annotations: JsonValue) => pod({ name: 'web', annotations })

describe('annotationPatch', () => {
  test.each<{
    name: string
    object: JsonObject | null
    values: OutcomeAnnotations
    patch: JsonPatchOperation[]
  }>([
    {
      name: 'annotations that are absent are created',
      object: pod({ name: 'web' }),
      values: { outcomes: '{}', seal: 'v1' },
      patch: [
        CREATE,
        { op: 'add', path: OUTCOMES_PATH, value: '{}' },
        { op: 'add', path: SEAL_PATH, value: 'v1' },
      ],
    },
    {
      name: 'annotations that are null are created',
      object: annotated(null),
      values: { seal: 'v1' },
      patch: [CREATE, { op: 'add', path: SEAL_PATH, value: 'v1' }],
    },
    {
      name: 'annotations that are there stay',
      object: annotated({ mine: 'x' }),
      values: { seal: 'v1' },
      patch: [{ op: 'add', path: SEAL_PATH, value: 'v1' }],
    },
    {
      name: 'empty annotations stay',
      object: annotated({}),
      values: { seal: 'v1' },
      patch: [{ op: 'add', path: SEAL_PATH, value: 'v1' }],
    },
    {
      name: 'what came in is overwritten',
      object: annotated({
        [OUTCOMES_ANNOTATION]: '{"release":{"status":"pass"}}',
        [SEAL_ANNOTATION]: 'v1.forged',
      }),
      values: { outcomes: '{}', seal: 'v1' },
      patch: [
        { op: 'replace', path: OUTCOMES_PATH, value: '{}' },
        { op: 'replace', path: SEAL_PATH, value: 'v1' },
      ],
    },
    {
      name: 'what came in is removed when there is nothing to write',
      object: annotated({ [OUTCOMES_ANNOTATION]: 'old', [SEAL_ANNOTATION]: 'v1.forged' }),
      values: {},
      patch: [
        { op: 'remove', path: OUTCOMES_PATH },
        { op: 'remove', path: SEAL_PATH },
      ],
    },
    {
      name: 'what is right already stays',
      object: annotated({ [OUTCOMES_ANNOTATION]: '{}', [SEAL_ANNOTATION]: 'v1' }),
      values: { outcomes: '{}', seal: 'v1' },
      patch: [],
    },
    {
      name: 'nothing to write, nothing there, nothing created',
      object: pod({ name: 'web' }),
      values: {},
      patch: [],
    },
    {
      name: 'no object, no patch',
      object: null,
      values: { outcomes: '{}', seal: 'v1' },
      patch: [],
    },
    {
      name: 'an object without metadata gets it',
      object: { kind: 'Thing' },
      values: { seal: 'v1' },
      patch: [
        { op: 'add', path: '/metadata', value: {} },
        CREATE,
        { op: 'add', path: SEAL_PATH, value: 'v1' },
      ],
    },
    {
      name: 'annotations of another type are replaced',
      object: annotated(['x']),
      values: { seal: 'v1' },
      patch: [CREATE, { op: 'add', path: SEAL_PATH, value: 'v1' }],
    },
    {
      name: 'an inherited annotation is not there',
      object: annotated(Object.create({ [SEAL_ANNOTATION]: 'v1' }) as JsonObject),
      values: {},
      patch: [],
    },
  ])('$name', ({ object, values, patch }) => {
    expect(annotationPatch(object, values)).toEqual(patch)
  })

  test.each<{ name: string; mine: number; seal: number; outcomes: number; written: string[] }>([
    {
      name: 'everything fits',
      mine: 100,
      seal: 100,
      outcomes: 100,
      written: ['mine', OUTCOMES_ANNOTATION, SEAL_ANNOTATION],
    },
    {
      name: 'the record goes first',
      mine: 250 * 1024,
      seal: 5000,
      outcomes: 5000,
      written: ['mine', SEAL_ANNOTATION],
    },
    {
      name: 'a seal that does not fit is not written',
      mine: 262_000,
      seal: 5000,
      outcomes: 20,
      written: ['mine', OUTCOMES_ANNOTATION],
    },
    {
      name: 'nothing fits, and what came in is removed',
      mine: 262_140,
      seal: 10,
      outcomes: 10,
      written: ['mine'],
    },
  ])('stays below the limit of the API server: $name', ({ mine, seal, outcomes, written }) => {
    const object = annotated({
      mine: 'x'.repeat(mine),
      [SEAL_ANNOTATION]: '',
      [OUTCOMES_ANNOTATION]: '',
    })
    const values = { seal: 's'.repeat(seal), outcomes: 'o'.repeat(outcomes) }
    const patched = applyPatch(object, annotationPatch(object, values))
    const { annotations } = patched.metadata as { annotations: { [key: string]: string } }
    expect(Object.keys(annotations).sort()).toEqual([...written].sort())
    const bytes = Object.entries(annotations).reduce((sum, [k, v]) => sum + k.length + v.length, 0)
    expect(bytes).toBeLessThanOrEqual(256 * 1024)
  })

  test('afterwards the object has exactly these values, other annotations as they were, and a second patch is empty', () => {
    const text = fc.string({ maxLength: 5 })
    const annotations = fc.dictionary(
      fc.oneof(text, fc.constantFrom(OUTCOMES_ANNOTATION, SEAL_ANNOTATION)),
      text,
      { noNullPrototype: true },
    )
    const metadata = fc.oneof(
      fc.constant({}),
      fc.constant({ annotations: null }),
      annotations.map((a) => ({ annotations: a })),
    )
    const value = fc.option(text, { nil: undefined })
    fc.assert(
      fc.property(metadata, fc.record({ outcomes: value, seal: value }), (meta, values) => {
        const before = pod(meta)
        const after = applyPatch(before, annotationPatch(before, values))
        expect(annotationOf(after, OUTCOMES_ANNOTATION)).toBe(values.outcomes)
        expect(annotationOf(after, SEAL_ANNOTATION)).toBe(values.seal)
        const others = (object: JsonObject) => {
          const all = (object.metadata as JsonObject).annotations ?? {}
          const { [OUTCOMES_ANNOTATION]: _, [SEAL_ANNOTATION]: __, ...rest } = all as JsonObject
          return rest
        }
        expect(others(after)).toEqual(others(before))
        expect(annotationPatch(after, values)).toEqual([])
      }),
    )
  })
})

describe('hasAnnotations', () => {
  test.each([
    { name: 'no object', object: null, has: false },
    { name: 'no metadata', object: {}, has: false },
    { name: 'null annotations', object: annotated(null), has: false },
    { name: 'empty annotations', object: annotated({}), has: false },
    { name: 'any annotation', object: annotated({ a: '' }), has: true },
  ])('$name: $has', ({ object, has }) => {
    expect(hasAnnotations(object)).toBe(has)
  })
})
