import path from 'node:path'
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild'
import type { Config } from '#functions/config.ts'
import { type Deployment, formatDeployment } from '#functions/deployment.ts'
import { contextNeeds } from '#shared/policy/outside.ts'
import { draftOf, type PolicyAttestor } from '#shared/policy/types.ts'
import type { AttestorDraft } from '#shared/signature/types.ts'
import { demandOurs, type NewBundle, removeBundle, replaceBundles } from './bundle-folders.ts'
import { mergeStart } from './merge-start.ts'
import { packageRoot } from './package.ts'

/** What is built: a Lambda function for each phase and one for image reviews, and one Worker with all of it. */
export type BundleName = 'lambda/mutate' | 'lambda/validate' | 'lambda/image-review' | 'worker'

/** One bundle as it was written. Sizes are bytes of minified code, without the deployment. */
export interface BundleReport {
  name: BundleName
  /** The module to start with. */
  entry: string
  /** The deployment in it, bytes. */
  deploymentBytes: number
  /** What is loaded at the start. */
  eagerBytes: number
  /** Everything but the KMS client. */
  ownBytes: number
  /** Everything. */
  totalBytes: number
  /** It holds what any policy may need: its policies come from bundles. */
  forAnyPolicy?: true
}

export interface BundleOptions {
  deployment: Deployment
  /** Folder to write into; `lambda/…` and `worker/` in it are replaced. */
  outDir: string
  /** All of them when absent. */
  names?: readonly BundleName[]
}

const BUNDLE_NAMES: readonly BundleName[] = [
  'lambda/mutate',
  'lambda/validate',
  'lambda/image-review',
  'worker',
]

const ENTRIES: Readonly<Record<BundleName, string>> = {
  'lambda/mutate': 'lambda-mutate.ts',
  'lambda/validate': 'lambda-validate.ts',
  'lambda/image-review': 'lambda-image-review.ts',
  worker: 'worker.ts',
}
const KMS_CLIENT = '@aws-sdk/client-kms'
/** The part of the key cache that is for AWS KMS, as it imports it. */
const AWS_MODULE = './kms-aws.ts'
/** The part of the key cache, and of the ports, that is for Vault: as both import it. */
const VAULT_MODULE = './kms-vault.ts'
/** As `signature/verify.ts` imports it. */
const NOTARY_MODULE = './notary/image.ts'
/** As `signature/check.ts` imports them. */
const SIGSTORE_MODULES = ['./sigstore/check.ts', './sigstore/attestor.ts']
/** As `signature/revocation/load.ts` imports it. */
const REVOCATION_MODULE = './lookup.ts'
/** As `signature/attestation.ts` imports them. */
const ATTESTATION_MODULES = ['./attestation-statement.ts', './attestation-payload.ts']
const REFERRER_MODULE = './attestation-referrer.ts'
/** As `events.ts` imports it. */
const SINKS_MODULE = './sinks/set.ts'
/** As `policy/prepare.ts` and `engine/answers.ts` import them. */
const UNRESOLVED_MODULES = ['./attestor-values.ts', './unresolved.ts']
/** What answers policies that ask for more than images, as `engine/answers.ts`, `compose.ts` and `policy/prepare.ts` import it. */
const CONTEXT_MODULES = [
  '../cluster/session.ts',
  './cluster/ports.ts',
  '../cel/library/kyverno-host.ts',
]
/** Parts of it that few of these need, as `cluster/session.ts` and `lambda-platform.ts` import them. */
const CONTEXT_PARTS = { random: './random.ts', yaml: './yaml.ts', gzip: './gzip.ts' }
const AUTHORITIES_MODULE = './cluster/https.ts'
/** As `flows.ts` imports it. */
const IMAGE_REVIEW_MODULE = './image-review-answer.ts'
/** As `policy-bundle/follow.ts` imports it. */
const BUNDLES_MODULE = './keeper.ts'
/** What of Hono no function uses, as Hono imports it: forms, apps inside apps, HTML. */
const UNUSED_OF_HONO: ReadonlyMap<string, readonly string[]> = new Map([
  ['./utils/body.js', ['parseBody']],
  ['./utils/mount.js', ['createMountedRequest']],
  ['./utils/html.js', ['HtmlEscapedCallbackPhase', 'resolveCallback']],
])
const HONO = /[\\/]node_modules[\\/]hono[\\/]/
/** What esbuild calls the virtual module. */
const DEPLOYMENT_MODULE = 'countersign:deployment'
/** Where stubs stand for modules that a deployment never asks for. */
const UNNEEDED = 'countersign-unneeded'
/** Where stubs stand for what nobody uses. */
const UNUSED = 'countersign-unused'

