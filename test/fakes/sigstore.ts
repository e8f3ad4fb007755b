import {
  type BundleOptions as AnyBundle,
  LocalSigstore,
} from '#functions/local/sigstore/authority.ts'
import type { Logged } from '#functions/local/sigstore/log.ts'

/** The Sigstore of `functions/local`, at a fixed time and with documents that tests change at will. */

export { ARTIFACT, ISSUER, SUBJECT } from '#functions/local/sigstore/authority.ts'
export type { LeafOptions, Names } from '#functions/local/sigstore/certificate.ts'
export { pairOf } from '#functions/local/sigstore/keys.ts'

/** Seconds: when everything here is signed. */
export const SIGNED_AT = 1_750_000_000

// biome-ignore lint/suspicious/noExplicitAny: documents that tests change at will
export type Json = any

/** What may differ between bundles. */
export interface BundleOptions extends AnyBundle {
  /** Changes the entry's body before the log signs it: an entry that is really in the log, about something else. */
  changeBody?: (body: Json) => void
}

/** Everybody's keys and the trusted root that names them. */
export class SigstoreWorld extends LocalSigstore {
  constructor() {
    super(SIGNED_AT)
  }

  override trustedRoot(): Json {
    return super.trustedRoot()
  }

  override bundle(options: BundleOptions = {}): Json {
    return super.bundle(options)
  }

  override entry(about: Logged, options: BundleOptions): Json {
    return super.entry(about, options)
  }
}
