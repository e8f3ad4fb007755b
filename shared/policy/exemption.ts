import type { Program } from '../cel/program.ts'
import type { Budget, Host } from '../cel/types.ts'
import { AdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import type { ImageReference } from '../image/types.ts'
import { CEL_MATCH_CONDITIONS_COST } from '../limits.ts'
import { failsOpen } from './decide.ts'
import { compileGlob, type Glob } from './glob.ts'
import { type ImagesResult, TAG_CALL } from './images.ts'
import type { Subject } from './subject.ts'
import type { CompiledException, CompiledPolicy } from './types.ts'

/** What the exceptions of a policy say about one request. */
export type Exemption =
  | { status: 'none' }
  /** A total exception applies: the policy is not evaluated at all. */
  | { status: 'skipped'; exceptions: readonly string[]; message: string; result: 'skip' | 'pass' }
  | { status: 'error'; message: string }
  | PartialExemption

/** Only some images are exempt, or expressions are told some values: the policy is evaluated. */
export interface PartialExemption {
  status: 'partial'
  /** Names of the exceptions that apply. */
  exceptions: readonly string[]
  /** Those among them that allow values, which only expressions know the use of. */
  withValues: readonly string[]
  /** The CEL variable `exceptions`. */
  variable: { allowedImages: readonly string[]; allowedValues: readonly string[] }
  /** The matched images without the exempt ones, which are told apart by their exception. */
  judge(images: MatchedImages, host: Host): JudgedImages
}

export type MatchedImages = Extract<ImagesResult, { status: 'ok' }>

export type JudgedImages = { status: 'pending' } | ImagesResult

/** The exceptions of one policy, ready to be asked about any number of requests. */
export interface Exceptions {
  /** `now` is epoch milliseconds; `counting` names the exceptions that count, all of them when absent. */
  about(subject: Subject, now: number, counting?: ReadonlySet<string>): Exemption
}

/** An exception whose expressions are planned. */
interface Prepared extends CompiledException {
  conditions: readonly { name: string; program: Program }[]
  globs: readonly Glob[]
}

/**
 * The exceptions of a policy over its planned expressions. Only an exception with neither images nor allowed values skips the policy,
 * whatever others apply beside it; one that names images is about these and no other (image-validating-policy.md 1.7).
 */
export function prepareExceptions(
  policy: Pick<CompiledPolicy, 'failurePolicy' | 'exceptions'>,
  plan: (expression: CompiledException['matchConditions'][number]['expression']) => Program,
): Exceptions {
  const all = policy.exceptions.map(
    (exception): Prepared => ({
      ...exception,
      conditions: exception.matchConditions.map(({ name, expression }) => ({
        name,
        program: plan(expression),
      })),
      globs: (exception.images ?? []).map(compileGlob),
    }),
  )
  return {
    about: (subject, now, counting) =>
      about(
        counting === undefined ? all : all.filter(({ name }) => counting.has(name)),
        failsOpen(policy),
        subject,
        now,
      ),
  }
}

function about(
  all: readonly Prepared[],
  isLenient: boolean,
  subject: Subject,
  now: number,
): Exemption {
  const applying: Prepared[] = []
  for (const exception of all) {
    if (isExpired(exception, now)) continue
    const match = matches(exception, subject)
    if (match === true) applying.push(exception)
    // Under Ignore it does not apply, and the policy is evaluated.
    else if (match !== false && !isLenient) return { status: 'error', message: match }
  }
  if (applying.length === 0) return { status: 'none' }
  const total = applying.filter(isTotal)
  return total.length > 0 ? skipped(total) : partial(applying)
}

/** The last instant still counts, as upstream has it. */
export function isExpired(
  { expiresAt }: Pick<CompiledException, 'expiresAt'>,
  now: number,
): boolean {
  return expiresAt !== undefined && now > expiresAt
}

/** The first `false` decides, even behind an error, as for the conditions of a policy; a text says what could not be evaluated. */
function matches({ name, conditions }: Prepared, subject: Subject): boolean | string {
  const budget: Budget = { limit: CEL_MATCH_CONDITIONS_COST, spent: 0 }
  let error: string | undefined
  for (const condition of conditions) {
    const result = condition.program.evaluate(subject.activation, { budget })
    if (result.kind === 'error') {
      error ??= `failed to evaluate policy: exception ${name}: match condition ${condition.name}: ${result.message}`
    } else if (result.value !== true) return false
  }
  return error ?? true
}

function isTotal({ images, allowedValues }: Prepared): boolean {
  return images === undefined && allowedValues === undefined
}

function skipped(total: readonly Prepared[]): Exemption {
  const exceptions = total.map(({ name }) => name).sort()
  return {
    status: 'skipped',
    exceptions,
    message: `rule is skipped due to policy exception: ${exceptions.join(', ')}`,
    result: total.every(({ reportResult }) => reportResult === 'pass') ? 'pass' : 'skip',
  }
}

function partial(applying: readonly Prepared[]): PartialExemption {
  const merged = (field: 'images' | 'allowedValues') => [
    ...new Set(applying.flatMap((exception) => exception[field] ?? [])),
  ]
  return {
    status: 'partial',
    exceptions: applying.map(({ name }) => name).sort(),
    withValues: applying.flatMap(({ name, allowedValues }) => (allowedValues ? [name] : [])),
    variable: { allowedImages: merged('images'), allowedValues: merged('allowedValues') },
    judge: (images, host) => judge(images, applying, host),
  }
}

/** Every image is asked about before any of them decides, so that all tags are looked up at the same time. */
function judge(images: MatchedImages, applying: readonly Prepared[], host: Host): JudgedImages {
  const exempted = new Map<string, string>()
  let isPending = false
  let error: string | undefined
  for (const image of images.all) {
    const answer = exceptionOf(image, applying, host)
    if (answer.status === 'pending') isPending = true
    else if (answer.status === 'error') error ??= answer.message
    else if (answer.by !== undefined) exempted.set(image, answer.by)
  }
  if (isPending) return { status: 'pending' }
  if (error !== undefined) return { status: 'error', message: error }
  const isJudged = (image: string) => !exempted.has(image)
  const map: Record<string, readonly string[]> = Object.create(null)
  for (const [name, list] of Object.entries(images.map)) map[name] = list.filter(isJudged)
  return { status: 'ok', map, all: images.all.filter(isJudged), exempted }
}

type Answer =
  | { status: 'known'; by: string | undefined }
  | { status: 'pending' }
  | { status: 'error'; message: string }

/**
 * The exception an image is exempt by. What is pinned runs as its digest, whatever tag stands beside it. So a pattern about tags
 * says nothing about it until the registry has said that the tag means this digest: otherwise `repo:excused@sha256:…` would
 * let in every image of that repository.
 */
function exceptionOf(image: string, applying: readonly Prepared[], host: Host): Answer {
  const texts = textsOf(image)
  // What is no reference is nobody's image.
  if (texts === undefined) return { status: 'known', by: undefined }
  const find = (isExempt: (glob: Glob) => boolean) =>
    applying.find(({ globs }) => globs.some(isExempt))?.name
  const direct = find(
    (glob) =>
      texts.direct.some((text) => glob.matches(text)) ||
      texts.pinned.some((text) => spellsPin(glob, text)) ||
      texts.both.some((text) => spellsPin(glob, text) && glob.pattern.includes(digestIn(text))),
  )
  if (direct !== undefined || !texts.isPinned) return { status: 'known', by: direct }
  const tagged = find(
    (glob) =>
      texts.tagged.some((text) => glob.matches(text)) ||
      texts.both.some((text) => spellsPin(glob, text)),
  )
  if (tagged === undefined) return { status: 'known', by: undefined }
  const answer = host({ name: TAG_CALL, args: [image] })
  switch (answer.kind) {
    case 'pending':
      return { status: 'pending' }
    case 'error':
      return { status: 'error', message: answer.message }
    default:
      return { status: 'known', by: answer.value === true ? tagged : undefined }
  }
}

function spellsPin(glob: Glob, text: string): boolean {
  return glob.matches(text) && !glob.matches(text.replace('@', NO_PATTERN))
}

function digestIn(text: string): string {
  return text.slice(text.indexOf('@') + 1)
}

interface Texts {
  isPinned: boolean
  /** A pattern that matches one of these exempts the image whatever its tag, if it has any, means now. */
  direct: readonly string[]
  /** The same for a pattern that itself spells the `@`: it is about digests, and about this one. */
  pinned: readonly string[]
  /** With the tag beside the digest: whoever writes the image chooses the tag, so the pattern must hold all of the digest to be about it. */
  both: readonly string[]
  /** A pattern that matches one of these exempts the image if the tag means the digest. */
  tagged: readonly string[]
}

/** No pattern spells it: only a wildcard matches it, and would match anything else in its place. */
const NO_PATTERN = '\uffff'
/** As long as a digest. */
const ANY_DIGEST = NO_PATTERN.repeat('sha256:'.length + 64)

/** Only spellings by which every container runtime runs the same image: an exception for more would be a hole. */
function textsOf(image: string): Texts | undefined {
  const reference = parsed(image)
  if (reference === undefined) return undefined
  const { tag, digest } = reference
  const names = namesOf(reference)
  const tags = tag === undefined || tag === 'latest' ? ['', ':latest'] : [`:${tag}`]
  const withEnds = (ends: readonly string[]) =>
    names.flatMap((name) => ends.map((end) => `${name}${end}`))
  const tagged = withEnds(tags)
  if (digest === undefined) return { isPinned: false, direct: tagged, pinned: [], both: [], tagged }
  return {
    isPinned: true,
    direct: withEnds([`@${ANY_DIGEST}`]),
    pinned: withEnds([`@${digest}`]),
    both: tag === undefined ? [] : withEnds([`:${tag}@${digest}`]),
    tagged,
  }
}

function parsed(image: string): ImageReference | undefined {
  try {
    return parseReference(image)
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return undefined
    throw thrown
  }
}

const DOCKER_HUB = 'index.docker.io'
const LIBRARY = 'library/'
const DEFAULT_PORT = ':443'

function namesOf({ registry, repository }: ImageReference): string[] {
  const lower = registry.toLowerCase()
  const host = lower.endsWith(DEFAULT_PORT) ? lower.slice(0, -DEFAULT_PORT.length) : lower
  if (host !== DOCKER_HUB) {
    const hosts = [registry, host, ...(host.includes(':') ? [] : [`${host}${DEFAULT_PORT}`])]
    return hosts.map((each) => `${each}/${repository}`)
  }
  const short = repository.startsWith(LIBRARY) ? repository.slice(LIBRARY.length) : repository
  const paths = short.includes('/') ? [repository] : [short, `${LIBRARY}${short}`]
  return ['', 'docker.io/', `${DOCKER_HUB}/`].flatMap((hub) => paths.map((path) => hub + path))
}
