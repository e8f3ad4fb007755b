import { createPublicKey } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { Command } from 'commander'
import { readText } from '#functions/files.ts'
import { verifyDigest } from '#functions/local/kms-digest.ts'
import { publicGoodSeed } from '#functions/trust/seed.ts'
import { type Bytes, fromHex } from '#shared/bytes.ts'
import { AdmissionError } from '#shared/errors.ts'
import { MAX_BLOB_BYTES, MAX_TRUSTED_ROOT_BYTES } from '#shared/limits.ts'
import { importVerifyingKey } from '#shared/signature/key.ts'
import { publicKeyFromPem } from '#shared/signature/pem.ts'
import { createIdentityMatcher } from '#shared/signature/sigstore/identity.ts'
import { loadTrustedRoot } from '#shared/signature/sigstore/trusted-root.ts'
import type { Artifact, SigstoreSigner } from '#shared/signature/sigstore/types.ts'
import { verifyBundle } from '#shared/signature/sigstore/verify.ts'
import type { Cli, ExitCode, Io } from './io.ts'

interface VerifyBundleOptions {
  bundle: string
  certificateIdentity?: string
  certificateOidcIssuer?: string
  key?: string
  trustedRoot?: string
}

/** The artifact, bytes: it is hashed in memory. */
const MAX_ARTIFACT_BYTES = 2 ** 30

/** `countersign verify-bundle`: the verify protocol of the Sigstore client conformance suite. */
export function verifyBundleCommand(cli: Cli): Command {
  return new Command('verify-bundle')
    .description('Verify a Sigstore bundle over a file or digest against a trusted root, offline.')
    .argument('<file|digest>', 'the signed file, or its digest as sha256:<hex>')
    .requiredOption('--bundle <file>', 'the Sigstore bundle, version 0.1 to 0.3')
    .option('--certificate-identity <name>', "the whole of one of the certificate's names")
    .option('--certificate-oidc-issuer <url>', 'the whole issuer of the identity token')
    .option('--key <file>', 'a PEM public key instead of an identity')
    .option(
      '--trusted-root <file>',
      "the trusted root (default: $COUNTERSIGN_TRUSTED_ROOT, then Sigstore's public-good instance)",
    )
    .addHelpText('after', HELP)
    .action(
      cli.action('verify-bundle', (artifact: string, options: VerifyBundleOptions) =>
        verify(cli.io, artifact, options),
      ),
    )
}

async function verify(io: Io, named: string, options: VerifyBundleOptions): Promise<ExitCode> {
  const signer = await signerOf(options)
  const rootFile = options.trustedRoot ?? io.env.COUNTERSIGN_TRUSTED_ROOT
  const root = rootFile
    ? await readBytes(rootFile, MAX_TRUSTED_ROOT_BYTES)
    : publicGoodSeed().trustedRoot
  const trust = await loadTrustedRoot(root)
  const bundle = await readBytes(options.bundle, MAX_BLOB_BYTES)
  const artifact = await artifactOf(named)
  const verdict = await verifyBundle(bundle, { artifact, trust, signer, now: Date.now() })
  switch (verdict.status) {
    case 'verified':
      io.out(`verified: ${verdict.signer}\n`)
      return 0
    case 'rejected':
      io.err(`countersign verify-bundle: rejected: ${verdict.reason}\n`)
      return 1
    case 'inconclusive':
      io.err(`countersign verify-bundle: could not be told: ${verdict.error.message}\n`)
      return 1
  }
}

async function signerOf(options: VerifyBundleOptions): Promise<SigstoreSigner> {
  const { key, certificateIdentity: subject, certificateOidcIssuer: issuer } = options
  if (key !== undefined) {
    if (subject !== undefined || issuer !== undefined) {
      throw new AdmissionError('CONFIG_INVALID', 'give either --key or an identity, not both')
    }
    const { text } = await readText(key, 'KEY_INVALID')
    const spki = publicKeyFromPem(text)
    return { key: await importVerifyingKey(spki), spki }
  }
  if (!subject || !issuer) {
    throw new AdmissionError(
      'CONFIG_INVALID',
      'give --certificate-identity and --certificate-oidc-issuer, or --key',
    )
  }
  return { identity: await createIdentityMatcher([{ subject, issuer }]) }
}

/** A file of the name, else the digest it spells. */
async function artifactOf(named: string): Promise<Artifact> {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(named) ?? []
  const value = hex === undefined ? undefined : fromHex(hex)
  if (value === undefined) return { bytes: await readBytes(named, MAX_ARTIFACT_BYTES) }
  return { digest: { algorithm: 'sha256', value }, verifyDigest: verifyDigestOf }
}

/** Neither WebCrypto nor node:crypto verifies over a digest; Ed25519 hashes the message itself, so nobody can. */
const verifyDigestOf: NonNullable<Extract<Artifact, { digest: unknown }>['verifyDigest']> = (
  publicKey,
  _algorithm,
  digest,
  signature,
) => {
  const key = createPublicKey({ key: Buffer.from(publicKey), format: 'der', type: 'spki' })
  switch (key.asymmetricKeyType) {
    case 'ec':
      return verifyDigest(key, 'ECDSA', digest, signature)
    case 'rsa':
      return verifyDigest(key, 'RSASSA_PKCS1_V1_5', digest, signature)
    default:
      throw new AdmissionError(
        'KEY_INVALID',
        `${key.asymmetricKeyType} signatures need the file itself, not its digest`,
      )
  }
}

async function readBytes(file: string, maxBytes: number): Promise<Bytes> {
  try {
    const { size } = await stat(file)
    if (size > maxBytes) {
      throw new AdmissionError('CONFIG_INVALID', `${file} is larger than ${maxBytes} bytes`)
    }
    return new Uint8Array(await readFile(file))
  } catch (thrown) {
    if (thrown instanceof AdmissionError) throw thrown
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw new AdmissionError('CONFIG_INVALID', `cannot read ${file}: ${reason}`, { cause: thrown })
  }
}

const HELP = `
Nothing is downloaded: without --trusted-root or $COUNTERSIGN_TRUSTED_ROOT it is the public-good
instance as it was when this program was made; \`countersign trust\` writes the current one. How many
log entries, times and certificate logs a signature needs is the trusted root's to say, one of each
kind it names.

Exit codes: 0 verified, 1 not verified or could not be told, 2 bad input. Reasons go to stderr.

Examples:
  $ countersign verify-bundle --bundle app.sigstore.json --trusted-root trusted_root.json \\
      --certificate-identity https://ci.example.com/shop/api/release.yml@refs/heads/main \\
      --certificate-oidc-issuer https://token.actions.githubusercontent.com app.tar.gz
  $ countersign verify-bundle --bundle app.sigstore.json --trusted-root trusted_root.json \\
      --key cosign.pub sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
`
