import { existsSync } from 'node:fs'
import { runCelKubernetes, runCelSpec, type SuiteResult } from './cel.ts'
import { runKyvernoChainsaw } from './kyverno.ts'
import { runKyvernoCli } from './kyverno-cli.ts'
import { runNotation } from './notation.ts'
import { runSigstoreBundles } from './signatures.ts'
import { runWebhooks } from './webhooks.ts'

// Runs every suite over a folder of cases: `--cases DIR`, else ../shared/cases. One line per suite; exit 1 on any failure that is not a
// recorded deviation, on any recorded deviation that passes and on a suite without a case; exit 2 where there is no folder of cases.

const SUITES: Readonly<Record<string, (casesDir: string) => Promise<SuiteResult>>> = {
  'cel/kubernetes.json': runCelKubernetes,
  'cel/spec.json': runCelSpec,
  'signatures/sigstore-bundles': runSigstoreBundles,
  'signatures/notation': runNotation,
  'kyverno/chainsaw': runKyvernoChainsaw,
  'kyverno/cli': runKyvernoCli,
  'kyverno/webhooks': runWebhooks,
}
/** Failures printed per suite; the count is always whole. */
const MAX_PRINTED = 20

const casesDir = argument('--cases') ?? '../shared/cases'
if (!existsSync(casesDir)) {
  console.error(`no cases at ${casesDir}; name their folder with --cases DIR`)
  process.exit(2)
}

let failed = 0
for (const [name, run] of Object.entries(SUITES)) {
  const result = await run(casesDir)
  failed += result.failed
  print(name, result)
  if (result.passed + result.failed + result.known > 0) continue
  failed++
  console.error(`${name} has no cases in ${casesDir}`)
}
process.exitCode = failed === 0 ? 0 : 1

function print(name: string, { passed, failed, known, skipped, failures }: SuiteResult): void {
  console.log(
    `${name.padEnd(28)} ${passed} passed, ${failed} failed, ${known} known deviations, ${skipped} skipped`,
  )
  for (const { id, expected, got } of failures.slice(0, MAX_PRINTED)) {
    console.log(`  ${id}\n    expected ${expected}\n    got      ${got}`)
  }
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
