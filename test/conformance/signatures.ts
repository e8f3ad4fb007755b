import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { toAdmissionError } from '#shared/errors.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { publicKeyFromPem } from '#shared/signature/pem.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import type { BundleVerdict, SigstoreSigner } from '#shared/signature/sigstore/types.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import type { SuiteResult } from '#test/conformance/cel.ts'

/** Whom the bundles are signed by unless their folder says otherwise. */
const ISSUER = 'https://token.actions.githubusercontent.com'
const IDENTITY =
  'https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main'

/** Bundles of the Sigstore client conformance suite; those whose folder ends in `_fail` have to be refused. */
export async function runSigstoreBundles(casesDir: string): Promise<SuiteResult> {
  const dir = join(casesDir, 'signatures', 'sigstore-bundles')
  const failures: { id: string; expected: string; got: string }[] = []
  let passed = 0
  for (const { name } of readdirSync(dir, { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  )) {
    const expected = name.endsWith('_fail') ? 'refused' : 'verified'
    const verdict = await judge(dir, name)
    const got = verdict.status === 'verified' ? 'verified' : 'refused'
    if (got === expected) passed++
    else failures.push({ id: name, expected, got: textOf(verdict) })
  }
  return { passed, failed: failures.length, known: 0, skipped: 0, failures }
}

async function judge(dir: string, name: string): Promise<BundleVerdict> {
  const at = (file: string) => join(dir, name, file)
  const read = (file: string, otherwise: string) =>
    new Uint8Array(readFileSync(existsSync(at(file)) ? at(file) : otherwise))
  const text = (file: string, otherwise: string) =>
    existsSync(at(file)) ? readFileSync(at(file), 'utf8').trim() : otherwise
  try {
    const trust = await loadTrustedRoot(
      read('trusted_root.json', join(dir, '..', 'trusted_root.json')),
    )
    const signer = existsSync(at('key.pub'))
      ? await keySigner(text('key.pub', ''))
      : {
          identity: await createIdentityMatcher([
            { issuer: text('issuer', ISSUER), subject: text('identity', IDENTITY) },
          ]),
        }
    const artifact = { bytes: read('artifact', join(dir, 'a.txt')) }
    const bundle = read('bundle.sigstore.json', '')
    return await verifyBundle(bundle, { artifact, trust, signer, now: Date.now() })
  } catch (thrown) {
    return { status: 'inconclusive', error: toAdmissionError(thrown, 'reading the case') }
  }
}

async function keySigner(pem: string): Promise<SigstoreSigner> {
  const spki = publicKeyFromPem(pem)
  return { key: await importVerifyingKey(spki), spki }
}

function textOf(verdict: BundleVerdict): string {
  switch (verdict.status) {
    case 'verified':
      return 'verified'
    case 'rejected':
      return `refused: ${verdict.reason}`
    case 'inconclusive':
      return `refused: ${verdict.error.message}`
  }
}
