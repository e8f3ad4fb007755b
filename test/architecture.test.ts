import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'

/** Import direction (design.md 3): what stands left never imports what stands right of it. */
const LAYERS = [
  ['errors', 'limits', 'bytes', 'json', 'yaml', 'cache', 'ports'],
  ['admission'],
  ['cel'],
  ['image'],
  ['registry', 'cluster'],
  ['signature'],
  ['outcome'],
  ['policy'],
  ['engine'],
  ['webhook', 'chain', 'scan', 'report'],
  ['functions'],
]

/** Packages that one of our files imports at most, because everybody else goes through that file. */
const SINGLE_IMPORTER = ['@aws-sdk/client-kms', '@hono/node-server', 'esbuild']

/** What answers `yaml.parse` of a policy, and whoever loads it when one asks: a bundle holds it for deployments with such a policy only. */
const YAML_OF_POLICIES = 'shared/cluster/yaml.ts'

/** Packages that the engine may use, all of them neutral of runtimes. `yaml` reads policies and is in no function that has none which parse YAML. */
const SHARED_PACKAGES = ['@noble/hashes', 'p-limit', 'yaml']

/** Other implementations of CEL, there to be measured beside ours. */
const BENCH_ONLY = ['@marcbachmann/cel-js', '@bufbuild/cel']

/** Another implementation of RE2, there to be asked and to be measured beside ours. */
const TESTS_ONLY = ['re2js']

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Import {
  from: string
  /** A file below the root, or the bare name of a package or builtin. */
  to: string
  /** True when nothing of it is left at run time. */
  isType: boolean
  isDynamic: boolean
}

const STATEMENT =
  /^(?:import|export)\s+(?<type>type\s)?(?<clause>[^'";]*?\sfrom\s+)?['"](?<name>[^'"]+)['"]|(?<dynamic>import)\(\s*['"](?<target>[^'"]+)['"]\s*\)/gm

async function sources(folder: string): Promise<string[]> {
  const names = await readdir(path.join(ROOT, folder), { recursive: true })
  return names
    .filter((name) => name.endsWith('.ts'))
    .map((name) => path.posix.join(folder, name.split(path.sep).join('/')))
}

async function importsOf(file: string): Promise<Import[]> {
  const text = await readFile(path.join(ROOT, file), 'utf8')
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '')
  return [...code.matchAll(STATEMENT)].map(({ groups = {} }) => {
    const { type, clause = '', name = '', target, dynamic } = groups
    return {
      from: file,
      to: resolve(file, target ?? name),
      isType: type !== undefined || isAllTypes(clause),
      isDynamic: dynamic !== undefined,
    }
  })
}

/** True for `{ type A, type B } from`. */
function isAllTypes(clause: string): boolean {
  const names = /\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(',')
    .map((part) => part.trim())
    .filter(Boolean)
  return names !== undefined && names.length > 0 && names.every((name) => name.startsWith('type '))
}

function resolve(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(file), specifier)
  if (specifier.startsWith('#')) return specifier.slice(1)
  if (specifier.startsWith('node:')) return specifier
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** The layer of a file: its folder below `shared/`, a root file's own name, or `functions`. */
function layerOf(file: string): number {
  const [top, second = ''] = file.split('/')
  const name = top === 'functions' ? top : second.replace(/\.ts$/, '')
  return LAYERS.findIndex((layer) => layer.includes(name))
}

const isOurs = (name: string) => /^(shared|functions)\//.test(name)

