import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { nodeHash } from '#functions/hash-node.ts'
import { pushImage } from '#functions/local/image.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { type SignatureLayout, type SignedImage, signImage } from '#functions/local/sign.ts'
import { localSigner, type Signer } from '#functions/local/signer.ts'
import { type Submission, toAdmissionRequest } from '#functions/local/submission.ts'
import { applyPatch } from '#shared/admission/patch.ts'
import type { AdmissionRequest, Decision, JsonObject } from '#shared/admission/types.ts'
import { createImagePolicyEngine, type EngineOptions } from '#shared/engine/image-policy.ts'
import type { EngineCall, EngineDecision, ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import { SEAL_TTL_MS } from '#shared/limits.ts'
import { secretKeyRing } from '#shared/outcome/keyring.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import type { KmsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import { createVerifier } from '#shared/signature/verify.ts'

/** A registry with real images, real keys, and engines over them. The clock stands still until a test moves it. */
export interface World {
  registry: LocalRegistry
  /** PEM public keys by name. */
  keys: Readonly<Record<KeyName, string>>
  /** Their private keys. */
  signers: Readonly<Record<KeyName, Signer>>
  clock: { now: number }
  /** Pushes `<name>:1.0` and signs it. */
  push(name: string, by: readonly KeyName[], layout?: SignatureLayout): Promise<PushedImage>
  /** The policies of documents that must load without a fault. */
  load(texts: readonly string[]): Promise<readonly CompiledPolicy[]>
  engine(policies: readonly string[], options?: Partial<EngineOptions>): Promise<ImagePolicyEngine>
  /** As it was when it was made, but for the images: no faults, nothing asked, the clock at its start. */
  reset(): void
  close(): Promise<void>
}

export type KeyName = 'release' | 'audit' | 'other'
/** An image and where it is: `host/name:1.0`, its digest, and `host/name:1.0@sha256:…`. */
export interface PushedImage extends SignedImage {
  tagged: string
  digest: string
  pinned: string
  target: { url: string; repository: string }
}

export const START = Date.parse('2026-03-01T12:00:00Z')

/** A KMS that must not be asked. */
export const NO_KMS: KmsPort = {
  getPublicKey: () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'no KMS here')),
  verify: () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'no KMS here')),
  generateMac: () => Promise.reject(new AdmissionError('KMS_UNAVAILABLE', 'no KMS here')),
}

export async function createWorld(): Promise<World> {
  const registry = await startRegistry()
  const pairs = {
    release: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    audit: generateKeyPairSync('ed25519'),
    other: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  }
  const clock = { now: START }
  const now = () => clock.now
  return {
    registry,
    keys: {
      release: pem(pairs.release.publicKey),
      audit: pem(pairs.audit.publicKey),
      other: pem(pairs.other.publicKey),
    },
    signers: {
      release: localSigner(pairs.release.privateKey),
      audit: localSigner(pairs.audit.privateKey),
      other: localSigner(pairs.other.privateKey),
    },
    clock,
    async push(name, by, layout = 'tag') {
      const target = { url: registry.url, repository: name }
      const descriptor = await pushImage(target, { text: name, tag: '1.0' })
      const signers = by.map((key) => localSigner(pairs[key].privateKey))
      const reference = `${registry.host}/${name}`
      if (signers.length > 0) await signImage(target, { descriptor, reference }, signers, layout)
      const tagged = `${reference}:1.0`
      const { digest } = descriptor
      return { tagged, digest, pinned: `${tagged}@${digest}`, target, reference, descriptor }
    },
    load: policiesOf,
    async engine(texts, options = {}) {
      // One for all requests of an engine, as functions have it: they remember verdicts.
      const live = {
        registry: createRegistryClient({
          fetch,
          now,
          credentials: async () => undefined,
          plainHttpHosts: [registry.host],
        }),
        verifier: createVerifier({ now, kms: createKmsKeys({ port: NO_KMS, now }) }),
      }
      return createImagePolicyEngine({
        policies: await policiesOf(texts),
        live: async () => live,
        keyRing: secretKeyRing([{ kid: 'test', secret: new Uint8Array(32).fill(7) }], nodeHash),
        outcomes: { onMissing: 'verify', lifetimeMs: SEAL_TTL_MS },
        now,
        ...options,
      })
    },
    reset() {
      registry.faults.clear()
      registry.requests.length = 0
      clock.now = START
    },
    close: () => registry.close(),
  }
}

async function policiesOf(texts: readonly string[]): Promise<readonly CompiledPolicy[]> {
  const files = texts.map((text, index) => ({ name: `policy-${index}.yaml`, text }))
  const { policies, faults } = await loadPolicies(files)
  if (faults.length > 0) throw new Error(JSON.stringify(faults, null, 2))
  return policies
}

/** A policy document that wants every matched image signed by the release key, changed by `spec` (YAML lines). */
export function policyText(
  keys: World['keys'],
  { name = 'signed', spec = '', attestors = ['release'] as KeyName[], validations = '' } = {},
): string {
  return `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata:
  name: ${name}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers]}
${spec}
  attestors:
${attestors
  .map(
    (key) => `    - name: ${key}
      cosign:
        key:
          data: |
${keys[key].trimEnd().replace(/^/gm, '            ')}
        ctlog: {insecureIgnoreTlog: true}`,
  )
  .join('\n')}
  validations:
${
  validations ||
  `    - expression: >-
        (images.containers + images.initContainers + images.ephemeralContainers)
        .all(image, verifyImageSignatures(image, [${attestors.map((a) => `attestors.${a}`).join(', ')}]) > 0)
      message: every image must be signed`
}
`
}

/** A Pod with these images. */
export function podWith(
  images: readonly string[],
  metadata: JsonObject = { name: 'web', namespace: 'shop' },
): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { containers: images.map((image, index) => ({ name: `c${index}`, image })) },
  }
}

/** The request for an object, as an API server builds it for one webhook call. */
export function requestFor(
  object: JsonObject | null,
  submission: Partial<Submission> = {},
): AdmissionRequest {
  return toAdmissionRequest({ operation: 'CREATE', object, ...submission }, object)
}

export function callFor(overrides: Partial<EngineCall> = {}): EngineCall {
  return {
    cluster: 'prod',
    scope: 'ivpol',
    policies: [],
    signal: new AbortController().signal,
    ...overrides,
  }
}

/** The object after the patch of a decision. */
export function patched(object: JsonObject, decision: Decision): JsonObject {
  return applyPatch(object, decision.patch)
}

/** `admitted`, or the message and the warnings of a denial. */
export function said({ allowed, status, warnings }: Decision): string {
  return allowed ? 'admitted' : [status?.message, ...warnings].join(' | ')
}

/** Mutate, then validate what came out of it; `between` is what somebody did in the meantime. */
export async function admit(
  engine: ImagePolicyEngine,
  object: JsonObject,
  options: {
    between?: (object: JsonObject) => JsonObject
    mutate?: Partial<EngineCall>
    validate?: Partial<EngineCall>
  } = {},
): Promise<{ mutated: EngineDecision; final: JsonObject; validated: EngineDecision }> {
  const mutated = await engine.mutate(requestFor(object), callFor(options.mutate))
  const after = patched(object, mutated)
  const final = options.between?.(after) ?? after
  const validated = await engine.validate(requestFor(final), callFor(options.validate))
  return { mutated, final, validated }
}

function pem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString()
}
