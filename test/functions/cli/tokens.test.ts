import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createApp } from '#functions/app.ts'
import { newToken } from '#functions/cli/token.ts'
import { readConfig } from '#functions/files.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { admitted } from '#shared/admission/response.ts'
import { review } from '../../contract/review.ts'
import { countersign } from './harness.ts'

const OLD = 'a'.repeat(64)
const OLDER = 'b'.repeat(64)

const CONFIG = `# Who may call.
policies: policies # relative
endpoint: https://admission.example.com/base/
outcomes: { key: { secrets: [ { id: a, env: SEAL } ] } }

clusters:
  # Frankfurt
  - name: prod-eu
    tokens:
      # since May
      - "${OLD}"
    timeouts: { mutateSeconds: 10, validateSeconds: 5 }
  - name: busy
    tokens: [ "${OLDER}", "${OLD}" ]
`

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  file = path.join(folder, 'countersign.yaml')
  await writeFile(file, CONFIG)
})

afterEach(() => rm(folder, { recursive: true }))

const tokens = (...args: string[]) => countersign(['tokens', ...args, '--config', file])
const text = () => readFile(file, 'utf8')
const hashesOf = async (cluster: string): Promise<string[]> =>
  parse(await text()).clusters.find((entry: { name: string }) => entry.name === cluster)?.tokens
const hashOf = (token: string) => createHash('sha256').update(token).digest('hex')
const tokenIn = (out: string) => /^token +([a-z2-7]{32}) /m.exec(out)?.[1] ?? ''

