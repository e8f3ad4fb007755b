import { type Command, Option } from 'commander'
import { readText } from '#functions/files.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { CosignSpec } from '#shared/policy/attestors.ts'
import { cosignAttestor, type TrustSources } from '#shared/policy/cosign.ts'
import { type KmsSettings, resolveKeyReference } from '#shared/signature/kms-reference.ts'
import type { Attestor } from '#shared/signature/types.ts'

/** Whose signature an image has to have, without a policy: the options of `cosign verify`. */
export interface SignerOptions {
  key?: string
  certificateIdentity?: string
  certificateIdentityRegexp?: string
  certificateOidcIssuer?: string
  certificateOidcIssuerRegexp?: string
  certificate?: string
  certificateChain?: string
  trustedRoot?: string
  insecureIgnoreTlog?: true
  insecureIgnoreSct?: true
  annotation?: string[]
  annotations?: string[]
}

/** The command with these options added. */
export function withSignerOptions(command: Command): Command {
  return command
    .option(
      '--key <file|reference>',
      'one key instead: a PEM public key, or a key in AWS KMS (awskms://…) or Vault (hashivault://name)',
    )
    .option('--certificate-identity <name>', "keyless: the whole of one of the certificate's names")
    .option('--certificate-identity-regexp <regexp>', 'the same, RE2; write ^…$ for all of a name')
    .option('--certificate-oidc-issuer <url>', 'keyless: the whole issuer of the identity token')
    .option('--certificate-oidc-issuer-regexp <regexp>', 'the same, RE2')
    .option(
      '--certificate <file>',
      "PEM of the signer's certificate, from an authority of one's own",
    )
    .option('--certificate-chain <file>', 'PEM of the certificates above it, up to the root')
    .option(
      '--trusted-root <file>',
      "who has to have witnessed signatures (default for identities: $COUNTERSIGN_TRUSTED_ROOT, then Sigstore's public-good instance; for keys and certificates: nobody)",
    )
    .option('--insecure-ignore-tlog', 'ask for no entry in a transparency log')
    .option('--insecure-ignore-sct', 'ask for no signed certificate timestamp')
    .option('-a, --annotation <key=value...>', 'what has to be signed beside the image')
    .addOption(new Option('--annotations <key=value...>').hideHelp())
}

/** The attestor that the options describe, or undefined when they name no signer. Throws AdmissionError for what is wrong with them. */
export async function attestorOf(
  options: SignerOptions,
  kms: KmsSettings,
  sources: TrustSources,
): Promise<Attestor | undefined> {
  const { certificate, certificateChain, trustedRoot } = options
  const kinds = [
    options.key !== undefined && 'key',
    isIdentity(options) && 'identity',
    (certificate ?? certificateChain) !== undefined && 'certificate',
  ].filter((kind) => kind !== false)
  const [name, ...more] = kinds
  if (more.length > 0) {
    throw invalid('give only one of --key, --certificate-identity and --certificate')
  }
  if (name === undefined) {
    if (isExtra(options))
      throw invalid('--annotation and --insecure-… say nothing without a signer')
    return undefined
  }
  const isUnwitnessed = name !== 'identity' && trustedRoot === undefined
  const annotations = annotationsOf([...(options.annotation ?? []), ...(options.annotations ?? [])])
  const cosign: CosignSpec = {
    ...(await signerOf(options, kms)),
    annotations,
    ctlog: {
      insecureIgnoreTlog: isUnwitnessed || options.insecureIgnoreTlog === true,
      insecureIgnoreSCT: isUnwitnessed || options.insecureIgnoreSct === true,
    },
  }
  return cosignAttestor({ name, cosign }, [], sources)
}

function isIdentity(options: SignerOptions): boolean {
  return [
    options.certificateIdentity,
    options.certificateIdentityRegexp,
    options.certificateOidcIssuer,
    options.certificateOidcIssuerRegexp,
  ].some((option) => option !== undefined)
}

/** True when something is said about a signature, but not whose it has to be. */
function isExtra({ annotation, annotations, ...options }: SignerOptions): boolean {
  const { insecureIgnoreTlog, insecureIgnoreSct } = options
  return (annotation ?? annotations ?? insecureIgnoreTlog ?? insecureIgnoreSct) !== undefined
}

async function signerOf(
  options: SignerOptions,
  kms: KmsSettings,
): Promise<Pick<CosignSpec, 'key' | 'keyless' | 'certificate'>> {
  const { key, certificate, certificateChain } = options
  if (key !== undefined) return { key: await keyOf(key, kms) }
  if (isIdentity(options)) {
    const identity = {
      ...field('subject', options.certificateIdentity),
      ...field('subjectRegExp', options.certificateIdentityRegexp),
      ...field('issuer', options.certificateOidcIssuer),
      ...field('issuerRegExp', options.certificateOidcIssuerRegexp),
    }
    return { keyless: { identities: [identity] } }
  }
  return {
    certificate: {
      ...(certificate === undefined ? {} : { cert: { value: await pemOf(certificate) } }),
      ...(certificateChain === undefined
        ? {}
        : { certChain: { value: await pemOf(certificateChain) } }),
    },
  }
}

async function keyOf(key: string, kms: KmsSettings): Promise<NonNullable<CosignSpec['key']>> {
  if (!/^[a-z0-9]+:\/\//i.test(key)) return { data: (await readText(key, 'KEY_INVALID')).text }
  // Without a region or a Vault nobody could be asked, which is better said now.
  resolveKeyReference(key, kms)
  return { kms: key }
}

async function pemOf(file: string): Promise<string> {
  return (await readText(file, 'CONFIG_INVALID')).text
}

function field<K extends string>(name: K, value: string | undefined): { [key in K]?: string } {
  // One member of this name, or none.
  return (value === undefined ? {} : { [name]: value }) as { [key in K]?: string }
}

function annotationsOf(pairs: readonly string[]): Record<string, string> {
  const annotations: Record<string, string> = Object.create(null)
  for (const pair of pairs) {
    const [, key = '', value = ''] = /^([^=]+)=([\s\S]*)$/.exec(pair) ?? []
    if (key === '') throw invalid(`--annotation ${JSON.stringify(pair)}: expected key=value`)
    annotations[key] = value
  }
  return annotations
}

function invalid(reason: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', reason)
}