const ROOT = packageRoot()

/** Why there is no Worker of a deployment: Workers trust public authorities only. Undefined when there is one. */
export function noWorkerBecause({ config }: Deployment): string | undefined {
  const index = config.clusters.findIndex(({ api }) => api?.ca !== undefined)
  return index < 0
    ? undefined
    : `no Worker is built: Workers trust public authorities only, and clusters[${index}].api.caFile is one of its own`
}

/**
 * Builds the bundles of a deployment: functions, engine, policies and config, nothing to fetch at run time. One that cannot work is left
 * out, and an older one in its place is gone. All are written or none is. Throws `CONFIG_INVALID` where something else is in the way.
 */
export async function bundleFunctions(options: BundleOptions): Promise<BundleReport[]> {
  const { deployment, outDir, names = BUNDLE_NAMES } = options
  const unmade: BundleName[] = [
    ...(noWorkerBecause(deployment) === undefined ? [] : (['worker'] as const)),
    ...(reviewsImages(deployment.config) ? [] : (['lambda/image-review'] as const)),
  ]
  const wanted = names.filter((name) => !unmade.includes(name))
  for (const name of wanted) await demandOurs(path.resolve(outDir, name))
  const made = await Promise.all(wanted.map((name) => bundle(name, options)))
  await replaceBundles(made)
  for (const name of unmade) await removeBundle(path.resolve(outDir, name))
  return made.map(({ report }) => report)
}

/** True when a cluster asks for image reviews: what answers them is in no other deployment. */
function reviewsImages({ clusters }: Config): boolean {
  return clusters.some(({ imageReview }) => imageReview !== undefined)
}

async function bundle(
  name: BundleName,
  { deployment, outDir }: BundleOptions,
): Promise<NewBundle & { report: BundleReport }> {
  const outdir = path.resolve(outDir, name)
  const { outputFiles, metafile } = await build({
    ...(name === 'worker' ? WORKER : LAMBDA),
    absWorkingDir: ROOT,
    entryPoints: [{ in: path.join('functions', ENTRIES[name]), out: 'index' }],
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    target: 'es2022',
    charset: 'utf8',
    outExtension: { '.js': '.mjs' },
    chunkNames: '[name]-[hash]',
    legalComments: 'external',
    metafile: true,
    write: false,
    logLevel: 'silent',
    plugins: [embed(deployment, name)],
  })
  // Every export of a Worker's module would be taken for a handler.
  const files =
    name === 'worker'
      ? outputFiles
      : await mergeStart(outputFiles, metafile, { banner: BANNER, build })
  return {
    folder: outdir,
    files: files.map(({ path: file, contents }) => ({ name: path.basename(file), contents })),
    report: {
      name,
      entry: path.join(outdir, 'index.mjs'),
      ...measure(metafile),
      ...(deployment.config.policyBundle !== undefined && { forAnyPolicy: true as const }),
    },
  }
}

type Target = Pick<BuildOptions, 'platform' | 'mainFields' | 'conditions' | 'banner' | 'external'>

/** Some CommonJS dependencies of the KMS client ask for built-in modules by `require`. */
const BANNER = "import{createRequire as __cr}from'node:module';const require=__cr(import.meta.url);"

const LAMBDA: Target = {
  platform: 'node',
  mainFields: ['module', 'main'],
  conditions: ['node', 'import'],
  banner: { js: BANNER },
}

const WORKER: Target = {
  platform: 'browser',
  mainFields: ['browser', 'module', 'main'],
  conditions: ['workerd', 'worker', 'browser'],
  external: ['node:*', 'cloudflare:*'],
}

