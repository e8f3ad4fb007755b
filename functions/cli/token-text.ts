import { isDeepStrictEqual } from 'node:util'
import { isNode, isSeq, type Node, parse, stringify, type YAMLMap, type YAMLSeq } from 'yaml'
import type { YamlFile } from '#functions/files.ts'

/** One replacement in a text. */
interface Edit {
  start: number
  end: number
  text: string
}

/**
 * The file's text with these token hashes for a cluster and every other byte as it was: an operator's comments, indentation and
 * quotes are not ours to change. Where the file is written in a way that cannot be edited in place, the whole document
 * is written anew, comments kept. `cluster` is its node, or the name of one to add.
 */
export function textWithHashes(
  yaml: YamlFile,
  cluster: YAMLMap | string,
  hashes: readonly string[],
): string {
  const edits =
    typeof cluster === 'string'
      ? newCluster(yaml, cluster, hashes)
      : newHashes(yaml.text, cluster, hashes)
  const edited = edits && applied(yaml.text, edits.map(brokenAs(yaml.text)))
  if (typeof cluster === 'string') addCluster(yaml, cluster, hashes)
  else cluster.set('tokens', keptAndNew(yaml, cluster, hashes))
  const isRight = edited !== undefined && isDeepStrictEqual(parse(edited), yaml.document.toJS())
  if (isRight) return edited
  const whole = { start: 0, end: 0, text: yaml.document.toString({ lineWidth: 0 }) }
  return brokenAs(yaml.text)(whole).text
}

/** Gives an edit the line breaks of the text it is for. */
function brokenAs(text: string): (edit: Edit) => Edit {
  const isWindows = text.includes('\r\n')
  return (edit) => (isWindows ? { ...edit, text: edit.text.replaceAll('\n', '\r\n') } : edit)
}

/** Edits that leave exactly these items in a cluster's list; undefined when it has no list. */
function newHashes(text: string, cluster: YAMLMap, hashes: readonly string[]): Edit[] | undefined {
  const list = cluster.get('tokens')
  if (!isSeq(list) || !list.range) return undefined
  const [start, end] = list.range
  if (list.flow) return [{ start, end, text: `[${hashes.map(quoted).join(', ')}]` }]
  const current = valuesOf(list)
  const lines = list.items.map((item) => lineOf(text, item))
  const [first] = lines
  const last = lines.at(-1)
  if (first === undefined || last === undefined) return undefined
  const indent = text.slice(first.start, text.indexOf('-', first.start))
  const added = hashes.filter((hash) => !current.includes(hash))
  return [
    ...lines
      .filter((_, index) => !hashes.includes(current[index] ?? ''))
      .map((line) => ({ ...line, text: '' })),
    {
      start: last.end,
      end: last.end,
      text: added.map((hash) => `${indent}- ${quoted(hash)}\n`).join(''),
    },
  ]
}

/** The edit that puts a cluster behind the last one; undefined when there is no list of clusters to put it into. */
function newCluster(yaml: YamlFile, name: string, hashes: readonly string[]): Edit[] | undefined {
  const { text, document } = yaml
  const clusters = document.get('clusters')
  const [first] = isSeq(clusters) && !clusters.flow ? clusters.items : []
  const last = isSeq(clusters) ? clusters.items.at(-1) : undefined
  if (first === undefined || last === undefined) return undefined
  const { start } = lineOf(text, first)
  const indent = text.slice(start, text.indexOf('-', start))
  const at = endOfItem(text, lineOf(text, last).end, indent.length)
  const lines = [
    `${indent}- name: ${stringify(name).trim()}`,
    `${indent}  tokens:`,
    ...hashes.map((hash) => `${indent}    - ${quoted(hash)}`),
  ]
  const separator = text.slice(0, at).endsWith('\n') ? '' : '\n'
  return [{ start: at, end: at, text: `${separator}${lines.join('\n')}\n` }]
}

/** The end of an item whose value ends at `end`: comments that are indented like its content belong to it. */
function endOfItem(text: string, end: number, dashIndent: number): number {
  let at = end
  for (let line = end; line < text.length; ) {
    const next = text.indexOf('\n', line) + 1 || text.length
    const [, spaces = '', rest = ''] = /^( *)(.*)$/m.exec(text.slice(line, next)) ?? []
    if (rest !== '' && !(rest.startsWith('#') && spaces.length > dashIndent)) break
    if (rest !== '') at = next
    line = next
  }
  return at
}

/** The whole lines a node stands on, the line break included. */
function lineOf(text: string, node: unknown): { start: number; end: number } {
  const [from = 0, to = 0] = (isNode(node) && node.range) || []
  // A block collection's range reaches to the next token, so the white space behind it is not its own.
  const last = text.slice(0, to).trimEnd().length
  const newline = text.indexOf('\n', last)
  return {
    start: text.lastIndexOf('\n', from - 1) + 1,
    end: newline < 0 ? text.length : newline + 1,
  }
}

function applied(text: string, edits: readonly Edit[]): string {
  const fromTheEnd = edits.toSorted((a, b) => b.start - a.start)
  return fromTheEnd.reduce(
    (out, edit) => out.slice(0, edit.start) + edit.text + out.slice(edit.end),
    text,
  )
}

function quoted(hash: string): string {
  return `"${hash}"`
}

function valuesOf(list: YAMLSeq): string[] {
  // toJSON of a sequence is an array.
  return (list.toJSON() as unknown[]).map(String)
}

function addCluster({ document }: YamlFile, name: string, hashes: readonly string[]): void {
  const cluster = document.createNode({ name, tokens: hashes })
  const clusters = document.get('clusters')
  if (isSeq(clusters)) clusters.add(cluster)
  else document.set('clusters', document.createNode([cluster]))
}

/** The list of a cluster with these values; the nodes (and comments) of those that stay are kept. */
function keptAndNew({ document }: YamlFile, cluster: YAMLMap, hashes: readonly string[]): Node {
  const list = cluster.get('tokens')
  if (!isSeq(list)) return document.createNode(hashes)
  const current = valuesOf(list)
  list.items = list.items.filter((_, index) => hashes.includes(current[index] ?? ''))
  for (const hash of hashes) if (!current.includes(hash)) list.add(hash)
  return list
}
