import { generateKeyPairSync, sign } from 'node:crypto'
import { type Bytes, utf8 } from '#shared/bytes.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import { mintSigner, SignerWorld } from '#test/fakes/fulcio.ts'
import { mintIntermediate, mintRoot } from '#test/fakes/pki.ts'
import { ARTIFACT, ISSUER, type Json, SIGNED_AT, SUBJECT } from '#test/fakes/sigstore.ts'
import { type Bench, measure, type Row } from './measure.ts'

/** A keyless verification when its chain is known, in P-384 signatures: 5 ms where one takes 0.8 ms. */
const KEYLESS_TARGET = 6

/** Keyless verification beside one P-384 signature, which is the largest part of it that nobody can leave out. */
export async function signatureRows(): Promise<Row[]> {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const message = utf8('a message')
  const signature = new Uint8Array(sign('sha384', message, pair.privateKey))
  const key = await importVerifyingKey(
    new Uint8Array(pair.publicKey.export({ type: 'spki', format: 'der' })),
  )
  const baseline: Bench = {
    name: 'baseline: one P-384 signature in WebCrypto',
    run: () => key.verify(message, signature),
  }
  const { keyless, rekor2, load } = await keylessBenches()
  return measure(baseline, [keyless, rekor2, load])
}

/** Why the row of a keyless verification misses its target, or undefined. */
export function signatureFault(rows: readonly Row[]): string | undefined {
  const slow = rows.find(({ name, ratio }) => isWarm(name) && ratio > KEYLESS_TARGET)
  return slow && `${slow.name}: more than ×${KEYLESS_TARGET}`
}

const isWarm = (name: string) => name.startsWith('keyless:')

/** The same shape as the public-good instance: a root and an intermediate on P-384, everything else on P-256. */
async function keylessBenches(): Promise<Record<'keyless' | 'rekor2' | 'load', Bench>> {
  const root = mintRoot({ spec: 'P-384', hash: 'sha384' })
  const middle = mintIntermediate(root, { spec: 'P-384', hash: 'sha384' })
  const plain = new SignerWorld(mintSigner({ issuer: middle, hash: 'sha384' }))
  const scts = [{ log: plain.ctLog, time: SIGNED_AT * 1000 }]
  const signer = mintSigner({ issuer: middle, hash: 'sha384', scts })
  const document = plain.rootWith([middle, root])
  const text = utf8(JSON.stringify(document))
  const trust = await loadTrustedRoot(text)
  const identity = await createIdentityMatcher([{ issuer: ISSUER, subject: SUBJECT }])
  const verify = (bundle: Json) => {
    const json = utf8(JSON.stringify(bundle))
    const artifact = { bytes: ARTIFACT as Bytes }
    return async () => {
      const verdict = await verifyBundle(json, { artifact, trust, signer: { identity }, now: 0 })
      if (verdict.status !== 'verified') throw new TypeError(JSON.stringify(verdict))
    }
  }
  plain.leaf = () => signer.der
  return {
    keyless: { name: 'keyless: Rekor v1, chain known', run: verify(plain.bundle()) },
    rekor2: {
      name: 'keyless: Rekor v2 and a timestamp, chain known',
      run: verify(plain.bundle({ rekor: 'v2' })),
    },
    load: { name: 'a trusted root, loaded', run: () => loadTrustedRoot(text), runs: 20 },
  }
}