describe('tokens', () => {
  test('a token has 160 bits in lower-case base32 and never comes twice', () => {
    const made = Array.from({ length: 200 }, newToken)
    expect(new Set(made).size).toBe(200)
    for (const token of made) expect(token).toMatch(/^[a-z2-7]{32}$/)
    expect(new Set(made.join('')).size).toBe(32)
  })

  test('new adds a cluster with the hash of the token it prints, and the URLs to register', async () => {
    const { code, out, err } = await tokens('new', '--cluster', 'prod-us')
    const token = tokenIn(out)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(await hashesOf('prod-us')).toEqual([hashOf(token)])
    expect(out).toContain(`https://admission.example.com/base/v1/prod-us/${token}/ivpol/mutate`)
    expect(out).toContain(`https://admission.example.com/base/v1/prod-us/${token}/ivpol/validate`)
    expect(await text()).not.toContain(token)
  })

  test('the command that writes all of it is named, since URLs of webhooks have names of policies, too', async () => {
    const made = await tokens('new', '--cluster', 'prod-us')
    expect(made.out).toContain(
      `apply what \`countersign webhooks --cluster prod-us --config ${file} --token-file -\` with this token writes.`,
    )
    await tokens('revoke', '--cluster', 'busy')
    const { out } = await tokens('rotate', '--cluster', 'busy')
    expect(out).toMatch(
      /apply what `countersign webhooks --cluster busy .*` with this token writes, then `countersign tokens revoke --cluster busy`\.$/m,
    )
  })

  test('the command that is named can be run as it stands', async () => {
    const odd = path.join(folder, "it's here.yaml")
    await writeFile(odd, CONFIG)
    const { out } = await countersign(['tokens', 'new', '--cluster', 'prod-us', '--config', odd])
    expect(out).toContain(` --config '${folder}/it'\\''s here.yaml' --token-file -`)
  })

  test('a cluster with image reviews is told where its API server asks, at the host of that function', async () => {
    const each =
      'endpoint: { mutate: https://m.example, validate: https://v.example/, imageReview: https://i.example }'
    const text = CONFIG.replace(/endpoint: .*/, each).replace(
      '  - name: busy',
      '    imageReview: true\n  - name: busy',
    )
    await writeFile(file, text)
    const { out } = await tokens('rotate', '--cluster', 'prod-eu', '--output', 'json')
    const { token, ...urls } = JSON.parse(out)
    expect(urls).toEqual({
      cluster: 'prod-eu',
      mutate: `https://m.example/v1/prod-eu/${token}/ivpol/mutate`,
      validate: `https://v.example/v1/prod-eu/${token}/ivpol/validate`,
      imageReview: `https://i.example/v1/prod-eu/${token}/image-review`,
      config: file,
    })
    await writeFile(file, text)
    const said = await tokens('rotate', '--cluster', 'prod-eu')
    expect(said.out).toMatch(
      /^images {4}https:\/\/i\.example\/v1\/prod-eu\/[a-z2-7]{32}\/image-review$/m,
    )
    expect(said.out).toContain('--token-file - --image-policy`')
    await tokens('revoke', '--cluster', 'busy')
    expect((await tokens('rotate', '--cluster', 'busy')).out).not.toContain('image')
  })

  test('rotate adds a hash and changes nothing else in the file', async () => {
    const { code, out } = await tokens('rotate', '--cluster', 'prod-eu')
    expect(code).toBe(0)
    const added = hashOf(tokenIn(out))
    expect(await hashesOf('prod-eu')).toEqual([OLD, added])
    expect(await text()).toBe(CONFIG.replace(`- "${OLD}"\n`, `- "${OLD}"\n      - "${added}"\n`))
  })

  test('new adds a cluster behind the comments of the last one and changes nothing else', async () => {
    const commented = `${CONFIG}    # notAfter: 2030-01-01T00:00:00Z\n\n# The end.\n`
    await writeFile(file, commented)
    const { out } = await tokens('new', '--cluster', 'prod-us')
    const entry = `  - name: prod-us\n    tokens:\n      - "${hashOf(tokenIn(out))}"\n`
    expect(await text()).toBe(commented.replace('00:00:00Z\n', `00:00:00Z\n${entry}`))
  })

  test.each([
    { name: 'a flow list of clusters', clusters: `[ { name: prod-eu, tokens: [ "${OLD}" ] } ]` },
    {
      name: 'an indented block list',
      clusters: `\n    - tokens:\n      - '${OLD}'\n      name: prod-eu # last`,
    },
    {
      name: 'a list without indentation',
      clusters: `\n- name: prod-eu\n  tokens:\n  - ${OLD} # old`,
    },
  ])('$name keeps its comments', async ({ clusters }) => {
    await writeFile(file, CONFIG.replace(/clusters:.*$/s, `clusters: ${clusters}\n# end\n`))
    for (const args of [
      ['rotate', '--cluster', 'prod-eu'],
      ['revoke', '--cluster', 'prod-eu'],
      ['new', '--cluster', '1e3'],
    ]) {
      expect(await tokens(...args)).toMatchObject({ code: 0, err: '' })
    }
    expect(await hashesOf('prod-eu')).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
    expect(await hashesOf('prod-eu')).not.toContain(OLD)
    expect(await hashesOf('1e3')).toHaveLength(1)
    expect(await text()).toContain('# end')
  })

  test.each([
    {
      name: 'no list of clusters',
      clusters: '',
      after: (hash: string) => `clusters:\n  - name: new\n    tokens:\n      - "${hash}"\n`,
    },
    {
      name: 'a list without a value',
      clusters: 'clusters: # soon\n\n# The end.\n',
      after: (hash: string) =>
        `clusters: # soon\n  - name: new\n    tokens:\n      - "${hash}"\n\n# The end.\n`,
    },
    {
      name: 'an empty list',
      clusters: 'clusters: [] # soon\n',
      after: (hash: string) => `clusters: [{ "name": "new", "tokens": ["${hash}"] }] # soon\n`,
    },
    {
      name: 'a list on one line',
      clusters: `clusters: [ {name: a, tokens: ["${OLD}"]} ] # all\n`,
      after: (hash: string) =>
        `clusters: [ {name: a, tokens: ["${OLD}"]}, { "name": "new", "tokens": ["${hash}"] } ] # all\n`,
    },
    {
      name: 'the cluster, without a token',
      clusters: 'clusters:\n- mode: audit\n  name: new # here\n  # soon\n  kubernetes: "1.31"\n',
      after: (hash: string) =>
        `clusters:\n- mode: audit\n  name: new # here\n  tokens:\n    - "${hash}"\n  # soon\n  kubernetes: "1.31"\n`,
    },
    {
      name: 'the cluster, on one line without a token',
      clusters: 'clusters:\n  - {name: new, mode: audit}\n',
      after: (hash: string) => `clusters:\n  - {name: new, mode: audit, "tokens": ["${hash}"]}\n`,
    },
    {
      name: 'the cluster, with an empty list of tokens',
      clusters: 'clusters:\n  - name: new\n    tokens: [] # none\n',
      after: (hash: string) => `clusters:\n  - name: new\n    tokens: ["${hash}"] # none\n`,
    },
    {
      name: 'the cluster, with tokens that have no value',
      clusters: 'clusters:\n  - name: new\n    tokens: # none\n    mode: audit\n',
      after: (hash: string) =>
        `clusters:\n  - name: new\n    tokens: # none\n      - "${hash}"\n    mode: audit\n`,
    },
  ])('new changes nothing else in a file that has $name', async ({ clusters, after }) => {
    const head = CONFIG.slice(0, CONFIG.indexOf('clusters:'))
    await writeFile(file, head + clusters)
    const { code, out } = await tokens('new', '--cluster', 'new')
    expect(code).toBe(0)
    expect(await text()).toBe(head + after(hashOf(tokenIn(out))))
  })

  test('a file of JSON stays one', async () => {
    await writeFile(file, JSON.stringify(parse(CONFIG), null, 2))
    for (const args of [
      ['new', '--cluster', 'new'],
      ['rotate', '--cluster', 'prod-eu'],
      ['revoke', '--cluster', 'busy'],
    ]) {
      expect((await tokens(...args)).code).toBe(0)
      expect(() => JSON.parse(readFileSync(file, 'utf8'))).not.toThrow()
    }
    expect(await hashesOf('prod-eu')).toEqual([OLD, expect.stringMatching(/^[0-9a-f]{64}$/)])
    expect(await hashesOf('busy')).toEqual([OLD])
  })

  test('revoke drops the older of two', async () => {
    expect((await tokens('revoke', '--cluster', 'busy')).code).toBe(0)
    expect(await hashesOf('busy')).toEqual([OLD])
  })

  test('revoke --all leaves the hash of a token that nobody was shown', async () => {
    const { code, out } = await tokens('revoke', '--cluster', 'busy', '--all')
    expect(code).toBe(0)
    const hashes = await hashesOf('busy')
    expect(hashes).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
    expect([OLD, OLDER]).not.toContain(hashes[0])
    expect(out).toContain('2 token(s) of busy revoked')
    expect((await tokens('rotate', '--cluster', 'busy')).code).toBe(0)
  })

  test('prints JSON and YAML', async () => {
    const json = JSON.parse(
      (await tokens('rotate', '--cluster', 'prod-eu', '--output', 'json')).out,
    )
    expect(json).toEqual({
      cluster: 'prod-eu',
      token: expect.stringMatching(/^[a-z2-7]{32}$/),
      mutate: `https://admission.example.com/base/v1/prod-eu/${json.token}/ivpol/mutate`,
      validate: `https://admission.example.com/base/v1/prod-eu/${json.token}/ivpol/validate`,
      config: file,
    })
    const yaml = parse((await tokens('revoke', '--cluster', 'prod-eu', '-o', 'yaml')).out)
    expect(yaml).toEqual({ cluster: 'prod-eu', revoked: 1, config: file })
  })

  test.each([
    {
      name: 'new for a cluster that has one',
      args: ['new', '--cluster', 'prod-eu'],
      says: 'cluster prod-eu has a token already; `tokens rotate` adds a new one',
    },
    {
      name: 'rotate with two live ones',
      args: ['rotate', '--cluster', 'busy'],
      says: 'cluster busy has 2 live tokens, which is the most; `tokens revoke` drops the older one',
    },
    {
      name: 'rotate for a cluster that is not there',
      args: ['rotate', '--cluster', 'nowhere'],
      says: 'no cluster nowhere; `tokens new` adds it',
    },
    {
      name: 'revoke of the only one',
      args: ['revoke', '--cluster', 'prod-eu'],
      says: 'cluster prod-eu has one token; `tokens rotate` first, or `--all` to lock it out',
    },
  ])('$name is refused and the file stays as it is', async ({ args, says }) => {
    expect(await tokens(...args)).toEqual({
      code: 2,
      out: '',
      err: `countersign tokens ${args[0]}: ${file}: ${says}\n`,
    })
    expect(await text()).toBe(CONFIG)
  })

  test('a file that is no YAML is refused with line and column', async () => {
    await writeFile(file, 'policies: [a\nendpoint: b\n')
    const { code, err } = await tokens('rotate', '--cluster', 'prod-eu')
    expect(code).toBe(2)
    expect(err.split('\n')[0]).toBe(`countersign tokens rotate: ${file}: 1 fault`)
    expect(err.split('\n')[1]).toMatch(/countersign\.yaml:\d+:\d+ {2}\S/)
  })

  test('a file that is not there is one clear line', async () => {
    const { code, err } = await countersign([
      'tokens',
      'new',
      '--cluster',
      'a',
      '--config',
      `${file}x`,
    ])
    expect({ code, err }).toEqual({
      code: 2,
      err: `countersign tokens new: cannot read ${file}x: no such file or folder\n`,
    })
  })

  test('the file keeps its mode', async () => {
    await chmod(file, 0o640)
    await tokens('rotate', '--cluster', 'prod-eu')
    expect((await stat(file)).mode & 0o777).toBe(0o640)
  })

  test('a link to the file stays one, and what it leads to is written', async () => {
    const real = path.join(folder, 'real')
    await mkdir(real)
    await writeFile(path.join(real, 'config.yaml'), CONFIG)
    await rm(file)
    await symlink(path.join('real', 'config.yaml'), file)
    expect((await tokens('rotate', '--cluster', 'prod-eu')).code).toBe(0)
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
    expect(await readFile(path.join(real, 'config.yaml'), 'utf8')).toBe(await text())
    expect(await hashesOf('prod-eu')).toHaveLength(2)
    expect(await readdir(real)).toEqual(['config.yaml'])
  })

  test('what cannot be written is one clear line, the file stays as it is, and nothing is left beside it', async () => {
    // Takes the place of what is written before it takes the place of the file.
    const long = path.join(folder, `${'x'.repeat(240)}.yaml`)
    await writeFile(long, CONFIG)
    const { code, out, err } = await countersign([
      ...['tokens', 'rotate', '--cluster', 'prod-eu', '--config', long],
    ])
    expect({ code, out, err }).toEqual({
      code: 2,
      out: '',
      err: `countersign tokens rotate: cannot write ${long}: the name is too long\n`,
    })
    expect(await readFile(long, 'utf8')).toBe(CONFIG)
    expect(await readdir(folder)).toEqual([path.basename(file), path.basename(long)].sort())
  })

  test.each([
    { name: 'line breaks of Windows', change: (all: string) => all.replaceAll('\n', '\r\n') },
    { name: 'a byte order mark', change: (all: string) => `\uFEFF${all}` },
  ])('$name stay as they are', async ({ change }) => {
    await writeFile(file, change(CONFIG))
    const added = hashOf(tokenIn((await tokens('rotate', '--cluster', 'prod-eu')).out))
    const rotated = CONFIG.replace(`- "${OLD}"\n`, `- "${OLD}"\n      - "${added}"\n`)
    expect(await text()).toBe(change(rotated))
    const first = hashOf(tokenIn((await tokens('new', '--cluster', 'prod-us')).out))
    const entry = `  - name: prod-us\n    tokens:\n      - "${first}"\n`
    expect(await text()).toBe(change(rotated + entry))
  })

  test.each([
    { name: 'an anchor', cluster: 'prod-eu' },
    { name: 'an alias', cluster: 'busy' },
    { name: 'an alias among them', cluster: 'one' },
    { name: 'an anchor among them', cluster: 'other' },
  ])(
    'tokens that are written with $name are refused: they may be those of another cluster',
    async ({ cluster }) => {
      const aliased = `${CONFIG.replace('    tokens:\n', '    tokens: &t\n').replace(/tokens: \[.*\]/, 'tokens: *t')}  - name: other
    tokens: [ &h "${OLDER}" ]
  - name: one
    tokens: [ *h ]
`
      await writeFile(file, aliased)
      for (const verb of ['new', 'rotate', 'revoke']) {
        expect(await tokens(verb, '--cluster', cluster)).toEqual({
          code: 2,
          out: '',
          err: `countersign tokens ${verb}: ${file}: the tokens of cluster ${cluster} are written with an anchor (&) or an alias (*), by which another cluster may have the same: write the hashes out\n`,
        })
      }
      expect(await text()).toBe(aliased)
    },
  )

  test('with a host for each function, the URLs are theirs', async () => {
    const hosts = `endpoint:
  mutate: https://m.lambda-url.example/
  validate: https://v.lambda-url.example
`
    await writeFile(file, CONFIG.replace(/endpoint: .*\n/, hosts))
    const { code, out } = await tokens('rotate', '--cluster', 'prod-eu')
    const base = `v1/prod-eu/${tokenIn(out)}/ivpol`
    expect(code).toBe(0)
    expect(out).toContain(`mutate    https://m.lambda-url.example/${base}/mutate\n`)
    expect(out).toContain(`validate  https://v.lambda-url.example/${base}/validate\n`)
  })

  test.each(['new', 'rotate', 'revoke'])(
    '%s of a name that no cluster can have blames the command line, not the file',
    async (verb) => {
      expect(await tokens(verb, '--cluster', 'Prod_EU')).toEqual({
        code: 2,
        out: '',
        err: `countersign tokens ${verb}: --cluster "Prod_EU": expected lower-case letters, digits, - and ., at most 63 characters\n`,
      })
      expect(await text()).toBe(CONFIG)
    },
  )

  test('rotate without downtime: both tokens get in until the older one is revoked, and then it does not', async () => {
    const [first = '', second = ''] = [
      tokenIn((await tokens('new', '--cluster', 'prod-us')).out),
      tokenIn((await tokens('rotate', '--cluster', 'prod-us')).out),
    ]
    expect(await statuses(first, second)).toEqual([200, 200])
    expect((await tokens('revoke', '--cluster', 'prod-us')).code).toBe(0)
    expect(await statuses(first, second)).toEqual([404, 200])
    expect((await tokens('revoke', '--cluster', 'prod-us', '--all')).code).toBe(0)
    expect(await statuses(first, second)).toEqual([404, 404])
  })
})

/** What functions with the config as it is now answer to these tokens. */
async function statuses(...all: string[]): Promise<number[]> {
  const { config } = await readConfig(file)
  const app = createApp({
    deployment: { config, policies: [], hash: '0' },
    engine: { validate: async () => admitted() },
    hash: nodeHash,
    maxBodyBytes: 100_000,
    now: () => 0,
    log: () => undefined,
  })
  return Promise.all(
    all.map(async (token) => {
      const url = `https://door.example/v1/prod-us/${token}/ivpol/validate`
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(review())
      return (await app.fetch(new Request(url, { method: 'POST', headers, body }), {})).status
    }),
  )
}
