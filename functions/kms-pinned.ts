import { fromBase64 } from '#shared/bytes.ts'
import type { KmsKey, KmsPort, KmsPublicKey } from '#shared/ports.ts'

/** The answer of `GetPublicKey` when bundles were built, as JSON. */
export interface PinnedKey extends KmsKey, Omit<KmsPublicKey, 'spki'> {
  /** SubjectPublicKeyInfo, DER in base64. */
  spki: string
}

/** What `countersign build --pin-keys` puts into a config; nobody writes it by hand. */
export interface PinnedKeys {
  /** ISO 8601. A key that was disabled since counts until the next build. */
  fetchedAt: string
  keys: readonly PinnedKey[]
}

/** A KmsPort that has these public keys and asks the other one about everything else, such as sealing. */
export function pinnedKms(kms: KmsPort, pinned: PinnedKeys | undefined): KmsPort {
  if (pinned === undefined) return kms
  const known = new Map(pinned.keys.map((key) => [placeOf(key), key]))
  return {
    async getPublicKey(key, signal) {
      const found = known.get(placeOf(key))
      const spki = found && fromBase64(found.spki)
      return found && spki ? { ...found, spki } : kms.getPublicKey(key, signal)
    },
    verify: (...call) => kms.verify(...call),
    generateMac: (...call) => kms.generateMac(...call),
  }
}

/** Tells one key from another, wherever it is. */
export function placeOf({ keyId, region, endpoint = '' }: KmsKey): string {
  return JSON.stringify([keyId, region, endpoint])
}
