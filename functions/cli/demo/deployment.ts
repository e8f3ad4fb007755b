import path from 'node:path'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import { type Deployment, formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { toFault } from '#functions/files.ts'
import { ISSUER, type LocalSigstore, SUBJECT } from '#functions/local/sigstore/authority.ts'
import { AdmissionError } from '#shared/errors.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { hashOf } from '../token.ts'
import { builtImages } from './built-images.ts'
import { EXCUSED_POLICY, exceptionTexts } from './excuses.ts'
import { POLICY_FILE, POLICY_TEXT } from './policy.ts'
import { REVIEWED_POLICY, reviewed } from './reviewed.ts'

/** Policies of the demo: the one that ships, the same with other validationActions or a workflow instead of a key, one of how images are built, one with exceptions, and one for image reviews. */
export type PolicyName =
  | 'signed-images'
  | 'signed-images-audit'
  | 'signed-images-warn'
  | 'signed-images-keyless'
  | 'signed-images-excused'
  | 'reviewed-images'
  | 'built-images'
export type ClusterName = 'prod-eu' | 'prod-us'

/** What the demo's config points at. */
export interface Surroundings {
  registryHost: string
  kms: { url: string; region: string }
  sigstore: LocalSigstore
  tokens: Readonly<Record<ClusterName, string>>
}

/**
 * The deployment the demo's functions run: policies and config, loaded, checked, and taken through the text that bundles hold. The
 * policy is the one that ships, with its key reference pointed at the local KMS.
 */
export async function demoDeployment(surroundings: Surroundings): Promise<Deployment> {
  const { kms, sigstore } = surroundings
  const host = new URL(kms.url).host
  const text = POLICY_TEXT.replaceAll('awskms:///', `awskms://${host}/`)
  const files = [
    { name: POLICY_FILE, text },
    { name: 'audit.yaml', text: variant(text, 'signed-images-audit', 'Audit') },
    { name: 'warn.yaml', text: variant(text, 'signed-images-warn', 'Warn') },
    { name: 'keyless.yaml', text: keyless(text) },
    { name: 'built.yaml', text: builtImages(MIRROR) },
    { name: 'excused.yaml', text: variant(text, EXCUSED_POLICY, 'Deny') },
    { name: 'reviewed.yaml', text: reviewed(text) },
    { name: 'exceptions.yaml', text: exceptionTexts() },
  ]
  const loaded = await loadPolicies(files, {
    kmsRegion: kms.region,
    kmsEndpoints: [kms.url],
    // What `countersign trust` keeps in a file for a mirror.
    trustedRoot: (mirror) =>
      mirror === MIRROR ? JSON.stringify(sigstore.trustedRoot()) : undefined,
  })
  if (loaded.faults.length > 0) {
    const faults = loaded.faults.map(toFault)
    throw new AdmissionError('POLICY_INVALID', `${POLICY_FILE} does not load`, { faults })
  }
  const config = await demoConfig(surroundings, host)
  return parseDeployment(formatDeployment(await createDeployment(config, loaded.policies)))
}

function variant(text: string, name: PolicyName, action: 'Deny' | 'Audit' | 'Warn'): string {
  return text
    .replace('name: signed-images', `name: ${name}`)
    .replace('validationActions: [Deny]', `validationActions: [${action}]`)
}

/** The policy with an attestor of the release workflow in the place of the release key. */
function keyless(text: string): string {
  const attestor = `      cosign:
        keyless:
          identities:
            - issuer: ${ISSUER}
              subject: ${SUBJECT}
        tuf:
          mirror: ${MIRROR}
`
  return text
    .replace('name: signed-images', 'name: signed-images-keyless')
    .replace(/ {6}cosign:\n(?: {8}.*\n)+/, attestor)
    .replaceAll('signed by the release key', 'signed by the release workflow')
}

async function demoConfig({ registryHost, kms, tokens }: Surroundings, kmsHost: string) {
  const clusters = await Promise.all(
    Object.entries(tokens).map(async ([name, token]) => ({
      name,
      tokens: [await hashOf(token)],
      imageReview: { policies: [REVIEWED_POLICY] },
    })),
  )
  return parseConfig({
    policies: path.dirname(POLICY_FILE),
    endpoint: 'https://127.0.0.1',
    outcomes: { key: { kms: `awskms://${kmsHost}/${SEAL_KEY}` } },
    kms: { region: kms.region, endpoints: [kms.url] },
    registries: { plainHttp: [registryHost] },
    clusters,
  })
}

/** The TUF repository that the demo's own Sigstore would have. Nobody asks it: its trusted root is in the policy once it is loaded. */
const MIRROR = 'https://tuf.example.com'

/** Aliases of the demo's two KMS keys; the first is named in the policy. */
export const RELEASE_KEY = 'alias/countersign-release'
export const SEAL_KEY = 'alias/countersign-seal'
