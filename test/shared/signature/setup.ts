import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { pushImage } from '#functions/local/image.ts'
import type { PushTarget } from '#functions/local/push.ts'
import {
  type LocalRegistry,
  type LocalRegistryOptions,
  startRegistry,
} from '#functions/local/registry.ts'
import type { SignedImage } from '#functions/local/sign.ts'
import type { KmsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import type { RegistrySession, ResolvedImage } from '#shared/registry/types.ts'
import { createCosignKeyAttestor } from '#shared/signature/attestor.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import type {
  Attestor,
  CosignKeyAttestor,
  HashAlgorithm,
  Verification,
} from '#shared/signature/types.ts'
import { createVerifier, type VerifierOptions } from '#shared/signature/verify.ts'

/** One key pair per kind, made when first asked for. */
export const KEY_KINDS = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  'RSA 2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'RSA 3072': () => generateKeyPairSync('rsa', { modulusLength: 3072 }),
  Ed25519: () => generateKeyPairSync('ed25519'),
}
export type KeyKind = keyof typeof KEY_KINDS

const made = new Map<string, { publicKey: KeyObject; privateKey: KeyObject }>()

/** The same pair for the same kind and name. */
export function keyPair(
  kind: KeyKind,
  name = 'ours',
): { publicKey: KeyObject; privateKey: KeyObject } {
  const id = `${kind} ${name}`
  const pair = made.get(id) ?? KEY_KINDS[kind]()
  made.set(id, pair)
  return pair
}

export function pemOf(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString()
}

export function derOf(key: KeyObject): Uint8Array<ArrayBuffer> {
  return new Uint8Array(key.export({ type: 'spki', format: 'der' }))
}

export async function attestorOf(
  publicKey: KeyObject,
  hashAlgorithm?: HashAlgorithm,
): Promise<CosignKeyAttestor> {
  const hash = hashAlgorithm === undefined ? {} : { hashAlgorithm }
  return createCosignKeyAttestor({ name: 'release', data: pemOf(publicKey), ...hash })
}

/** A KMS nobody should ask. */
export const NO_KMS: KmsPort = {
  getPublicKey: () => Promise.reject(new TypeError('asked KMS')),
  verify: () => Promise.reject(new TypeError('asked KMS')),
  generateMac: () => Promise.reject(new TypeError('asked KMS')),
}

export const NOW = 1_700_000_000_000

/** A registry with images to sign, and a verifier that looks at them. */
export interface Stage {
  registry: LocalRegistry
  target: PushTarget
  /** A new image in the repository `app`. */
  image(): Promise<SignedImage & { manifest: Uint8Array }>
  resolved(image: SignedImage, repository?: string): ResolvedImage
  session(signal?: AbortSignal): RegistrySession
  verify(
    image: SignedImage,
    attestor: Attestor,
    options?: Partial<VerifierOptions> & { signal?: AbortSignal; session?: RegistrySession },
  ): Promise<Verification>
  close(): Promise<void>
}

let images = 0

export async function openStage(options: LocalRegistryOptions = {}): Promise<Stage> {
  const registry = await startRegistry(options)
  const target = { url: registry.url, repository: 'app' }
  const client = createRegistryClient({
    fetch,
    now: () => NOW,
    random: () => 0,
    credentials: async () => undefined,
    plainHttpHosts: [registry.host],
    callTimeoutMs: 2000,
  })
  const session = (signal = never()) => client.session(signal)
  const resolved = ({ descriptor }: SignedImage, repository = 'app'): ResolvedImage => ({
    reference: { text: 'app', registry: registry.host, repository },
    repository: { host: registry.host, repository },
    descriptor,
  })
  return {
    registry,
    target,
    async image() {
      const descriptor = await pushImage(target, { text: `image ${++images}` })
      const stored = registry.repositories.get('app')?.manifest(descriptor.digest)
      if (stored === undefined) throw new TypeError('the image was not stored')
      return {
        descriptor,
        reference: `${registry.host}/app`,
        manifest: new Uint8Array(stored.bytes),
      }
    },
    resolved,
    session,
    verify(image, attestor, { signal = never(), session: opened, ...rest } = {}) {
      const kms = createKmsKeys({ port: NO_KMS, now: () => NOW })
      const verifier = createVerifier({ now: () => NOW, kms, ...rest })
      const context = { cluster: 'prod', registry: opened ?? session(signal), signal }
      return verifier.verifyImage(resolved(image), attestor, context)
    },
    close: () => registry.close(),
  }
}

/** A signal that never ends. */
export function never(): AbortSignal {
  return new AbortController().signal
}

/** The details of the candidates, which say what was wrong with each. */
export function detailsOf({ candidates }: Verification): string[] {
  return candidates.map((candidate) => candidate.detail)
}
