import path from 'node:path'
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild'
import { type Deployment, formatDeployment } from '#functions/deployment.ts'
import { demandOurs, type NewBundle, removeBundle, replaceBundles } from './bundle-folders.ts'
import { KMS_CLIENT, reviewsImages, unneededModules } from './bundle-needs.ts'
import { mergeStart, reachedFrom } from './merge-start.ts'
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

/** Puts the deployment in, and leaves out what nothing in it can ever ask for: the KMS client, Notary Project envelopes, Sigstore. */
function embed(deployment: Deployment, name: BundleName): Plugin {
  const unneeded = unneededModules(deployment, name === 'worker')
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

function measure({ outputs }: Metafile): Omit<BundleReport, 'name' | 'entry'> {
  const start = Object.keys(outputs).find((file) => path.basename(file) === 'index.mjs') ?? ''
  const isKms = (file: string) => outputs[file]?.entryPoint?.includes(KMS_CLIENT) ?? false
  const bytesOf = (follow: (kind: string, file: string) => boolean) =>
    [...reachedFrom(start, outputs, follow)].reduce(
      (sum, file) => sum + (outputs[file]?.bytes ?? 0),
      0,
    )
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
