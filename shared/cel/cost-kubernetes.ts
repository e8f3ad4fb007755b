import {
  byFirst,
  type CallCost,
  type Costs,
  comparisonCost,
  defaultCost,
  one,
  REGEX,
  regexMatch,
  scaled,
  size,
  TRAVERSAL,
} from './cost.ts'
import { extensionCost } from './cost-extension.ts'
import {
  type CelResult,
  type CelValue,
  isList,
  isMap,
  mapEntries,
  Opaque,
  sizeOf,
  utf8Length,
} from './values.ts'

const AUTHORIZER_CHECK = 350_000

/** Names of functions that cost 1 whatever they are applied to. */
const FLAT =
  'serviceAccount path group resource subresource namespace name allowed reason error errored ' +
  'masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast ' +
  'format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch ' +
  'getScheme getHostname getHost getPort getEscapedPath getQuery'

/** Cost of looking at every part of a value: its text in tenths of bytes, its elements one by one. */
export function traversalCost(value: CelResult | undefined): number {
  if (typeof value === 'string') return Math.floor(utf8Length(value) * TRAVERSAL)
  if (value instanceof Uint8Array) return Math.floor(value.length * TRAVERSAL)
  if (value !== undefined && isList(value)) {
    let sum = 0
    for (const element of value) sum += traversalCost(element)
    return sum
  }
  // An error is no map; isMap says so.
  if (value === undefined || !isMap(value as CelValue)) return 1
  let sum = 0
  for (const [key, entry] of mapEntries(value as { [key: string]: CelValue })) {
    sum += traversalCost(key) + traversalCost(entry)
  }
  return sum
}

const traversal: CallCost = (args) => traversalCost(args[0])

/** A selector is parsed into one requirement for every two characters at most, and each is then checked. */
const selector: CallCost = (args) => {
  const length = size(args, 1)
  return 10 + scaled(length, TRAVERSAL) + 50 * scaled(length, 0.5)
}

const join: CallCost = (_args, result) => scaled(sizeOf(result), 2 * TRAVERSAL)

const validate: CallCost = (args) => {
  const format = args[0]
  const pattern = format instanceof Opaque && 'maxRegexSize' in format ? format.maxRegexSize : 1
  return scaled(1 + size(args, 1), TRAVERSAL) * scaled(Number(pattern), REGEX)
}

/** What a network as text costs beside the network itself. */
const textCost = (args: readonly CelResult[]) => scaled(size(args, 1), TRAVERSAL)

const containsIp: CallCost = (args) => {
  const network = size(args, 0)
  return scaled(network + network, TRAVERSAL)
}

const containsCidr: CallCost = (args) => {
  const network = size(args, 0)
  return scaled(network + network, TRAVERSAL) + scaled(network, TRAVERSAL) + 1
}

/** Overloads the API server's estimator tells apart from the others of their function. */
const BY_OVERLOAD = new Map<string, CallCost>([
  ['cidr_ip', one],
  ['cidr_contains_ip_string', (args, result) => containsIp(args, result) + textCost(args)],
  ['cidr_contains_cidr_string', (args, result) => containsCidr(args, result) + textCost(args)],
])

const BY_FUNCTION = new Map<string, CallCost>([
  ...FLAT.split(' ').map((fn): [string, CallCost] => [fn, one]),
  ...'isSorted sum min max indexOf lastIndexOf includes'
    .split(' ')
    .map((fn): [string, CallCost] => [fn, traversal]),
  ...'url lowerAscii upperAscii substring trim jsonpatch.escapeKey cidr isIP isCIDR ip quantity isQuantity semver isSemver'
    .split(' ')
    .map((fn): [string, CallCost] => [fn, byFirst(TRAVERSAL)]),
  ...'replace split ip.isCanonical'
    .split(' ')
    .map((fn): [string, CallCost] => [fn, byFirst(2 * TRAVERSAL)]),
  ['check', () => AUTHORIZER_CHECK],
  ['fieldSelector', selector],
  ['labelSelector', selector],
  ['join', join],
  ['find', regexMatch],
  ['findAll', regexMatch],
  ['validate', validate],
  ['containsIP', containsIp],
  ['containsCIDR', containsCidr],
])

/** Opaque types whose equality costs 1 when they stand on the left of `==`. */
function hasFlatEquality(value: CelResult | undefined): boolean {
  return (
    value instanceof Opaque &&
    (value.type.startsWith('kubernetes.') || value.type.startsWith('net.'))
  )
}

/** For `a == b`; `a != b` never gets to the estimator of the API server and has the plain comparison cost. */
function equalityCost(a: CelResult, b: CelResult): number {
  return hasFlatEquality(a) ? 1 : comparisonCost(a, b)
}

/** What the API server charges: for a call the extensions' own trackers, then its estimator by function name, then cel-go's table. */
export const kubernetesCosts: Costs = {
  call(fn, overload) {
    const tracked = extensionCost(overload)
    if (tracked !== undefined) return tracked
    const special = overload === undefined ? undefined : BY_OVERLOAD.get(overload)
    if (special !== undefined) return special
    return BY_FUNCTION.get(fn) ?? defaultCost(overload)
  },
  equality: (fn) => (fn === '_==_' ? equalityCost : comparisonCost),
}
