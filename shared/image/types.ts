/** A parsed image reference in its normal form (go-containerregistry's rules). */
export interface ImageReference {
  /** Exactly what was parsed. */
  text: string
  /** Registry as Kubernetes and Kyverno name it: `docker.io` is spelled `index.docker.io` here, as go-containerregistry does. */
  registry: string
  /** `library/nginx`, `kyverno/kyverno`. */
  repository: string
  /** The tag as written; `latest` when neither tag nor digest was written; undefined for a digest-only reference. */
  tag?: string
  /** `sha256:<64 hex>`. */
  digest?: string
}

/** An image reference found in an object. */
export interface ExtractedImage {
  /** The extractor it belongs to: `containers`, `initContainers`, `ephemeralContainers`. */
  extractor: string
  /** JSON pointer of the string, such as `/spec/containers/0/image`. */
  pointer: string
  /** Exactly as the object has it. */
  image: string
}
