import { type Library, overload, string } from '../implementation.ts'

const ESCAPES: Readonly<Record<string, string>> = { '~': '~0', '/': '~1' }

/** `jsonpatch.escapeKey`: a key as one segment of a JSON pointer. */
export const jsonPatches: Library = {
  string_jsonpatch_escapeKey_string: overload('jsonpatch.escapeKey', [string], (key) =>
    key.replace(/[~/]/g, (character) => ESCAPES[character] ?? character),
  ),
}
