import { type Document, isAlias, visit, type YAMLParseError } from 'yaml'

/** What is wrong with a text as YAML, and where: an offset in it. */
export interface YamlFault {
  offset: number
  message: string
}

/** Mistakes whose texts are for programmers, in words for whoever wrote the file. */
const FIXES: { readonly [Code in YAMLParseError['code']]?: string } = {
  DUPLICATE_KEY: 'this key stands here twice: keep one',
  MULTIPLE_DOCS: 'a second document begins here: a config is one',
  TAB_AS_INDENT: 'a tab indents this line: use spaces',
}

/** Everything that keeps a document from being read, aliases without an anchor included. */
export function yamlFaults(document: Document): YamlFault[] {
  const faults = document.errors.map(({ code, pos, message }) => ({
    offset: pos[0],
    message: FIXES[code] ?? message,
  }))
  if (faults.length > 0) return faults
  visit(document, {
    Alias: (_, alias) => {
      if (isAlias(alias) && alias.resolve(document) === undefined) {
        const message = 'there is no anchor of this name above'
        faults.push({ offset: alias.range?.[0] ?? 0, message })
      }
    },
  })
  return faults
}
