import { foldings } from './fold.ts'
import { normalise, type Ranges } from './ranges.ts'
import { refuse, TOO_LARGE } from './syntax.ts'

/** A parsed pattern. `runes` are the characters of a literal, the ranges of a class. */
export type Node = Measure &
  (
    | { op: 'literal'; runes: number[]; fold: boolean }
    | { op: 'class'; runes: Ranges }
    | { op: 'assert'; bits: number }
    | { op: 'capture'; group: number; sub: Node }
    // No `max` is -1.
    | { op: 'repeat'; sub: Node; min: number; max: number; lazy: boolean }
    | { op: 'concat'; subs: readonly Node[] }
    | { op: 'alternate'; subs: readonly Node[] }
  )

interface Measure {
  /** Nodes from here to the deepest. */
  height: number
  /** Instructions it becomes. */
  size: number
  /** True when it can match nothing at all. */
  nullable: boolean
}

/** Deepest nesting of a pattern, in nodes: Go's. Whoever walks over one may recurse. */
const MAX_HEIGHT = 1000
/** Most instructions of a pattern: Go's, which is 128 MB of its own. */
const MAX_SIZE = (128 << 20) / 40
/** Most numbers in all classes of a pattern: 8 MB. Go takes thirty-two times as many; an isolate has 128 MB for everything. */
const MAX_CLASS_NUMBERS = 1 << 20
/** Most copies of something that repetitions within each other may ask for. */
const MAX_COPIES = 1000

/** Makes the nodes of one pattern, and refuses it when they become too many. */
export class NodeFactory {
  readonly #pattern: string
  #classNumbers = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  literal(runes: number[], fold: boolean): Node {
    return this.#measured({
      op: 'literal',
      runes,
      fold,
      height: 1,
      size: runes.length,
      nullable: false,
    })
  }

  class(runes: Ranges): Node {
    if (runes.length === 2 && runes[0] === runes[1]) return this.literal([runes[0] ?? 0], false)
    this.#classNumbers += runes.length
    return this.#measured({ op: 'class', runes, height: 1, size: 1, nullable: false })
  }

  assert(bits: number): Node {
    return { op: 'assert', bits, height: 1, size: 1, nullable: true }
  }

  capture(group: number, sub: Node): Node {
    const { height, size, nullable } = sub
    return this.#measured({
      op: 'capture',
      group,
      sub,
      height: height + 1,
      size: size + 2,
      nullable,
    })
  }

  repeat(sub: Node, min: number, max: number, lazy: boolean): Node {
    const height = sub.height + 1
    const nullable = min === 0 || sub.nullable
    const copies = max < 0 ? Math.max(min, 1) : max
    const size = Math.max(1, copies * sub.size + (max < 0 ? (min === 0 ? 2 : 1) : max - min))
    return this.#measured({ op: 'repeat', sub, min, max, lazy, height, size, nullable })
  }

  /** One after the other: literals beside each other are joined. */
  concat(nodes: readonly Node[]): Node {
    const joined: Node[] = []
    let last: Node | undefined
    for (const node of nodes) {
      if (node.op === 'literal' && last?.op === 'literal' && last.fold === node.fold) {
        for (const rune of node.runes) last.runes.push(rune)
        last.size = last.runes.length
        continue
      }
      joined.push(node)
      last = node
    }
    return this.#many('concat', joined)
  }

  /** One or the other, the first that matches. Single characters beside each other become a class. */
  alternate(nodes: readonly Node[]): Node {
    const joined: Node[] = []
    let run: Node[] = []
    const end = () => {
      if (run.length < 2) joined.push(...run)
      else joined.push(this.class(normalise(run.flatMap((one) => singleOf(one) ?? []))))
      run = []
    }
    for (const node of nodes) {
      if (singleOf(node) !== undefined) {
        run.push(node)
        continue
      }
      end()
      joined.push(node)
    }
    end()
    return this.#many('alternate', joined)
  }

  /** Parts that are of the same kind are taken apart, and the measures are those of the whole. */
  #many(op: 'concat' | 'alternate', nodes: readonly Node[]): Node {
    const [only] = nodes
    if (only !== undefined && nodes.length === 1) return this.#measured(only)
    const isConcat = op === 'concat'
    const subs: Node[] = []
    let height = 1
    let size = isConcat ? 0 : nodes.length - 1
    let nullable = isConcat
    for (const node of nodes) {
      const isSame = node.op === op
      if (isSame) for (const sub of node.subs) subs.push(sub)
      else subs.push(node)
      height = Math.max(height, node.height + (isSame ? 0 : 1))
      size += node.size
      nullable = isConcat ? nullable && node.nullable : nullable || node.nullable
    }
    return this.#measured({ op, subs, height, size: Math.max(1, size), nullable })
  }

  #measured(node: Node): Node {
    if (node.size > MAX_SIZE || this.#classNumbers > MAX_CLASS_NUMBERS) {
      refuse(TOO_LARGE, this.#pattern)
    }
    if (node.height > MAX_HEIGHT) refuse('expression nests too deeply', this.#pattern)
    return node
  }
}

/** What a node matches that always takes one character; undefined for any other. */
function singleOf(node: Node): Ranges | undefined {
  if (node.op === 'class') return node.runes
  if (node.op !== 'literal' || node.runes.length !== 1) return undefined
  const rune = node.runes[0] ?? 0
  return node.fold ? foldings(rune) : [rune, rune]
}

/** True when the repetition, with those inside it, asks for no more copies of anything than Go allows. */
export function isBearable(node: Node, copies = MAX_COPIES): boolean {
  let left = copies
  if (node.op === 'repeat') {
    if (node.max === 0) return true
    const times = node.max < 0 ? node.min : node.max
    if (times > left) return false
    if (times > 0) left = Math.floor(left / times)
  }
  if ('subs' in node) return node.subs.every((sub) => isBearable(sub, left))
  return 'sub' in node ? isBearable(node.sub, left) : true
}
