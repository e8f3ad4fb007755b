import type { CallNode, Node } from './ast.ts'
import { childrenOf } from './tree.ts'
import type { Type, TypeKind } from './type.ts'

/** What is wrong with a format call, and the node it is wrong at. */
export interface FormatFault {
  node: Node
  message: string
}

/** Types a clause takes, and cel-go's words for them. */
interface Clause {
  kinds: ReadonlySet<TypeKind>
  message: string
}

type Clauses = Readonly<Record<string, Clause>>

function clause(kinds: string, message: string): Clause {
  // Each list below is spelled in type kinds.
  return { kinds: new Set(kinds.split(' ')) as Set<TypeKind>, message }
}

const STRING_KINDS = 'list map int uint double bool string timestamp bytes duration type null'
const STRING_CLAUSE = clause(
  STRING_KINDS,
  'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
)

/** The first generation, which the API server pins. */
const CLAUSES: Clauses = {
  s: STRING_CLAUSE,
  d: clause('int uint', 'decimal clause can only be used on integers'),
  f: clause('double string', 'fixed-point clause can only be used on doubles'),
  e: clause('double string', 'scientific clause can only be used on doubles'),
  b: clause('int uint bool', 'only integers and bools can be formatted as binary'),
  x: clause(
    'int uint string bytes',
    'only integers, byte buffers, and strings can be formatted as hex',
  ),
  o: clause('int uint', 'octal clause can only be used on integers'),
}

const NUMBERS = 'ints, uints, and doubles'

/** cel-go's newer formatter. */
const MIXED_CLAUSES: Clauses = {
  s: STRING_CLAUSE,
  d: clause('int uint double', `decimal clause can only be used on ${NUMBERS}`),
  f: clause('int uint double', `fixed-point clause can only be used on ${NUMBERS}`),
  e: clause('int uint double', `scientific clause can only be used on ${NUMBERS}`),
  b: clause('int uint bool', 'only ints, uints, and bools can be formatted as binary'),
  x: clause(
    'int uint string bytes',
    'only ints, uints, bytes, and strings can be formatted as hex',
  ),
  o: clause('int uint', 'octal clause can only be used on ints and uints'),
}

/**
 * What is wrong with `"…".format([…])` when both are literals: a clause that does not exist, an argument it does not take,
 * too few arguments or too many.
 */
export function formatFault(
  call: CallNode,
  typeOf: (node: Node) => Type,
  mixed: boolean,
): FormatFault | undefined {
  const [list] = call.args
  const { target } = call
  if (target?.k !== 'const' || !('string' in target.value) || list?.k !== 'list') return undefined
  const clauses = mixed ? MIXED_CLAUSES : CLAUSES
  let used = 0
  for (const match of target.value.string.matchAll(/%(?:%|(\.\d*)?(.?))/gsu)) {
    if (match[0] === '%%') continue
    const fault = clauseFault(call, list.elements, used++, match, clauses, typeOf)
    if (fault !== undefined) return fault
  }
  if (used >= list.elements.length) return undefined
  const counts = `(expected ${used}, got ${list.elements.length})`
  return { node: call, message: `too many arguments supplied to string.format ${counts}` }
}

function clauseFault(
  call: CallNode,
  args: readonly Node[],
  index: number,
  [, precision, letter = '']: RegExpMatchArray,
  clauses: Clauses,
  typeOf: (node: Node) => Type,
): FormatFault | undefined {
  const unread = unreadable(precision, letter)
  if (unread !== undefined) return { node: call, message: unread }
  const arg = args[index]
  if (arg === undefined) return { node: call, message: `index ${index} out of range` }
  const lower = letter === 'X' ? 'x' : letter
  const known = Object.hasOwn(clauses, lower) ? clauses[lower] : undefined
  if (known === undefined) {
    const message = `could not parse formatting clause: unrecognized formatting clause "${letter}"`
    return { node: call, message }
  }
  const bad = known === STRING_CLAUSE ? unprintable(arg, typeOf) : refused(arg, known, typeOf)
  if (bad === undefined) return undefined
  const message = `error during formatting: ${known.message}, was given ${typeOf(bad).name}`
  return { node: bad, message }
}

function unreadable(precision: string | undefined, letter: string): string | undefined {
  if (precision === undefined) return letter === '' ? 'unexpected end of string' : undefined
  const why = letter === '' ? 'could not find end of precision specifier' : undefined
  if (why !== undefined || precision === '.') {
    const reason = why ?? 'error while converting precision to integer'
    return `could not parse formatting clause: error while parsing precision: ${reason}`
  }
  return undefined
}

function refused(node: Node, { kinds }: Clause, typeOf: (node: Node) => Type): Node | undefined {
  const { kind } = typeOf(node)
  return kind === 'dyn' || kinds.has(kind) ? undefined : node
}

/** The first part of a value, through list and map literals, that has no text form. */
function unprintable(node: Node, typeOf: (node: Node) => Type): Node | undefined {
  const bad = refused(node, STRING_CLAUSE, typeOf)
  if (bad !== undefined || (node.k !== 'list' && node.k !== 'map')) return bad
  for (const child of childrenOf(node)) {
    const found = unprintable(child, typeOf)
    if (found !== undefined) return found
  }
  return undefined
}
