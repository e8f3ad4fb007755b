import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { applyPatch, decodePatch, encodePatch } from '#shared/admission/patch.ts'
import { escapePointer, unescapePointer } from '#shared/admission/pointer.ts'
import type { JsonObject, JsonPatchOperation } from '#shared/admission/types.ts'
import {
  copyJson,
  getOwn,
  JsonDouble,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '#shared/json.ts'

const DOCUMENT: JsonObject = { a: { b: 1, 'c/d': 2, 'e~f': 3 }, list: ['x', 'y', 'z'], nil: null }

const add = (path: string, value: JsonValue): JsonPatchOperation => ({ op: 'add', path, value })
const replace = (path: string, value: JsonValue): JsonPatchOperation => ({
  op: 'replace',
  path,
  value,
})
const assume = (path: string, value: JsonValue): JsonPatchOperation => ({ op: 'test', path, value })
const remove = (path: string): JsonPatchOperation => ({ op: 'remove', path })
const move = (from: string, path: string): JsonPatchOperation => ({ op: 'move', from, path })
const copy = (from: string, path: string): JsonPatchOperation => ({ op: 'copy', from, path })

describe('applyPatch', () => {
  test.each<{ name: string; patch: JsonPatchOperation[]; result: JsonObject }>([
    {
      name: 'add sets a member',
      patch: [add('/a/n', 9)],
      result: { ...DOCUMENT, a: { b: 1, 'c/d': 2, 'e~f': 3, n: 9 } },
    },
    { name: 'add overwrites a member', patch: [add('/a', 9)], result: { ...DOCUMENT, a: 9 } },
    {
      name: 'add inserts before an index',
      patch: [add('/list/1', 'n')],
      result: { ...DOCUMENT, list: ['x', 'n', 'y', 'z'] },
    },
    {
      name: 'add at the length appends',
      patch: [add('/list/3', 'n')],
      result: { ...DOCUMENT, list: ['x', 'y', 'z', 'n'] },
    },
    {
      name: 'add at - appends',
      patch: [add('/list/-', 'n')],
      result: { ...DOCUMENT, list: ['x', 'y', 'z', 'n'] },
    },
    {
      name: 'add at -1 appends too: it counts from the end of the grown array',
      patch: [add('/list/-1', 'n')],
      result: { ...DOCUMENT, list: ['x', 'y', 'z', 'n'] },
    },
    {
      name: 'add at -4 prepends',
      patch: [add('/list/-4', 'n')],
      result: { ...DOCUMENT, list: ['n', 'x', 'y', 'z'] },
    },
    {
      name: 'what is before the first slash is ignored',
      patch: [add('anything/a', 9)],
      result: { ...DOCUMENT, a: 9 },
    },
    { name: 'an empty key is a key', patch: [add('/', 9)], result: { ...DOCUMENT, '': 9 } },
    {
      name: 'escapes of a key are decoded',
      patch: [remove('/a/c~1d'), remove('/a/e~0f')],
      result: { ...DOCUMENT, a: { b: 1 } },
    },
    {
      name: 'remove takes an index from the end',
      patch: [remove('/list/-1')],
      result: { ...DOCUMENT, list: ['x', 'y'] },
    },
    {
      name: 'replace of a missing member sets it',
      patch: [replace('/new', 9)],
      result: { ...DOCUMENT, new: 9 },
    },
    {
      name: 'replace of an element',
      patch: [replace('/list/-3', 'n')],
      result: { ...DOCUMENT, list: ['n', 'y', 'z'] },
    },
    { name: 'replace of the document', patch: [replace('', { new: true })], result: { new: true } },
    {
      name: 'move renames',
      patch: [move('/a/b', '/b')],
      result: { ...DOCUMENT, a: { 'c/d': 2, 'e~f': 3 }, b: 1 },
    },
    {
      name: 'move inside a list takes out first',
      patch: [move('/list/0', '/list/2')],
      result: { ...DOCUMENT, list: ['y', 'z', 'x'] },
    },
    {
      name: 'copy copies',
      patch: [copy('/list', '/again')],
      result: { ...DOCUMENT, again: ['x', 'y', 'z'] },
    },
    {
      name: 'copy of a missing member copies null',
      patch: [copy('/missing', '/again')],
      result: { ...DOCUMENT, again: null },
    },
    {
      name: 'test of equal values passes whatever their order',
      patch: [assume('/a', { 'e~f': 3, 'c/d': 2, b: 1 })],
      result: DOCUMENT,
    },
    {
      name: 'test of a missing member equals null',
      patch: [assume('/missing', null)],
      result: DOCUMENT,
    },
    {
      name: 'operations see the ones before them',
      patch: [add('/n', {}), add('/n/m', []), add('/n/m/-', 1)],
      result: { ...DOCUMENT, n: { m: [1] } },
    },
  ])('$name', ({ patch, result }) => {
    expect(applyPatch(DOCUMENT, patch)).toEqual(result)
  })

  test.each<{ name: string; patch: JsonValue[]; message: string }>([
    {
      name: 'add below something missing',
      patch: [add('/x/y', 1)],
      message: 'add operation does not apply: doc is missing path: "/x/y": missing value',
    },
    {
      name: 'add below null',
      patch: [add('/nil/y', 1)],
      message: 'add operation does not apply: doc is missing path: "/nil/y": missing value',
    },
    {
      name: 'add below a string',
      patch: [add('/list/0/y', 1)],
      message: 'add operation does not apply: doc is missing path: "/list/0/y": missing value',
    },
    {
      name: 'add to the document',
      patch: [add('', {})],
      message: 'add operation does not apply: doc is missing path: "": missing value',
    },
    {
      name: 'add past the end',
      patch: [add('/list/4', 1)],
      message:
        "error in add for path: '/list/4': Unable to access invalid index: 4: invalid index referenced",
    },
    {
      name: 'add before the beginning',
      patch: [add('/list/-5', 1)],
      message:
        "error in add for path: '/list/-5': Unable to access invalid index: -5: invalid index referenced",
    },
    {
      name: 'add at a name',
      patch: [add('/list/k', 1)],
      message: `error in add for path: '/list/k': value was not a proper array index: 'k': strconv.Atoi: parsing "k": invalid syntax`,
    },
    {
      name: 'remove below something missing',
      patch: [remove('/x/y')],
      message: 'remove operation does not apply: doc is missing path: "/x/y": missing value',
    },
    {
      name: 'remove of a missing member',
      patch: [remove('/x')],
      message: "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
    },
    {
      name: 'remove past the end',
      patch: [remove('/list/3')],
      message:
        "error in remove for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
    },
    {
      name: 'replace below something missing',
      patch: [replace('/x/y', 1)],
      message: 'replace operation does not apply: doc is missing path: /x/y: missing value',
    },
    {
      name: 'replace past the end',
      patch: [replace('/list/3', 1)],
      message: 'replace operation does not apply: doc is missing key: /list/3: missing value',
    },
    {
      name: 'replace of the document by a number',
      patch: [replace('', 1)],
      message: 'replace operation value must be object or array',
    },
    {
      name: 'move of a missing member',
      patch: [move('/a/x', '/y')],
      message: "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
    },
    {
      name: 'move to nowhere',
      patch: [move('/a/b', '/x/y')],
      message:
        'move operation does not apply: doc is missing destination path: /x/y: missing value',
    },
    {
      name: 'move into what was moved',
      patch: [move('/a', '/a/b')],
      message:
        'move operation does not apply: doc is missing destination path: /a/b: missing value',
    },
    {
      name: 'copy from nowhere',
      patch: [copy('/x/y', '/z')],
      message: 'copy operation does not apply: doc is missing from path: /x/y: missing value',
    },
    {
      name: 'test of another value',
      patch: [assume('/a/b', 2)],
      message: 'testing value /a/b failed: test failed',
    },
    {
      name: 'test of null where there is a value',
      patch: [assume('/a/b', null)],
      message: 'testing value /a/b failed: test failed',
    },
    {
      name: 'test of an absent member inside',
      patch: [assume('/a', { b: 1, 'c/d': 2, 'e~f': 3, x: null })],
      message: 'testing value /a failed: test failed',
    },
    {
      name: 'test of 1.0 where there is 1',
      patch: [assume('/a/b', new JsonDouble(1))],
      message: 'testing value /a/b failed: test failed',
    },
    {
      name: 'test below something missing',
      patch: [assume('/x/y', 1)],
      message: 'test operation does not apply: is missing path: /x/y: missing value',
    },
    {
      name: 'test at a bad index',
      patch: [assume('/list/9', 1)],
      message:
        "error in test for path: '/list/9': Unable to access invalid index: 9: invalid index referenced",
    },
    {
      name: 'an unknown operation',
      patch: [{ op: 'merge', path: '/a' }],
      message: 'Unexpected kind: merge',
    },
    { name: 'no operation', patch: [{ path: '/a' }], message: 'Unexpected kind: unknown' },
    {
      name: 'no path',
      patch: [{ op: 'add', value: 1 }],
      message: 'add operation failed to decode path: missing value',
    },
    {
      name: 'no from',
      patch: [{ op: 'move', path: '/a' }],
      message: 'move operation failed to decode from: missing value',
    },
  ])('refuses $name', ({ patch, message }) => {
    const before = copyJson(DOCUMENT)
    const run = () => applyPatch(DOCUMENT, [add('/first', 1), ...(patch as JsonPatchOperation[])])
    expect(run).toThrow(expect.objectContaining({ code: 'PATCH_INVALID', message }))
    expect(DOCUMENT).toEqual(before)
  })

  test('a missing value adds null', () => {
    const patch = decodePatch(btoa('[{"op":"add","path":"/x"}]'))
    expect(applyPatch({}, patch)).toEqual({ x: null })
  })

  test('leaves its input alone and shares what did not change', () => {
    const before = copyJson(DOCUMENT)
    const value: JsonObject = { deep: [1] }
    const after = applyPatch(DOCUMENT, [
      add('/a/b', value),
      add('/list/-', 'n'),
      add('/a/b/deep/-', 2),
    ])
    expect(DOCUMENT).toEqual(before)
    expect(value).toEqual({ deep: [1] })
    expect(applyPatch(DOCUMENT, [replace('/nil', 1)]).a).toBe(DOCUMENT.a)
    expect(after).toMatchObject({ a: { b: { deep: [1, 2] } } })
  })

  test('a path through __proto__ reaches own members only', () => {
    const patched = applyPatch({}, [add('/__proto__', { admin: true }), add('/__proto__/x', 1)])
    expect(getOwn(patched, '__proto__')).toEqual({ admin: true, x: 1 })
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
    expect(() => applyPatch({}, [add('/__proto__/polluted', 1)])).toThrow('doc is missing path')
    expect(() => applyPatch({}, [add('/constructor/prototype/x', 1)])).toThrow('missing path')
    expect(
      stringifyJson(
        applyPatch(parseJson('{"__proto__":1,"a":2}') as JsonObject, [remove('/__proto__')]),
      ),
    ).toBe('{"a":2}')
  })

  test('copies do not grow without bound', () => {
    const document: JsonObject = { a: ['x'.repeat(1000)] }
    const patch = Array.from({ length: 20 }, () => copy('/a', '/a/-'))
    expect(() => applyPatch(document, patch, { maxCopyBytes: 10_000 })).toThrow(
      /^Unable to complete the copy, the accumulated size increase of copy is \d+, exceeding the limit 10000$/,
    )
  })
})

describe('encodePatch and decodePatch', () => {
  test('one undoes the other', () => {
    const patch = [
      add('/a~1b', { ü: [1, new JsonDouble(1), 2n ** 60n] }),
      remove('/c'),
      move('/d', '/e'),
    ]
    expect(decodePatch(encodePatch(patch))).toStrictEqual(patch)
  })

  test.each([
    { name: 'not base64', text: '!!!' },
    { name: 'not UTF-8', text: btoa('\u00ff\u00fe') },
    { name: 'not JSON', text: btoa('[{') },
    { name: 'not a list', text: btoa('null') },
    { name: 'a list of numbers', text: btoa('[1]') },
  ])('refuses what is $name', ({ text }) => {
    expect(() => decodePatch(text)).toThrow(expect.objectContaining({ code: 'PATCH_INVALID' }))
  })
})

describe('pointers', () => {
  test('unescaping undoes escaping', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('~', '/', '0', '1', 'a') }), (segment) => {
        expect(unescapePointer(escapePointer(segment))).toBe(segment)
        expect(applyPatch({}, [add(`/${escapePointer(segment)}`, 1)])).toEqual({ [segment]: 1 })
      }),
    )
  })
})
