import { Program } from '../cel/program.ts'
import type { Budget } from '../cel/types.ts'
import { AdmissionError } from '../errors.ts'
import { parseReference } from '../image/reference.ts'
import { plainSpellings, spellings } from '../image/spelling.ts'
import { CEL_POLICY_COST, MAX_IMAGES, MAX_REFERENCE_CHARS } from '../limits.ts'
import type { Glob } from './plain-glob.ts'
import type { PreparedPolicy } from './prepare.ts'
import type { Subject } from './subject.ts'

/** The host call that tells whether the tag of `image:tag@digest` means that digest now. No expression can make it. */
export const TAG_CALL = 'resolveTag'

/** Whether an image is one that the policy is about. */
export type ImageMatch = { status: 'ok'; matched: boolean } | { status: 'error'; message: string }

/** The images of a request that a policy is about. */
export type ImagesResult =
  | {
      status: 'ok'
      /** The CEL variable `images`: every extractor, with the matched images only. */
      map: Readonly<Record<string, readonly string[]>>
      /** Every matched image once. */
      all: readonly string[]
      /** Matched images that are exempt and so in neither, each with its exception; only where an exception is about images. */
      exempted?: ReadonlyMap<string, string>
    }
  | { status: 'error'; message: string }

/**
 * The matched images of a request: the containers of a Pod template and the policy's own extractors, filtered by
 * `matchImageReferences` (image-validating-policy.md 3.8, 5.1). An extractor of a policy takes the place of one of the same name.
 */
export function imagesOf(prepared: PreparedPolicy, subject: Subject): ImagesResult {
  return remember(prepared, subject, 'images', () => collect(prepared, subject))
}

/**
 * Whether a policy is about an image. A glob matches the reference in any of its spellings, an expression as it is written and in
 * its plain spellings, so that nobody gets around a policy by writing `GHCR.IO` or `:443`, and an image is the same before and after
 * it is pinned. Matching more can only mean that more is verified; a text too long to be a reference is every policy's.
 */
export function matchesImage(
  prepared: PreparedPolicy,
  subject: Subject,
  image: string,
): ImageMatch {
  const { references } = prepared
  if (references.length === 0) return MATCHED
  return remember(references, subject, image, () =>
    match(references, image, textsOf(subject, image), budgetOf(prepared, subject)),
  )
}

const MATCHED: ImageMatch = { status: 'ok', matched: true }

/** What of a request is the same for every policy is kept under these. */
const SPELLINGS = {}
const DIGESTS = {}

function textsOf(subject: Subject, image: string): Texts {
  return remember(SPELLINGS, subject, image, () =>
    image.length > MAX_REFERENCE_CHARS
      ? undefined
      : { all: spellings(image), plain: plainSpellings(image) },
  )
}

/** Undefined for a text too long to be a reference. */
type Texts = { all: readonly string[]; plain: readonly string[] } | undefined

/** Whether an image is pinned, or why it is no reference. */
export function hasDigest(subject: Subject, image: string): boolean | AdmissionError {
  return remember(DIGESTS, subject, image, () => {
    try {
      return parseReference(image).digest !== undefined
    } catch (error) {
      if (error instanceof AdmissionError) return error
      throw error
    }
  })
}

function collect(prepared: PreparedPolicy, subject: Subject): ImagesResult {
  if (subject.extraction.status === 'error') return subject.extraction
  const found: Record<string, readonly string[]> = { ...subject.extraction.found.map }
  const budget = budgetOf(prepared, subject)
  for (const { name, program } of prepared.extractors) {
    const result = program.evaluate(subject.activation, { budget })
    if (result.kind === 'error') {
      return { status: 'error', message: `failed to evaluate images.${name}: ${result.message}` }
    }
    if (!isStrings(result.value)) {
      return { status: 'error', message: `images.${name} is not a list of strings` }
    }
    found[name] = result.value
  }
  const count = Object.values(found).reduce((sum, images) => sum + images.length, 0)
  return count > MAX_IMAGES
    ? { status: 'error', message: `${count} images, at most ${MAX_IMAGES} may be` }
    : filter(prepared, subject, found)
}

function filter(
  prepared: PreparedPolicy,
  subject: Subject,
  found: Record<string, readonly string[]>,
): ImagesResult {
  const map: Record<string, string[]> = Object.create(null)
  const all = new Set<string>()
  for (const [name, images] of Object.entries(found)) {
    const kept: string[] = []
    for (const image of images) {
      const result = matchesImage(prepared, subject, image)
      if (result.status === 'error') return result
      if (!result.matched) continue
      kept.push(image)
      all.add(image)
    }
    map[name] = kept
  }
  return { status: 'ok', map, all: [...all] }
}

/** One reference that matches is enough; an error counts only when none does. */
function match(
  references: PreparedPolicy['references'],
  image: string,
  texts: Texts,
  spent: Budget,
): ImageMatch {
  if (texts === undefined) return MATCHED
  let error: string | undefined
  for (const reference of references) {
    const result = matchesReference(reference, texts, spent)
    if (result === true) return MATCHED
    if (result !== false) error ??= result
  }
  return error === undefined
    ? { status: 'ok', matched: false }
    : { status: 'error', message: `failed to match image ${image}: ${error}` }
}

/** True, false, or why it cannot be told. */
function matchesReference(
  reference: Glob | Program,
  texts: { all: readonly string[]; plain: readonly string[] },
  spent: Budget,
): boolean | string {
  if (!(reference instanceof Program)) return texts.all.some((text) => reference.matches(text))
  let error: string | undefined
  for (const ref of texts.plain) {
    const result = reference.evaluate({ ref }, { budget: spent })
    if (result.kind === 'error') error ??= result.message
    else if (result.value === true) return true
  }
  return error ?? false
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

/** Everything that finds and matches the images of one request for one policy draws from one budget. */
function budgetOf(prepared: PreparedPolicy, subject: Subject): Budget {
  return remember(prepared, subject, 'budget', () => ({ limit: CEL_POLICY_COST, spent: 0 }))
}

/** Each owner has its own keys, so that one key always holds the result of one kind of question. */
function remember<T>(owner: object, subject: Subject, key: string, make: () => T): T {
  let known = subject.memo.get(owner)
  if (known === undefined) {
    known = new Map()
    subject.memo.set(owner, known)
  }
  const found = known.get(key)
  if (found !== undefined || known.has(key)) return found as T
  const made = make()
  known.set(key, made)
  return made
}
