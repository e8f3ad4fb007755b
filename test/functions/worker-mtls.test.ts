import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleFunctions } from '#functions/cli/bundle.ts'
import { parseConfig } from '#functions/config.ts'
import { hashOf, review } from '../contract/review.ts'
import { startWorker } from '../workerd.ts'

const TOKEN = 'tokentokentokentokentokentoken22'
const FINGERPRINT = 'a1'.repeat(32)

let folder: string
let entry: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  const config = parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [
      { name: 'prod', tokens: [hashOf(TOKEN)], mtls: { fingerprints: [FINGERPRINT] } },
      { name: 'plain', tokens: [hashOf(TOKEN)] },
    ],
  })
  const deployment = { config, policies: [], hash: '0'.repeat(64) }
  const [report] = await bundleFunctions({ deployment, outDir: folder, names: ['worker'] })
  entry = report?.entry ?? ''
})

afterAll(() => rm(folder, { recursive: true }))

const VERIFIED = {
  certPresented: '1',
  certVerified: 'SUCCESS',
  certRevoked: '0',
  certFingerprintSHA256: FINGERPRINT,
  certSubjectDNRFC2253: 'CN=kube-apiserver',
}

test.each([
  { name: 'that Cloudflare has verified gets in', auth: VERIFIED, status: 200 },
  {
    name: 'that is revoked does not',
    auth: { ...VERIFIED, certRevoked: '1' },
    status: 404,
  },
  {
    name: 'of another authority does not',
    auth: { ...VERIFIED, certVerified: 'FAILED:unable to verify the first certificate' },
    status: 404,
  },
  { name: 'that is not there does not', auth: undefined, status: 404 },
])('in workerd a client certificate $name', async ({ auth, status }) => {
  const cf = auth === undefined ? false : { tlsClientAuth: auth }
  const { url, close } = await startWorker(entry, { SEAL: 'A'.repeat(44) }, cf)
  const post = async (cluster: string) => {
    const headers = {
      'content-type': 'application/json',
      // Whoever calls writes headers.
      'cf-client-cert-sha256': FINGERPRINT,
    }
    const body = JSON.stringify(review())
    const where = `${url}/v1/${cluster}/${TOKEN}/ivpol/validate`
    return (await fetch(where, { method: 'POST', headers, body })).status
  }
  expect([await post('prod'), await post('plain')]).toEqual([status, 200])
  await close()
})
