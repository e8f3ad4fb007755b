import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type BundleName, bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { createDeployment } from '#functions/create-deployment.ts'
import type { Deployment } from '#functions/deployment.ts'
import { load } from '#test/shared/policy/documents.ts'
import { hashOf } from './review.ts'

export const TOKEN = 'tokentokentokentokentokentoken22'
/** What the functions find in their environment. The local KMS takes any credentials. */
export const ENV = {
  SEAL: Buffer.alloc(32, 7).toString('base64'),
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'example',
  VAULT_TOKEN: 'hvs.example',
}

/** The validation of a policy whose attestor is `a`. */
export const MUST_BE_SIGNED = {
  expression: 'images.containers.all(image, verifyImageSignatures(image, [attestors.a]) > 0)',
  message: 'not signed',
}

/** What a runtime serves. */
export interface Served {
  deployment: Deployment
  /** `index.mjs` by bundle name. */
  bundles: Readonly<Record<BundleName, string>>
  close(): Promise<void>
}

/** A deployment of documents that must load without a fault, in a config of one cluster with these members. */
export async function deploymentOf(
  documents: readonly object[],
  members: object = {},
  cluster: object = {},
): Promise<Deployment> {
  const { policies, faults } = await load(documents)
  if (faults.length > 0) throw new TypeError(JSON.stringify(faults))
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: [hashOf(TOKEN)], ...cluster }],
    ...members,
  })
  return createDeployment(config, policies)
}

/** A deployment with its bundles, which are there until it is closed. */
export async function serve(deployment: Deployment): Promise<Served> {
  const outDir = await mkdtemp(path.join(tmpdir(), 'countersign-contract-'))
  const reports = await bundleFunctions({ deployment, outDir })
  // Every name was asked for.
  const bundles = Object.fromEntries(
    reports.map(({ name, entry }) => [name, entry]),
  ) as Served['bundles']
  return { deployment, bundles, close: () => rm(outDir, { recursive: true }) }
}
