import { bundleFromJSON } from '@sigstore/bundle'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify'
import { expect, test } from 'vitest'
import { newPair, pairOf } from '#functions/local/sigstore/keys.ts'
import { mintSigner, SignerWorld } from '#test/fakes/fulcio.ts'
import { mintIntermediate, mintRoot } from '#test/fakes/pki.ts'
import {
  ARTIFACT,
  type BundleOptions,
  type Json,
  SIGNED_AT,
  SigstoreWorld,
} from '#test/fakes/sigstore.ts'
import { AT, judgeBundle } from './setup.ts'

// Sigstore's own library judges the same bundles: where both can tell, both say the same. It cannot tell everything that is told here.

const world = new SigstoreWorld()

/** What the library says; it throws for every no. */
function theirVerdict(bundle: Json, root: Json): 'verified' | 'rejected' {
  const material = toTrustMaterial(TrustedRoot.fromJSON(root), () => {
    throw new TypeError('no key is configured')
  })
  const thresholds = {
    tlogThreshold: Math.min(1, root.tlogs.length),
    ctlogThreshold: Math.min(1, root.ctlogs.length),
    timestampThreshold: 1,
  }
  try {
    new Verifier(material, thresholds).verify(
      toSignedEntity(bundleFromJSON(bundle), Buffer.from(ARTIFACT)),
    )
    return 'verified'
  } catch {
    return 'rejected'
  }
}

const DSSE = { content: 'dsse' } as const

test.each<{
  name: string
  bundle?: BundleOptions
  change?: (bundle: Json) => void
  changeRoot?: (root: Json) => void
  expected: string
}>([
  { name: 'a message in Rekor v1', expected: 'verified' },
  { name: 'an envelope in Rekor v1', bundle: DSSE, expected: 'verified' },
  {
    name: 'an envelope as intoto 0.0.2',
    bundle: { ...DSSE, kind: 'intoto 0.0.2' },
    expected: 'verified',
  },
  { name: 'a message in Rekor v2', bundle: { rekor: 'v2' }, expected: 'verified' },
  { name: 'a promise and a timestamp', bundle: { timestamps: [SIGNED_AT] }, expected: 'verified' },
  {
    name: 'a timestamp alone',
    bundle: { rekor: 'none', leaf: { sct: 'none' } },
    changeRoot: (root) => Object.assign(root, { tlogs: [], ctlogs: [] }),
    expected: 'verified',
  },
  { name: 'RSA', bundle: { signer: pairOf('RSA') }, expected: 'verified' },
  {
    name: 'a P-384 key over SHA-384',
    bundle: { signer: newPair('P-384'), hash: 'sha384' },
    expected: 'verified',
  },
  {
    name: 'a forged certificate timestamp',
    bundle: { leaf: { sct: 'forged' } },
    expected: 'rejected',
  },
  { name: 'no certificate timestamp', bundle: { leaf: { sct: 'none' } }, expected: 'rejected' },
  {
    name: 'a foreign authority',
    changeRoot: (root) =>
      Object.assign(root, {
        certificateAuthorities: new SigstoreWorld().trustedRoot().certificateAuthorities,
      }),
    expected: 'rejected',
  },
  { name: 'a foreign log', bundle: { rekor: 'unknown' }, expected: 'rejected' },
  {
    name: 'a foreign timestamp authority',
    bundle: { rekor: 'v2' },
    changeRoot: (root) =>
      Object.assign(root, {
        timestampAuthorities: new SigstoreWorld().trustedRoot().timestampAuthorities,
      }),
    expected: 'rejected',
  },
  {
    name: 'an authority from later on',
    changeRoot: (root) =>
      Object.assign(root.certificateAuthorities[0].validFor, {
        start: new Date(AT + 1000).toISOString(),
      }),
    expected: 'rejected',
  },
  {
    name: 'a certificate that had ended',
    bundle: { leaf: { until: SIGNED_AT - 1 } },
    expected: 'rejected',
  },
  {
    name: 'another time than the promised one',
    change: (bundle) =>
      Object.assign(bundle.verificationMaterial.tlogEntries[0], {
        integratedTime: String(SIGNED_AT + 1),
      }),
    expected: 'rejected',
  },
])('both say of $name: $expected', async ({ bundle, change, changeRoot, expected }) => {
  const document = world.bundle(bundle)
  const root = world.trustedRoot()
  change?.(document)
  changeRoot?.(root)
  expect({
    ours: (await judgeBundle(document, root)).status,
    theirs: theirVerdict(document, root),
  }).toEqual({ ours: expected, theirs: expected })
})

test.each([
  { name: 'a chain of three', options: {}, expected: 'verified' },
  { name: 'a chain that is too long', options: { ca: { pathLength: 0 } }, expected: 'rejected' },
])('both say of $name: $expected', async ({ options, expected }) => {
  const anchor = mintRoot(options)
  const middle = mintIntermediate(anchor)
  const scts = [{ log: world.ctLog, time: AT, extensions: Uint8Array.of(1, 2) }]
  const own = new SignerWorld(mintSigner({ issuer: middle, scts }))
  const root = own.rootWith([middle, anchor])
  root.ctlogs = [...world.trustedRoot().ctlogs]
  const document = own.bundle()
  const ours = (await judgeBundle(document, root)).status
  expect({ ours, theirs: theirVerdict(document, root) }).toEqual({
    ours: expected,
    theirs: expected,
  })
})
