import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { utf8 } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { readStatement, SIGN_PREDICATE } from '#shared/signature/statement.ts'

const HEX = 'a'.repeat(64)
const DIGEST = `sha256:${HEX}`
const subject = (annotations?: unknown) => ({ digest: { sha256: HEX }, annotations })
const statement = (changes: object = {}) => ({
  _type: 'https://in-toto.io/Statement/v1',
  predicateType: SIGN_PREDICATE,
  subject: [subject()],
  ...changes,
})
const read = (value: unknown, wanted: readonly string[] = [SIGN_PREDICATE]) =>
  readStatement(utf8(JSON.stringify(value)), DIGEST, wanted)

describe('what a statement says of an image', () => {
  test.each([
    { name: 'version 1', changes: {} },
    { name: 'version 0.1', changes: { _type: 'https://in-toto.io/Statement/v0.1' } },
  ])('$name: its type', ({ changes }) => {
    const { predicateType, annotations } = read(statement(changes))
    expect([predicateType, { ...annotations }]).toEqual([SIGN_PREDICATE, {}])
  })

  test('annotations of the subject that is the image, texts only', () => {
    const other = { digest: { sha256: 'b'.repeat(64) }, annotations: { stage: 'dev' } }
    const own = subject({ stage: 'ci', count: 1, list: ['x'], nothing: null })
    const { annotations } = read(statement({ subject: [other, own, subject({ stage: 'late' })] }))
    expect({ ...annotations }).toEqual({ stage: 'ci' })
  })

  test('annotations are no members of a prototype', () => {
    const text = JSON.stringify(statement({ subject: [subject()] })).replace(
      '"digest"',
      '"annotations":{"__proto__":"x","toString":"y"},"digest"',
    )
    const { annotations } = readStatement(utf8(text), DIGEST, [SIGN_PREDICATE])
    expect(Object.entries(annotations)).toEqual([
      ['__proto__', 'x'],
      ['toString', 'y'],
    ])
  })

  test.each([
    { name: 'another type', value: statement({ predicateType: 'https://x.test/a' }) },
    { name: 'no type', value: statement({ predicateType: undefined }) },
    { name: 'another document', value: statement({ _type: 'https://in-toto.io/Statement/v2' }) },
    { name: 'another image', value: statement({ subject: [{ digest: { sha256: 'b' } }] }) },
    { name: 'no image', value: statement({ subject: {} }) },
  ])('nothing, for $name', ({ value }) => {
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'SIGNATURE_MALFORMED' }))
  })

  test('nothing but its own fault comes of any bytes and of any JSON', () => {
    const faults = (run: () => unknown) => {
      try {
        run()
        return 'no error'
      } catch (thrown) {
        return thrown instanceof AdmissionError ? thrown.code : thrown
      }
    }
    const expected = ['no error', 'SIGNATURE_MALFORMED', 'JSON_INVALID']
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (annotations, list) => {
        const values = [
          list,
          statement({ subject: list }),
          statement({ subject: [subject(annotations)] }),
        ]
        for (const value of values) expect(expected).toContain(faults(() => read(value)))
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const run = () => readStatement(new Uint8Array(bytes), DIGEST, [SIGN_PREDICATE])
        expect(expected).toContain(faults(run))
      }),
    )
  })
})
