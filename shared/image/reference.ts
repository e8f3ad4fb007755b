import { digestBytes } from '../bytes.ts'
import { AdmissionError } from '../errors.ts'
import { MAX_REFERENCE_CHARS } from '../limits.ts'
import type { ImageReference } from './types.ts'

/** Docker Hub by go-containerregistry's name, and what people call it. */
const DOCKER_HUB = 'index.docker.io'
const DOCKER_HUB_ALIAS = 'docker.io'
/** Where Docker Hub's API answers. */
const DOCKER_HUB_API = 'registry-1.docker.io'

/** A host name or IPv4 address, or an IPv6 address in brackets, and a port: what container runtimes accept. */
const HOST =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/
const REPOSITORY = /^[a-z0-9_./-]{2,255}$/
const TAG = /^[A-Za-z0-9_.-]{1,128}$/

/**
 * The parts of an image reference by go-containerregistry's rules with weak validation, as Kyverno uses it: the first component
 * is a registry when it has a `.` or `:` or is `localhost`; otherwise, the registry is Docker Hub, where a single component
 * stands for `library/…`; the tag is `latest` when neither tag nor digest is written. Unlike there, a tag beside a digest is kept,
 * and what no container runtime accepts is refused: a host outside the host grammar, and the repository components ``,
 * `.` and `..`, which would change the path of a registry request. Throws `IMAGE_REFERENCE_INVALID`.
 */
export function parseReference(text: string): ImageReference {
  if (text.length > MAX_REFERENCE_CHARS) {
    throw invalid(text, `it has ${text.length} characters, at most ${MAX_REFERENCE_CHARS} may be`)
  }
  const [name = '', digest, ...more] = text.split('@')
  if (more.length > 0) throw invalid(text, 'it has more than one "@"')
  if (digest !== undefined && digestBytes(digest) === undefined) {
    throw invalid(text, 'the digest is not sha256:<64 lower-case hexadecimal characters>')
  }
  const { base, tag } = splitTag(text, name)
  const { registry, repository } = splitRegistry(text, base)
  const reference: ImageReference = { text, registry, repository }
  const effectiveTag = tag ?? (digest === undefined ? 'latest' : undefined)
  if (effectiveTag !== undefined) reference.tag = effectiveTag
  if (digest !== undefined) reference.digest = digest
  return reference
}

/** True when the text is an image reference. */
export function isReference(text: string): boolean {
  try {
    parseReference(text)
    return true
  } catch (thrown) {
    if (thrown instanceof AdmissionError) return false
    throw thrown
  }
}

/** `registry/repository[:tag][@digest]`; parsing it gives the same parts. */
export function formatReference(reference: Omit<ImageReference, 'text'>): string {
  const { registry, repository, tag, digest } = reference
  return `${registry}/${repository}${tagSuffix(tag)}${digestSuffix(digest)}`
}

/**
 * The reference as its author wrote it with `@sha256:…` behind it; the text itself when it ends in that digest already. Throws
 * `IMAGE_REFERENCE_INVALID` when it is not a reference or has another digest.
 */
export function withDigest(text: string, digest: string): string {
  if (digestBytes(digest) === undefined) throw invalid(text, 'the digest to append is not sha256')
  const reference = parseReference(text)
  if (reference.digest === digest) return text
  if (reference.digest !== undefined) throw invalid(text, 'it has another digest already')
  return `${text}@${digest}`
}

/** `host[:port]` in lower case where the registry's API answers. */
export function apiHost(reference: Pick<ImageReference, 'registry'>): string {
  const registry = reference.registry.toLowerCase()
  return registry === DOCKER_HUB ? DOCKER_HUB_API : registry
}

/** The tag is behind the last colon, unless a slash follows: then that colon is before a port. */
function splitTag(text: string, name: string): { base: string; tag: string | undefined } {
  const colon = name.lastIndexOf(':')
  if (colon < 0 || name.includes('/', colon)) return { base: name, tag: undefined }
  const tag = name.slice(colon + 1)
  if (!TAG.test(tag)) {
    throw invalid(text, 'the tag must have 1 to 128 characters of A-Z a-z 0-9 _ . -')
  }
  return { base: name.slice(0, colon), tag }
}

function splitRegistry(text: string, base: string): { registry: string; repository: string } {
  const slash = base.indexOf('/')
  const first = slash < 0 ? '' : base.slice(0, slash)
  const hasRegistry = first.includes('.') || first.includes(':') || first === 'localhost'
  const repository = hasRegistry ? base.slice(slash + 1) : base
  if (hasRegistry && !HOST.test(first)) throw invalid(text, 'the registry is not a host name')
  if (!REPOSITORY.test(repository)) {
    throw invalid(text, 'the repository must have 2 to 255 characters of a-z 0-9 _ - . /')
  }
  if (repository.split('/').some((part) => part === '' || part === '.' || part === '..')) {
    throw invalid(text, 'the repository has an empty or relative component')
  }
  const registry = hasRegistry && first !== DOCKER_HUB_ALIAS ? first : DOCKER_HUB
  const isLibrary = registry === DOCKER_HUB && !repository.includes('/')
  return { registry, repository: isLibrary ? `library/${repository}` : repository }
}

function tagSuffix(tag: string | undefined): string {
  return tag === undefined ? '' : `:${tag}`
}

function digestSuffix(digest: string | undefined): string {
  return digest === undefined ? '' : `@${digest}`
}

function invalid(text: string, problem: string): AdmissionError {
  const shown = JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)
  return new AdmissionError('IMAGE_REFERENCE_INVALID', `image reference ${shown}: ${problem}`)
}
