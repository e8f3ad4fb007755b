import type { Frame } from '../cel/frame.ts'
import { callHost } from '../cel/host.ts'
import type { Library } from '../cel/implementation.ts'
import { instance, list, overload, string } from '../cel/implementation.ts'
import { CelError, type CelResult, type CelValue, Opaque } from '../cel/values.ts'
import { AdmissionError } from '../errors.ts'
import { isReference, parseReference } from '../image/reference.ts'
import type { ImageReference } from '../image/types.ts'

/** What `attestors.<name>` is: only its name leaves the expression. */
export class AttestorValue extends Opaque {
  readonly type = 'kyverno.Attestor'
  readonly key: string
  constructor(name: string) {
    super()
    this.key = name
  }
}

/** What `parseImageReference` gives. */
export class ImageValue extends Opaque {
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
  const names: string[] = []
  for (const attestor of attestors) {
    if (!(attestor instanceof AttestorValue)) {
      return new CelError(`${name}: the list holds something that is not an attestor`)
    }
    names.push(attestor.key)
  }
  return callHost(frame, name, [...about, names])
}

function imageData(reference: string, frame: Frame): CelResult {
  return callHost(frame, 'getImageData', [reference])
}
