import { build } from 'esbuild'
import { Miniflare } from 'miniflare'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { workerCrypto } from '#functions/cli/bundle.ts'

/** What a dependency written for Node does: a signature checked without naming the digest. */
const WORKER = `
import crypto, { generateKeyPairSync, sign, verify } from 'node:crypto'
import { createHash } from 'crypto'
const KEYS = { ec: { namedCurve: 'P-256' }, rsa: { modulusLength: 2048 }, ed25519: {} }
export default {
  async fetch(request) {
    const type = new URL(request.url).pathname.slice(1)
    const { publicKey, privateKey } = generateKeyPairSync(type, KEYS[type])
    const data = Buffer.from('signed'), other = Buffer.from('other')
    const signature = sign(type === 'ed25519' ? null : 'sha256', data, privateKey)
    return Response.json({
      named: verify(undefined, data, publicKey, signature),
      whole: crypto.verify(null, data, publicKey, signature),
      wrong: verify(undefined, other, publicKey, signature),
      hash: createHash('sha256').update('x').digest('hex').slice(0, 8),
    })
  },
}
`

let miniflare: Miniflare
beforeAll(async () => {
  const { outputFiles } = await build({
    stdin: { contents: WORKER, resolveDir: '.', loader: 'js' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    external: ['node:*'],
    plugins: [workerCrypto],
  })
  miniflare = new Miniflare({
    modules: true,
    script: outputFiles[0]!.text.replace(/^/, "import { Buffer } from 'node:buffer'\n"),
    compatibilityDate: '2026-01-01',
    compatibilityFlags: ['nodejs_compat'],
    cf: false,
  })
})
afterAll(() => miniflare?.dispose())

test.each(['ec', 'rsa', 'ed25519'])(
  'workerd verifies %s signatures without a digest named',
  async (type) => {
    const response = await miniflare.dispatchFetch(`http://worker/${type}`)
    expect(await response.json()).toEqual({
      named: true,
      whole: true,
      wrong: false,
      hash: '2d711642',
    })
  },
)