/** Modules that are loaded when first needed, by the specifier they are imported with, and what a deployment lacks that needs none. */
function unneededModules(deployment: Deployment, name: BundleName): ReadonlyMap<string, string> {
  if (deployment.config.policyBundle !== undefined) return unneededWhatever(deployment, name)
  const unneeded = new Map([[BUNDLES_MODULE, 'a policyBundle']])
  if (!reviewsImages(deployment.config)) unneeded.set(IMAGE_REVIEW_MODULE, 'image reviews')
  if (!usesKms(deployment)) unneeded.set(KMS_CLIENT, 'KMS keys')
  if (!keyReferences(deployment).some(isAws)) unneeded.set(AWS_MODULE, 'attestors in KMS')
  if (keyReferences(deployment).every(isAws)) unneeded.set(VAULT_MODULE, 'Vault keys')
  if (!usesNotary(deployment)) unneeded.set(NOTARY_MODULE, 'notary attestors')
  if (!deployment.policies.some(({ attestors }) => attestors.some(isUnresolved))) {
    for (const each of UNRESOLVED_MODULES) unneeded.set(each, 'attestors with expressions')
  }
  if (!looksUpRevocation(deployment)) unneeded.set(REVOCATION_MODULE, 'revocation')
  if (!draftsIn(deployment).some(usesSigstore)) {
    for (const each of SIGSTORE_MODULES) unneeded.set(each, 'certificates, logs and timestamps')
  }
  if (!deployment.config.events?.sinks.length) unneeded.set(SINKS_MODULE, 'sinks of events')
  const attestations = deployment.policies.flatMap((policy) => policy.attestations)
  if (attestations.length === 0) {
    for (const each of ATTESTATION_MODULES) unneeded.set(each, 'attestations')
  }
  if (!attestations.some((attestation) => 'referrer' in attestation)) {
    unneeded.set(REFERRER_MODULE, 'referrers as attestations')
  }
  for (const [specifier, lacking] of unneededContext(deployment)) unneeded.set(specifier, lacking)
  return unneeded
}

/**
 * The same for policies that nobody knows yet: only what the config would have to give is left out, and of Workers the parser of YAML, a fifth of
 * all, unless a policy of the build asks for it. A bundle with a policy that does is then refused.
 */
function unneededWhatever({ config, policies }: Deployment, name: BundleName): Map<string, string> {
  const { clusters, events, http, kms } = config
  const unneeded = new Map<string, string>()
  const readsYaml = policies.some((policy) => contextNeeds(policy).has('yaml'))
  if (name === 'worker' && !readsYaml) unneeded.set(CONTEXT_PARTS.yaml, 'policies that parse YAML')
  if (!reviewsImages(config)) unneeded.set(IMAGE_REVIEW_MODULE, 'image reviews')
  if (kms.vault === undefined) unneeded.set(VAULT_MODULE, 'Vault keys')
  if (!events?.sinks.length) unneeded.set(SINKS_MODULE, 'sinks of events')
  const hasAuthorities = clusters.some(({ api }) => api?.ca !== undefined)
  if (!hasAuthorities && http === undefined) unneeded.set(AUTHORITIES_MODULE, 'other authorities')
  return unneeded
}

/** The same for what policies ask beside images. */
function unneededContext({ config, policies }: Deployment): Map<string, string> {
  const unneeded = new Map<string, string>()
  const needs = new Set(policies.flatMap((policy) => [...contextNeeds(policy)]))
  if (needs.size === 0) {
    for (const each of CONTEXT_MODULES) unneeded.set(each, 'policies that ask for more than images')
  }
  for (const [need, specifier] of Object.entries(CONTEXT_PARTS)) {
    if (!needs.has(need)) unneeded.set(specifier, need)
  }
  const hasAuthorities = config.clusters.some(({ api }) => api?.ca !== undefined)
  if (!hasAuthorities && !needs.has('http')) unneeded.set(AUTHORITIES_MODULE, 'other authorities')
  return unneeded
}

