import { fromBase64, fromUtf8, toBase64, utf8 } from '../bytes.ts'
import { unreachable } from '../errors.ts'
import {
  copyJson,
  getOwn,
  isJsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from '../json.ts'
import { MAX_PATCH_COPY_BYTES } from '../limits.ts'
import {
  arrayIndex,
  type Container,
  inserted,
  locate,
  missing,
  patchInvalid,
  removed,
  valueAt,
  withMember,
} from './pointer.ts'
import type { JsonObject, JsonPatchOperation } from './types.ts'

/** The base64 of a JSON patch, as `response.patch` carries it. */
export function encodePatch(patch: readonly JsonPatchOperation[]): string {
  return toBase64(utf8(stringifyJson([...patch])))
}

/**
 * The operations of a base64 JSON patch. Throws `PATCH_INVALID` when it is not base64 of a JSON list of objects, which is all that
 * the API server checks before it applies a patch: an operation that makes no sense is for `applyPatch` to refuse.
 */
export function decodePatch(base64: string): JsonPatchOperation[] {
  const bytes = fromBase64(base64)
  if (bytes === undefined) throw patchInvalid('the patch is not base64')
  let value: JsonValue
  try {
    value = parseJson(fromUtf8(bytes))
  } catch (cause) {
    throw patchInvalid('the patch is not JSON', cause)
  }
  if (!Array.isArray(value) || !value.every(isJsonObject)) {
    throw patchInvalid('the patch is not a list of operations')
  }
  // `applyPatch` checks each operation when its turn comes, as the API server does.
  return value as JsonPatchOperation[]
}

/** `maxCopyBytes` bounds what all copy operations together may add. */
export interface PatchOptions {
  maxCopyBytes?: number
}

/**
 * The document with the operations applied in order; the input is left as it is and shares what did not change. Throws
 * `PATCH_INVALID` at the first operation that does not apply, with the API server's messages. It follows the library
 * the API server uses, also where that differs from RFC 6902 (specs/kubernetes-admission.md 2.11): negative array indices count from
 * the end, `replace` of a missing key sets it, `copy` of a missing key copies null, `test` of a missing key equals null.
 */
export function applyPatch(
  document: JsonObject,
  patch: readonly JsonPatchOperation[],
  options: PatchOptions = {},
): JsonObject {
  const budget: CopyBudget = { limit: options.maxCopyBytes ?? MAX_PATCH_COPY_BYTES, used: 0 }
  let current: Container = document
  for (const operation of patch) current = applyOperation(current, operation, budget)
  if (Array.isArray(current)) throw patchInvalid('the patched document is not an object')
  return current
}

interface CopyBudget {
  limit: number
  used: number
}

function applyOperation(
  document: Container,
  written: JsonPatchOperation,
  budget: CopyBudget,
): Container {
  const operation = checked(written)
  switch (operation.op) {
    case 'add':
      return add(document, operation.path, copyJson(operation.value))
    case 'remove':
      return remove(document, operation.path)
    case 'replace':
      return replace(document, operation.path, copyJson(operation.value))
    case 'test':
      test(document, operation.path, operation.value)
      return document
    case 'move':
      return move(document, operation.from, operation.path)
    case 'copy':
      return copy(document, operation.from, operation.path, budget)
    default:
      return unreachable(operation)
  }
}

/** The operation with every member of the right type; a missing `value` is null, as in the API server. */
function checked(written: { [key: string]: JsonValue }): JsonPatchOperation {
  const op = getOwn(written, 'op')
  const path = getOwn(written, 'path')
  const from = getOwn(written, 'from')
  const kind = typeof op === 'string' ? op : 'unknown'
  switch (kind) {
    case 'add':
    case 'replace':
    case 'test':
      if (typeof path !== 'string') throw missing(`${kind} operation failed to decode path`)
      return { op: kind, path, value: getOwn(written, 'value') ?? null }
    case 'remove':
      if (typeof path !== 'string') throw missing(`${kind} operation failed to decode path`)
      return { op: kind, path }
    case 'move':
    case 'copy':
      if (typeof from !== 'string') throw missing(`${kind} operation failed to decode from`)
      if (typeof path !== 'string') throw missing(`${kind} operation failed to decode path`)
      return { op: kind, from, path }
    default:
      throw patchInvalid(`Unexpected kind: ${kind}`)
  }
}

function add(document: Container, path: string, value: JsonValue): Container {
  const target = locate(document, path)
  if (target === undefined) {
    throw missing(`add operation does not apply: doc is missing path: "${path}"`)
  }
  return target.rebuild(inserted(target, value, `error in add for path: '${path}'`))
}

function remove(document: Container, path: string): Container {
  const target = locate(document, path)
  if (target === undefined) {
    throw missing(`remove operation does not apply: doc is missing path: "${path}"`)
  }
  return target.rebuild(removed(target, `error in remove for path: '${path}'`))
}

function replace(document: Container, path: string, value: JsonValue): Container {
  if (path === '') {
    if (Array.isArray(value) || isJsonObject(value)) return value
    throw patchInvalid('replace operation value must be object or array')
  }
  const target = locate(document, path)
  if (target === undefined) {
    throw missing(`replace operation does not apply: doc is missing path: ${path}`)
  }
  const { parent, key } = target
  if (!Array.isArray(parent)) return target.rebuild(withMember(parent, key, value))
  const index = arrayIndex(key, parent.length)
  if (typeof index !== 'number') {
    throw missing(`replace operation does not apply: doc is missing key: ${path}`)
  }
  return target.rebuild(parent.with(index, value))
}

function test(document: Container, path: string, expected: JsonValue): void {
  const target = path === '' ? undefined : locate(document, path)
  if (path !== '' && target === undefined) {
    throw missing(`test operation does not apply: is missing path: ${path}`)
  }
  const found =
    target === undefined ? document : valueAt(target, `error in test for path: '${path}'`)
  if (!isEqual(found ?? null, expected))
    throw patchInvalid(`testing value ${path} failed: test failed`)
}

function move(document: Container, from: string, path: string): Container {
  const source = locate(document, from)
  if (source === undefined) {
    throw missing(`move operation does not apply: doc is missing from path: ${from}`)
  }
  const doing = `error in move for path: '${source.key}'`
  const value = valueAt(source, doing) ?? null
  const without = source.rebuild(removed(source, doing))
  const target = locate(without, path)
  if (target === undefined) {
    throw missing(`move operation does not apply: doc is missing destination path: ${path}`)
  }
  return target.rebuild(inserted(target, value, `error in move for path: '${path}'`))
}

function copy(document: Container, from: string, path: string, budget: CopyBudget): Container {
  const source = locate(document, from)
  if (source === undefined) {
    throw missing(`copy operation does not apply: doc is missing from path: ${from}`)
  }
  const value = valueAt(source, `error in copy for from: '${from}'`) ?? null
  const target = locate(document, path)
  if (target === undefined) {
    throw missing(`copy operation does not apply: doc is missing destination path: ${path}`)
  }
  budget.used += value === null ? 0 : utf8(stringifyJson(value)).length
  if (budget.used > budget.limit) {
    throw patchInvalid(
      `Unable to complete the copy, the accumulated size increase of copy is ${budget.used}, exceeding the limit ${budget.limit}`,
    )
  }
  return target.rebuild(inserted(target, copyJson(value), 'error while adding value during copy'))
}

/** Deep equality of JSON values; the order of members does not count, `1` and `1.0` differ. */
function isEqual(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isEqual(item, b[index] ?? null))
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = Object.keys(a)
    return (
      keys.length === Object.keys(b).length &&
      keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key] ?? null, b[key] ?? null))
    )
  }
  if (typeof a === 'object' || typeof b === 'object') {
    return a !== null && b !== null ? stringifyJson(a) === stringifyJson(b) : a === b
  }
  return a === b
}