describe('architecture', () => {
  let files: string[]
  let imports: Import[]
  beforeAll(async () => {
    files = [...(await sources('shared')), ...(await sources('functions'))]
    imports = (await Promise.all(files.map(importsOf))).flat()
  })

  test('every file has its place in the layers', () => {
    expect(files.length).toBeGreaterThan(100)
    expect(files.filter((file) => layerOf(file) < 0)).toEqual([])
  })

  test('every import that is ours leads to a file', () => {
    const known = new Set(files)
    expect(imports.filter(({ to }) => isOurs(to) && !known.has(to))).toEqual([])
  })

  test('no import goes from left to right, types included', () => {
    const upward = imports.filter(({ from, to }) => isOurs(to) && layerOf(from) < layerOf(to))
    expect(upward.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
  })

  test('no import goes in a circle at run time', () => {
    const edges = new Map<string, string[]>()
    for (const { from, to, isType } of imports) {
      if (isOurs(to) && !isType) edges.set(from, [...(edges.get(from) ?? []), to])
    }
    expect(circlesOf(edges)).toEqual([])
  })

  test('the engine imports nothing of Node and only packages that run everywhere', () => {
    const foreign = imports.filter(
      ({ from, to }) =>
        from.startsWith('shared/') && !to.startsWith('shared/') && !SHARED_PACKAGES.includes(to),
    )
    expect(foreign.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
  })

  test('the engine reads no environment and knows no clock of its own', async () => {
    const shared = files.filter((file) => file.startsWith('shared/'))
    const found = await Promise.all(
      shared.map(async (file) => {
        const text = await readFile(path.join(ROOT, file), 'utf8')
        const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        return /\bDate\.now\b|\bnew Date\(\)|\bprocess\.|\bglobalThis\.process/.test(code)
          ? [file]
          : []
      }),
    )
    expect(found.flat()).toEqual([])
  })

  test.each(SINGLE_IMPORTER)('%s has one importer in the product at most', (name) => {
    // Embedded parts and commands are no part of a function.
    const product = imports.filter(
      ({ from, to }) => to === name && !/^functions\/(local|cli)\//.test(from),
    )
    const importers = new Set(product.filter(({ isType }) => !isType).map(({ from }) => from))
    expect([...importers].slice(1)).toEqual([])
  })

  test.each(BENCH_ONLY)('%s is imported by the benchmark only', async (name) => {
    const tests = (await Promise.all((await sources('test')).map(importsOf))).flat()
    const importers = [...imports, ...tests].filter(({ to }) => to === name)
    const elsewhere = importers.filter(({ from }) => !from.startsWith('test/bench/'))
    expect(elsewhere.map(({ from }) => from)).toEqual([])
  })

  test.each(TESTS_ONLY)('%s is imported by tests only', (name) => {
    expect(imports.filter(({ to }) => to === name).map(({ from }) => from)).toEqual([])
  })

  test('functions never load what compiles policies', () => {
    const compilers = ['shared/policy/load.ts', 'shared/cel/parse.ts', 'shared/cel/check.ts']
    for (const entry of ['lambda-mutate.ts', 'lambda-validate.ts', 'worker.ts']) {
      const others = imports.filter(({ to }) => to !== YAML_OF_POLICIES)
      const loaded = reachableFrom(`functions/${entry}`, others)
      expect(compilers.filter((file) => loaded.has(file))).toEqual([])
      expect([...loaded].filter((name) => ['yaml', 'commander', 'esbuild'].includes(name))).toEqual(
        [],
      )
    }
  })

  test('what parses YAML for policies is loaded when one asks', () => {
    const importers = imports.filter(({ to }) => to === YAML_OF_POLICIES)
    expect(importers.map(({ from, isDynamic }) => ({ from, isDynamic }))).toEqual([
      { from: 'shared/cluster/session.ts', isDynamic: true },
    ])
  })

  test('no function refreshes a trusted root, and the command line loads what does when it is asked to', () => {
    const isTuf = (name: string) => /^(tuf-js|@tufjs|@sigstore\/tuf)(\/|$)/.test(name)
    for (const entry of ['lambda-mutate.ts', 'lambda-validate.ts', 'worker.ts', 'node.ts']) {
      const loaded = [...reachableFrom(`functions/${entry}`, imports)]
      expect(loaded.filter((name) => isTuf(name) || name === 'functions/trust/store.ts')).toEqual(
        [],
      )
    }
    const atOnce = imports.filter(({ to, isType, isDynamic }) => isTuf(to) && !isType && !isDynamic)
    expect(atOnce.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
    expect(imports.filter(({ to }) => to === 'tuf-js')).not.toEqual([])
  })

  test('tests of the product are imported by nobody', () => {
    expect(imports.filter(({ to }) => to.startsWith('test/'))).toEqual([])
  })
})

function reachableFrom(entry: string, imports: readonly Import[]): Set<string> {
  const reached = new Set([entry])
  for (const file of reached) {
    for (const { from, to, isType } of imports) if (from === file && !isType) reached.add(to)
  }
  return reached
}

/** One circle of every group of files that import each other, as `a → b → a`. */
function circlesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, trail: readonly string[]): void => {
    const at = trail.indexOf(file)
    if (at >= 0) {
      circles.push([...trail.slice(at), file].join(' → '))
      return
    }
    if (done.has(file)) return
    for (const next of edges.get(file) ?? []) visit(next, [...trail, file])
    done.add(file)
  }
  for (const file of edges.keys()) visit(file, [])
  return circles
}