/** Puts the deployment in, and leaves out what nothing in it can ever ask for: the KMS client, Notary Project envelopes, Sigstore. */
function embed(deployment: Deployment, name: BundleName): Plugin {
  const unneeded = unneededModules(deployment, name)
  return {
    name: 'countersign',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^countersign:deployment$/ }, () => ({
        path: 'deployment',
        namespace: 'countersign',
      }))
      onLoad({ filter: /^deployment$/, namespace: 'countersign' }, () => ({
        contents: `export const text = ${JSON.stringify(formatDeployment(deployment))}`,
        loader: 'js',
      }))
      onResolve({ filter: /./ }, ({ path: specifier, importer }) => {
        const lacking = unneeded.get(specifier)
        if (lacking !== undefined) return { path: lacking, namespace: UNNEEDED }
        const isUnused = UNUSED_OF_HONO.has(specifier) && HONO.test(importer)
        return isUnused ? { path: specifier, namespace: UNUSED } : undefined
      })
      onLoad({ filter: /./, namespace: UNUSED }, ({ path: specifier }) => {
        const names = (UNUSED_OF_HONO.get(specifier) ?? []).map((name) => `unused as ${name}`)
        const throwing = "function unused() { throw new Error('functions do not use this') }"
        return { contents: `${throwing}\nexport { ${names} }`, loader: 'js' }
      })
      onLoad({ filter: /./, namespace: UNNEEDED }, ({ path: lacking }) => ({
        contents: `throw new Error('this bundle was built for a deployment without ${lacking}')`,
        loader: 'js',
      }))
    },
  }
}

/** True for an attestor that is more than a key: one with certificates, or whose signatures somebody has to have witnessed. */
function usesSigstore(attestor: AttestorDraft): boolean {
  const { kind } = attestor
  return kind === 'cosign-key' ? attestor.trust !== undefined : kind !== 'notary'
}

/** True when functions ask AWS KMS: for the sealing key, or a key of any policy that is not pinned. */
function usesKms(deployment: Deployment): boolean {
  const { key } = deployment.config.outcomes
  if (key.kind === 'kms') return true
  const isPinned =
    deployment.config.kms.pinned !== undefined &&
    !deployment.policies.some(({ attestors }) => attestors.some(isUnresolved))
  return !isPinned && keyReferences(deployment).some(isAws)
}

/** Of the two services that policies can name. */
const isAws = (reference: string): boolean => reference.startsWith('awskms:')

/** The references of all attestors, each as often as it stands there. */
export function keyReferences(deployment: Pick<Deployment, 'config' | 'policies'>): string[] {
  return draftsIn(deployment).flatMap((attestor) =>
    attestor.kind === 'cosign-key' && 'kms' in attestor.key ? [attestor.key.kms] : [],
  )
}

/** True when an attestor of any policy verifies Notary Project signatures. */
function usesNotary(deployment: Deployment): boolean {
  return draftsIn(deployment).some(({ kind }) => kind === 'notary')
}

function looksUpRevocation(deployment: Deployment): boolean {
  return draftsIn(deployment).some(
    (attestor) => attestor.kind === 'notary' && attestor.revocation !== undefined,
  )
}

/** Every attestor of every policy, without what only requests give some of them. */
function draftsIn({ policies }: Pick<Deployment, 'policies'>): AttestorDraft[] {
  return policies.flatMap(({ attestors }) => attestors.map(draftOf))
}

function isUnresolved({ kind }: PolicyAttestor): boolean {
  return kind === 'unresolved'
}

function measure({ outputs }: Metafile): Omit<BundleReport, 'name' | 'entry'> {
  const start = Object.keys(outputs).find((file) => path.basename(file) === 'index.mjs') ?? ''
  const isKms = (file: string) => outputs[file]?.entryPoint?.includes(KMS_CLIENT) ?? false
  const bytesOf = (follow: (kind: string, file: string) => boolean) => {
    const reached = new Set([start])
    for (const file of reached) {
      for (const found of outputs[file]?.imports ?? []) {
        if (!found.external && follow(found.kind, found.path)) reached.add(found.path)
      }
    }
    return [...reached].reduce((sum, file) => sum + (outputs[file]?.bytes ?? 0), 0)
  }
  // It is in what is loaded at the start, and so in all three.
  const deploymentBytes = Object.values(outputs).reduce(
    (sum, { inputs }) => sum + (inputs[DEPLOYMENT_MODULE]?.bytesInOutput ?? 0),
    0,
  )
  return {
    deploymentBytes,
    eagerBytes: bytesOf((kind) => kind !== 'dynamic-import') - deploymentBytes,
    ownBytes: bytesOf((_, file) => !isKms(file)) - deploymentBytes,
    totalBytes: bytesOf(() => true) - deploymentBytes,
  }
}
