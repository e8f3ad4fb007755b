import type { VaultSettings } from '../signature/kms-reference.ts'
import type { RevocationMode } from '../signature/revocation/types.ts'
import type { KnownRegistries } from './credentials.ts'

/** The text of one file. The name is for messages, as the operator would write it: `policies/signed.yaml`. */
export interface PolicyFile {
  name: string
  text: string
}

/** What the operator's config says about keys and logins in policies. */
export interface LoadOptions {
  /** Region of `awskms://` references that name none. */
  kmsRegion?: string
  /** KMS endpoints that references may name: origins such as `https://kms.internal:4566`. */
  kmsEndpoints?: readonly string[]
  /** Where keys of `hashivault://` references are; without it they are refused. */
  kmsVault?: VaultSettings
  /** What policies may name as their logins. Undefined: nobody checks, and a name that is not there is an error of every call. */
  registries?: KnownRegistries
  /** JSON of the trusted root of a TUF mirror, or of Sigstore's public-good instance for undefined; undefined where there is none. */
  trustedRoot?: (mirror: string | undefined) => string | undefined
  /**
   * SHA-256 hex of the TUF root that the mirror's trusted root descends from; undefined where the operator named none. A policy that
   * names another root must not load.
   */
  tufRootHash?: (mirror: string | undefined) => string | undefined
  /** How notary attestors look up revocation where a policy does not say; `skip` unless given. */
  notaryRevocation?: RevocationMode
  /** Which exceptions count; every one, for policies of its own namespace and for cluster policies, unless given. */
  exceptions?: ExceptionOptions
  /** Objects that are neither policies nor exceptions are left out with a warning. Without it each of them is a fault. */
  ignoreOtherKinds?: boolean
  /** Namespaced policies may use `http.*`: whoever may write such a policy may send what is in requests to the hosts of `http.allow`. */
  httpInNamespacedPolicies?: boolean
  /** The namespace of namespaced documents that name none, as kubectl's context has one. Without it they are refused. */
  defaultNamespace?: string
  /** Policies with evaluation mode JSON load. They are about files, and no deployment can run them. */
  jsonMode?: boolean
  /** Epoch milliseconds: exceptions that have expired by then are left out. Without it the engine alone looks at the time. */
  now?: number
}

/** What the operator's config says about exceptions. */
export interface ExceptionOptions {
  /** The namespaces that may hold exceptions; `*` is all of them, as no list is. */
  namespaces?: readonly string[]
  /** An exception reaches namespaced policies of every namespace, as in Kyverno. */
  crossNamespace?: boolean
}
