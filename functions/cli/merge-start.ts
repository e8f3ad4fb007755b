import path from 'node:path'
import type { BuildOptions, BuildResult, Metafile, OutputFile } from 'esbuild'

/** What bundles. */
type Build = (options: BuildOptions & { write: false }) => Promise<BuildResult<{ write: false }>>

/** Where the code of a bundle's files stands in for the files. */
const WRITTEN = 'countersign-written'

/**
 * The files of a bundle with everything its entry loads at the start in the entry itself: a file takes longer to find and open than
 * its code takes to read. What is loaded later keeps the names it imports by: in their places are modules that hand on what is in the
 * entry. `banner` stands at the top of every file; `build` is esbuild's.
 */
export async function mergeStart(
  files: readonly OutputFile[],
  { outputs }: Metafile,
  { banner, build }: { banner: string; build: Build },
): Promise<readonly { path: string; contents: Uint8Array | string }[]> {
  const names = new Map(Object.keys(outputs).map((file) => [path.basename(file), file]))
  const start = startOf(outputs, names.get('index.mjs') ?? '')
  const text = new Map(files.map((file) => [path.basename(file.path), file.text]))
  const exports = [...start].flatMap((name, index) =>
    name === 'index.mjs'
      ? []
      : (outputs[names.get(name) ?? '']?.exports ?? []).map((exported) => ({
          name,
          exported,
          merged: `start${index}_${exported}`,
        })),
  )
  const entry = [
    "export * from './index.mjs'",
    ...exports.map(
      ({ name, exported, merged }) => `export { ${exported} as ${merged} } from './${name}'`,
    ),
  ].join('\n')
  const merged = await bundleWritten(build, entry, (name) =>
    start.has(name) ? (text.get(name) ?? '').replace(banner, '') : undefined,
  )
  return files.map((file) => {
    const name = path.basename(file.path)
    if (name === 'index.mjs') return { path: file.path, contents: `${banner}\n${merged}` }
    if (!start.has(name)) return file
    const handedOn = exports.filter((each) => each.name === name)
    const list = handedOn.map(({ exported, merged: from }) => `${from} as ${exported}`).join(',')
    return { path: file.path, contents: `export{${list}}from"./index.mjs";\n` }
  })
}

/** Names of the files that are loaded with the entry, itself included. */
function startOf(outputs: Metafile['outputs'], entry: string): ReadonlySet<string> {
  const reached = reachedFrom(entry, outputs, (kind) => kind !== 'dynamic-import')
  return new Set([...reached].map((file) => path.basename(file)))
}

/** The outputs that one leads to by the imports that are followed, itself included. */
export function reachedFrom(
  start: string,
  outputs: Metafile['outputs'],
  follow: (kind: string, file: string) => boolean,
): ReadonlySet<string> {
  const reached = new Set([start])
  for (const file of reached) {
    for (const found of outputs[file]?.imports ?? []) {
      if (!found.external && follow(found.kind, found.path)) reached.add(found.path)
    }
  }
  return reached
}

async function bundleWritten(
  build: Build,
  entry: string,
  contentOf: (name: string) => string | undefined,
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: entry, loader: 'js', resolveDir: '/' },
    bundle: true,
    format: 'esm',
    minify: true,
    target: 'es2022',
    charset: 'utf8',
    platform: 'node',
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
    plugins: [
      {
        name: 'written',
        setup(hooks) {
          hooks.onResolve({ filter: /^\.\// }, ({ path: to, kind }) =>
            kind === 'dynamic-import'
              ? { path: to, external: true }
              : { path: to.slice(2), namespace: WRITTEN },
          )
          hooks.onLoad({ filter: /.*/, namespace: WRITTEN }, ({ path: name }) => ({
            contents: contentOf(name) ?? '',
            loader: 'js',
          }))
        },
      },
    ],
  })
  return outputFiles[0]?.text ?? ''
}
