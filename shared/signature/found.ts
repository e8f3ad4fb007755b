import type { RegistrySession } from '../registry/types.ts'
import { findBundles } from './bundle.ts'
import type { FoundSignature, FoundSignatures, Subject } from './content.ts'
import { findTagSignatures } from './cosign.ts'

/** The signatures of images as one request sees them: looked for, read and parsed once, however many attestors ask. */
export interface Finder {
  /** Under the `.sig` tag. */
  underTag(subject: Subject): Promise<FoundSignatures>
  /** Among the referrers: bundles with a statement of one of these types, or a signature of the manifest. */
  amongReferrers(subject: Subject, wanted: readonly string[]): Promise<FoundSignatures>
}

/** The finders of requests, by the session each request reads registries with; they are forgotten with it. */
export class FoundOnce {
  readonly #finders = new WeakMap<RegistrySession, Finder>()

  of(registry: RegistrySession): Finder {
    const known = this.#finders.get(registry)
    if (known !== undefined) return known
    const found = new Map<string, Promise<FoundSignatures>>()
    const once = (
      subject: Subject,
      kind: readonly string[],
      find: () => Promise<FoundSignatures>,
    ) => {
      const key = JSON.stringify([subject, kind])
      const result = found.get(key) ?? find().then(readOnce)
      found.set(key, result)
      return result
    }
    const finder: Finder = {
      underTag: (subject) => once(subject, [], () => findTagSignatures(subject, registry)),
      amongReferrers: (subject, wanted) =>
        once(subject, wanted, () => findBundles(subject, registry, wanted)),
    }
    this.#finders.set(registry, finder)
    return finder
  }
}

function readOnce({ signatures, omitted }: FoundSignatures): FoundSignatures {
  return { omitted, signatures: signatures.map(memoised) }
}

function memoised(found: FoundSignature): FoundSignature {
  const { nested } = found
  return {
    ...found,
    read: once(() => found.read()),
    ...(nested !== undefined && {
      nested: once(async () => {
        const several = await nested.call(found)
        return several && readOnce(several)
      }),
    }),
  }
}

function once<T>(run: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => (result ??= run())
}
