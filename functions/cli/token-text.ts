import { isDeepStrictEqual } from 'node:util'
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parse,
  stringify,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
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
  if (edited !== undefined && says(edited, yaml.document)) return edited
  const whole = { start: 0, end: 0, text: yaml.document.toString({ lineWidth: 0 }) }
  return brokenAs(yaml.text)(whole).text
}

function says(text: string, document: Document): boolean {
  try {
    return isDeepStrictEqual(parse(text), document.toJS())
  } catch {
    // An edit that did not fit is not used.
    return false
  }
}

/** Gives an edit the line breaks of the text it is for. */
function brokenAs(text: string): (edit: Edit) => Edit {
  const isWindows = text.includes('\r\n')
  return (edit) => (isWindows ? { ...edit, text: edit.text.replaceAll('\n', '\r\n') } : edit)
}

/** Edits that leave exactly these items in a cluster's list, or give it one. */
function newHashes(text: string, cluster: YAMLMap, hashes: readonly string[]): Edit[] | undefined {
  const list = cluster.get('tokens', true)
  if (!isSeq(list) || !list.range) return firstHashes(text, cluster, hashes)
  const [start, end] = list.range
  if (list.flow) return [{ start, end, text: flowOf(hashes) }]
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
    insertion(last.end, blockOf(indent, added)),
  ]
}

/** The edit that gives a cluster its list: where it has a key without one, or behind its name. */
function firstHashes(
  text: string,
  cluster: YAMLMap,
  hashes: readonly string[],
): Edit[] | undefined {
  const last = cluster.items.at(-1)
  if (cluster.flow) return last && [insertion(endOf(last), `, "tokens": ${flowOf(hashes)}`)]
  const own = pairOf(cluster, 'tokens')
  const name = pairOf(cluster, 'name')
  const at = own ?? name
  if (at === undefined || !isNode(at.key) || !at.key.range) return undefined
  const { start, end } = lineOf(text, at.key)
  const indent = ' '.repeat(at.key.range[0] - start)
  const key = own === undefined ? `${indent}tokens:\n` : ''
  return [insertion(end, `${key}${blockOf(`${indent}  `, hashes)}`)]
}

/** The edit that puts a cluster behind the last one, or a list of clusters into the file. */
function newCluster(yaml: YamlFile, name: string, hashes: readonly string[]): Edit[] | undefined {
  const { text, document } = yaml
  const clusters = document.get('clusters')
  if (!isSeq(clusters) || !clusters.range) return firstCluster(yaml, name, hashes)
  const [first] = clusters.items
  const last = clusters.items.at(-1)
  if (clusters.flow) {
    const cluster = `{ "name": ${JSON.stringify(name)}, "tokens": ${flowOf(hashes)} }`
    const [start, end] = clusters.range
    if (last === undefined) return [{ start, end, text: `[${cluster}]` }]
    return [insertion(isNode(last) ? (last.range?.[1] ?? end) : end, `, ${cluster}`)]
  }
  if (first === undefined || last === undefined) return undefined
  const { start } = lineOf(text, first)
  const indent = text.slice(start, text.indexOf('-', start))
  const at = endOfItem(text, lineOf(text, last).end, indent.length)
  return [insertion(at, `${breakBefore(text, at)}${clusterOf(indent, name, hashes)}`)]
}

function firstCluster(
  { text, document }: YamlFile,
  name: string,
  hashes: readonly string[],
): Edit[] | undefined {
  const root = document.contents
  if (!isMap(root) || root.flow) return undefined
  const cluster = clusterOf('  ', name, hashes)
  const own = pairOf(root, 'clusters')
  const at = own === undefined ? text.length : lineOf(text, own.key).end
  const key = own === undefined ? 'clusters:\n' : ''
  return [insertion(at, `${breakBefore(text, at)}${key}${cluster}`)]
}

function insertion(at: number, text: string): Edit {
  return { start: at, end: at, text }
}

function breakBefore(text: string, at: number): string {
  return at === 0 || text.slice(0, at).endsWith('\n') ? '' : '\n'
}

function pairOf(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => isScalar(key) && key.value === name)
}

/** Where a pair of a map on one line ends. */
function endOf({ key, value }: Pair): number {
  return [value, key].flatMap((node) => (isNode(node) && node.range ? [node.range[1]] : []))[0] ?? 0
}

function clusterOf(indent: string, name: string, hashes: readonly string[]): string {
  const head = `${indent}- name: ${stringify(name).trim()}\n${indent}  tokens:\n`
  return `${head}${blockOf(`${indent}    `, hashes)}`
}

function blockOf(indent: string, hashes: readonly string[]): string {
  return hashes.map((hash) => `${indent}- ${quoted(hash)}\n`).join('')
}

function flowOf(hashes: readonly string[]): string {
  return `[${hashes.map(quoted).join(', ')}]`
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
