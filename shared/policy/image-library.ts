import type { Frame } from '../cel/frame.ts'
import { callHost } from '../cel/host.ts'
import type { Library } from '../cel/implementation.ts'
import { instance, list, overload, string } from '../cel/implementation.ts'
import { CelError, type CelResult, type CelValue, Opaque } from '../cel/values.ts'
import { AdmissionError } from '../errors.ts'
import { isReference, parseReference } from '../image/reference.ts'
import type { ImageReference } from '../image/types.ts'
import type { JsonValue } from '../json.ts'

/** The texts that the expressions of an attestor give in this evaluation. */
export type Material = (frame: Frame) => readonly string[] | CelError

/** What `attestors.<name>` is. Only its name leaves the expression, and the texts that expressions give it where it has some. */
export class AttestorValue extends Opaque {
  readonly type = 'kyverno.Attestor'
  readonly key: string
  readonly material: Material | undefined
  constructor(name: string, material?: Material) {
    super()
    this.key = name
    this.material = material
  }
}

/** What `parseImageReference` gives. */
class ImageValue extends Opaque {
  readonly type = 'kyverno.Image'
  readonly reference: ImageReference
  constructor(reference: ImageReference) {
    super()
    this.reference = reference
  }
  get key(): string {
    return this.reference.text
  }
}

const image = instance(ImageValue)

/** Host functions that count attestors. */
export const COUNTS: ReadonlySet<string> = new Set([
  'verifyImageSignatures',
  'verifyAttestationSignatures',
])

/**
 * Kyverno's image functions by overload id (image-validating-policy.md 2.5–2.7). References follow go-containerregistry: beside a
 * digest a tag does not count. What needs the outside world asks the host of the run.
 */
export const IMAGE_LIBRARY: Library = {
  parse_image_reference_string: overload('parseImageReference', [string], parse),
  image_string: overload('image', [string], parse),
  is_image_string: overload('isImage', [string], isReference),
  image_contains_digest: overload(
    'containsDigest',
    [image],
    ({ reference }) => reference.digest !== undefined,
  ),
  image_registry: overload('registry', [image], ({ reference }) => reference.registry),
  image_repository: overload('repository', [image], ({ reference }) => reference.repository),
  image_identifier: overload(
    'identifier',
    [image],
    ({ reference }) => reference.digest ?? reference.tag ?? '',
  ),
  image_tag: overload('tag', [image], ({ reference }) =>
    reference.digest === undefined ? (reference.tag ?? '') : '',
  ),
  image_digest: overload('digest', [image], ({ reference }) => reference.digest ?? ''),

  verify_image_signatures_string_list: overload(
    'verifyImageSignatures',
    [string, list],
    (reference, attestors, frame: Frame) =>
      verify('verifyImageSignatures', [reference], attestors, frame),
  ),
  verify_attestation_signatures_string_string_list: overload(
    'verifyAttestationSignatures',
    [string, string, list],
    (reference, attestation, attestors, frame: Frame) =>
      verify('verifyAttestationSignatures', [reference, attestation], attestors, frame),
  ),
  extract_payload_string_string: overload(
    'extractPayload',
    [string, string],
    (reference, attestation, frame: Frame) =>
      callHost(frame, 'extractPayload', [reference, attestation]),
  ),
  get_image_data_string: overload('getImageData', [string], imageData),
  image_get_metadata_string: overload('image.GetMetadata', [string], imageData),
  image_get_metadata_camel_string: overload('image.getMetadata', [string], imageData),
}

function parse(text: string): CelResult {
  try {
    return new ImageValue(parseReference(text))
  } catch (error) {
    if (error instanceof AdmissionError) return new CelError(error.message)
    throw error
  }
}

function verify(
  name: string,
  about: readonly string[],
  attestors: readonly CelValue[],
  frame: Frame,
): CelResult {
  const who: JsonValue[] = []
  let error: CelError | undefined
  for (const attestor of attestors) {
    if (!(attestor instanceof AttestorValue)) {
      return new CelError(`${name}: the list holds something that is not an attestor`)
    }
    // Also behind an error, so that what is pending is asked for in one pass.
    const texts = attestor.material?.(frame)
    if (texts instanceof CelError) error ??= texts
    else who.push(texts === undefined ? attestor.key : [attestor.key, ...texts])
  }
  return error ?? callHost(frame, name, [...about, who])
}

function imageData(reference: string, frame: Frame): CelResult {
  return callHost(frame, 'getImageData', [reference])
}
