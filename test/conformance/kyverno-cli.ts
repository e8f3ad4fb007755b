import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { clusterOf } from '#functions/cli/test/cluster.ts'
import { liveFor } from '#functions/cli/test/live.ts'
import { type Ran, runTest } from '#functions/cli/test/run.ts'
import { type SuiteResult, Tally } from '#test/conformance/cel.ts'
import { KYVERNO_DEVIATIONS } from '#test/conformance/kyverno-deviations.ts'
import {
  createMaterial,
  type Material,
  NOW,
  SIGNED_DIGEST,
} from '#test/conformance/kyverno-material.ts'

const JSON_CASE = 'test-image-validating-policy/check-json'
const MESSAGE_CASE = 'test-image-validating-policy/empty-message'
const CONTEXT_CASE = 'test-context-resource-ivpol/.kyverno-test'

/**
 * Kyverno's own command line tests of image policies, run as `countersign test` runs them. What two of them check is in Kyverno's Go tests
 * and one names a file that is not among the cases: these get a test file and a resource here, outside of the tree.
 */
export async function runKyvernoCli(casesDir: string): Promise<SuiteResult> {
  const material = await createMaterial()
  const work = mkdtempSync(path.join(tmpdir(), 'countersign-kyverno-'))
  const tally = new Tally(KYVERNO_DEVIATIONS)
  try {
    cpSync(path.join(casesDir, 'kyverno', 'cli'), work, { recursive: true })
    complete(work)
    for (const file of filesIn(work)) {
      writeFileSync(file, material.substitute(readFileSync(file, 'utf8')))
    }
    for (const file of filesIn(work).filter((name) =>
      path.basename(name).startsWith('kyverno-test'),
    )) {
      record(tally, path.relative(work, file), await run(file, material))
    }
  } finally {
    await material.close()
    rmSync(work, { recursive: true })
  }
  return tally.result()
}

function filesIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true })
    .map((name) => path.join(dir, String(name)))
    .filter((name) => statSync(name).isFile())
    .sort()
}

/** What the cases leave to Go tests, as test files. */
function complete(work: string): void {
  const header = 'apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\n'
  for (const [payload, result] of [
    ['pass', 'pass'],
    ['fail', 'fail'],
  ]) {
    const text = `${header}policies: [ivpol-json.yaml]
jsonPayload: ivpol-payload-${payload}.json
results: [{ policy: ivpol-cli-sample, isImageValidatingPolicy: true, kind: "", result: ${result} }]
`
    writeFileSync(path.join(work, JSON_CASE, `kyverno-test-${payload}.yaml`), text)
  }
  const message = `${header}policies: [policy.yaml]
resources: [bad-pod.yaml, good-pod.yaml]
results:
  - { policy: ivpol-sample, isImageValidatingPolicy: true, kind: Pod, resources: [bad-pod], result: fail }
  - { policy: ivpol-sample, isImageValidatingPolicy: true, kind: Pod, resources: [good-pod], result: pass }
`
  writeFileSync(path.join(work, MESSAGE_CASE, 'kyverno-test.yaml'), message)
  writeFileSync(
    path.join(work, CONTEXT_CASE, 'resources.yaml'),
    ['negative', 'positive'].map(deployment).join('---\n'),
  )
}

/** The resources that the context case names. Its policy wants a digest, as every policy that does not say otherwise. */
function deployment(name: string): string {
  const env = name === 'positive' ? 'prod' : 'testing'
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}-deployment, namespace: default, labels: { env: ${env} } }
spec:
  template:
    spec:
      containers: [{ name: nginx, image: "ghcr.io/kyverno/test-verify-image:signed@${SIGNED_DIGEST}" }]
`
}

async function run(file: string, { registries, trustedRoot }: Material): Promise<Ran> {
  const now = () => NOW
  return runTest(file, {
    load: { trustedRoot: () => trustedRoot },
    engine: async (_, { existing }) => {
      const { live } = await liveFor({
        fetch: registries.fetch,
        env: {},
        plainHttp: [],
        offline: true,
        now,
      })
      const cluster = clusterOf(existing)
      return { live: async () => live, context: async () => ({ cluster: () => cluster }), now }
    },
    pin: false,
    strict: false,
    signal: new AbortController().signal,
  })
}

function record(tally: Tally, id: string, { rows, others, error }: Ran): void {
  tally.skipped += others
  if (error !== undefined) tally.record(id, 'runs', error)
  for (const { policy, resource, expected, got, ok, message } of rows) {
    const name = `${id}: ${policy} ${resource}`
    tally.record(name, expected, ok ? expected : `${got}: ${message}`)
    if (id.startsWith(MESSAGE_CASE) && got === 'fail') {
      tally.record(`${name} message`, 'CEL expression validation failed at index 0', message)
    }
  }
}
