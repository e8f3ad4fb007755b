import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { imagesOf, pod } from '#functions/cli/demo/pod.ts'
import { admitted, type Played, play, type Scenario } from '#functions/cli/demo/scenario.ts'
import { SCENARIOS } from '#functions/cli/demo/scenarios.ts'
import { openStage, type Stage } from '#functions/cli/demo/stage.ts'
import { playScenarios } from '#functions/cli/demo.ts'
import type { Admission, WebhookCall } from '#functions/local/apiserver.ts'
import { countersign, recorder } from './harness.ts'

let stage: Stage

beforeAll(async () => {
  stage = await openStage()
})

afterAll(() => stage.close())

const DENIED = 'admission webhook "validate.countersign.dev" denied the request: '

/** What one submission of a scenario has to come to. `*` in a message stands for the image and what belongs to it. */
interface Outcome {
  allowed: boolean
  message?: RegExp
  /** Phases called, in order. */
  phases: readonly string[]
  seal?: RegExp
  /** Requests of the validate call. */
  validate?: { registry: number; KMS: number }
  warnings?: RegExp
  /** Nothing wanted the digest. */
  unpinned?: true
}

const both = ['mutate', 'validate']
const unsigned = (name: string) =>
  new RegExp(
    `^${DENIED}Policy signed-images failed: not signed by the release key: 127\\.0\\.0\\.1:\\d+/shop/${name}:1\\.0@sha256:[0-9a-f]{64}$`,
  )
const unverifiable = (name: string, why: string) =>
  new RegExp(
    `^${DENIED}Policy signed-images error: .*could not verify image 127\\.0\\.0\\.1:\\d+/shop/${name}:1\\.0@sha256:[0-9a-f]{64}, attestor release: .*${why}`,
  )

const OUTCOMES: Readonly<Record<string, readonly Outcome[]>> = {
  signed: [{ allowed: true, phases: both, seal: /^open$/ }],
  bundle: [{ allowed: true, phases: both, seal: /^open$/ }],
  keyless: [
    { allowed: true, phases: both, seal: /^open$/ },
    { allowed: true, phases: both, seal: /^open$/ },
  ],
  'wrong-identity': ['tested', 'keyed'].map((name) => ({
    allowed: false,
    phases: both,
    message: new RegExp(
      `^${DENIED}Policy signed-images-keyless failed: not signed by the release workflow: 127\\.0\\.0\\.1:\\d+/shop/${name}:1\\.0@sha256:[0-9a-f]{64}$`,
    ),
  })),
  sealed: [{ allowed: true, phases: both, seal: /^open$/, validate: { registry: 0, KMS: 0 } }],
  'generated-name': [{ allowed: true, phases: both, seal: /^open$/ }],
  reinvoked: [{ allowed: true, phases: ['mutate', 'reinvoke', 'validate'], seal: /^open$/ }],
  unsigned: [{ allowed: false, phases: both, message: unsigned('unsigned') }],
  'wrong-key': [{ allowed: false, phases: both, message: unsigned('foreign') }],
  audit: [{ allowed: true, phases: both }],
  warn: [
    {
      allowed: true,
      phases: both,
      warnings: /^Policy signed-images-warn failed: not signed by the release key: /,
    },
  ],
  provenance: [
    { allowed: true, phases: both, seal: /^open$/ },
    ...[
      ['homemade', 'built by https://laptop\\.example\\.com/bob'],
      ['unknown', 'no provenance by the release workflow'],
    ].map(([name, reason]) => ({
      allowed: false,
      phases: both,
      message: new RegExp(
        `^${DENIED}Policy built-images failed: ${reason}: 127\\.0\\.0\\.1:\\d+/shop/${name}:1\\.0@sha256:[0-9a-f]{64}$`,
      ),
    })),
  ],
  exceptions: [
    { allowed: true, phases: both, seal: /^open$/ },
    ...['legacy-copy', 'legacy'].map((name) => ({
      allowed: false,
      phases: both,
      message: new RegExp(
        `^${DENIED}Policy signed-images-excused failed: not signed by the release key: 127\\.0\\.0\\.1:\\d+/shop/${name}:1\\.0@sha256:[0-9a-f]{64}$`,
      ),
    })),
    { allowed: true, phases: both, seal: /^unused$/, unpinned: true },
  ],
  'image-review': [
    { allowed: true, phases: ['mutate'] },
    {
      allowed: false,
      phases: ['mutate'],
      message:
        /^pods "reviewed" is forbidden: image policy webhook backend denied one or more images: Policy reviewed-images failed: not signed by the release key: 127\.0\.0\.1:\d+\/shop\/unreviewed:1\.0@sha256:[0-9a-f]{64}$/,
    },
  ],
  'forged-outcome': [
    { allowed: false, phases: both, message: unsigned('forged') },
    { allowed: false, phases: ['validate'], message: unsigned('forged'), seal: /^refused: / },
  ],
  'replay-image': [{ allowed: false, phases: ['validate'], message: unsigned('stowaway') }],
  'replay-namespace': [
    { allowed: true, phases: ['validate'], seal: /^open$/, validate: { registry: 0, KMS: 1 } },
    {
      allowed: false,
      phases: ['validate'],
      message: unsigned('replay-namespace'),
      seal: /^refused: /,
    },
  ],
  'replay-cluster': [
    {
      allowed: false,
      phases: ['validate'],
      message: unsigned('replay-cluster'),
      seal: /^refused: /,
    },
  ],
  'replay-expired': [
    {
      allowed: false,
      phases: ['validate'],
      message: unsigned('replay-expired'),
      seal: /^refused: .*expired/,
    },
  ],
  swapped: [
    { allowed: false, phases: both, message: unsigned('swapped-in') },
    {
      allowed: false,
      phases: both,
      message: new RegExp(
        `^${DENIED}Policy signed-images failed: image 127\\.0\\.0\\.1:\\d+/shop/swapped-in:1\\.0 does not have a digest$`,
      ),
    },
    { allowed: false, phases: ['mutate', 'reinvoke', 'validate'], message: unsigned('swapped-in') },
  ],
  tampered: [
    {
      allowed: false,
      phases: both,
      message: unverifiable(
        'tampered',
        'content hashes to sha256:[0-9a-f]{64}, expected sha256:[0-9a-f]{64}$',
      ),
    },
  ],
  'registry-down': [
    {
      allowed: false,
      phases: both,
      message: unverifiable('registry-down', 'connection failed \\([A-Z_]+\\)$'),
    },
  ],
  'kms-down': [
    {
      allowed: false,
      phases: both,
      message: unverifiable('kms-down', 'KMS GetPublicKey of alias/countersign-release'),
    },
  ],
  deadline: [
    {
      allowed: false,
      phases: both,
      message: unverifiable('deadline', 'not answered before the deadline$'),
    },
  ],
}

describe('scenarios', () => {
  test('every scenario has its expectation here', () => {
    expect(SCENARIOS.map(({ name }) => name)).toEqual(Object.keys(OUTCOMES))
  })

  test.each(
    SCENARIOS.map((scenario) => [`${scenario.name}: ${scenario.title}`, scenario] as const),
  )('%s', async (_, scenario) => {
    const played: Played = await play(scenario, stage)
    expect(played.acts.flatMap(({ checks }) => checks.filter(({ holds }) => !holds))).toEqual([])
    expect(played.ok).toBe(true)
    const outcomes = OUTCOMES[scenario.name]!
    expect(played.acts).toHaveLength(outcomes.length)
    for (const [index, { admission }] of played.acts.entries()) {
      expectOutcome(admission, outcomes[index]!)
    }
  })
})

function expectOutcome(
  admission: Admission & { seal: string | undefined },
  outcome: Outcome,
): void {
  expect(admission.message).toMatch(outcome.message ?? /^$/)
  expect({ allowed: admission.allowed, code: admission.code }).toEqual(
    outcome.allowed ? { allowed: true, code: 0 } : { allowed: false, code: 403 },
  )
  expect(admission.calls.map(({ phase }) => phase)).toEqual(outcome.phases)
  // Nobody was asked in vain: every answer passed the API server's checks, and mutate always allows.
  expect(admission.calls.map(({ failure }) => failure).filter(Boolean)).toEqual([])
  for (const call of admission.calls.filter(({ phase }) => phase !== 'validate')) {
    expect(call.response?.allowed).toBe(true)
  }
  if (outcome.allowed && outcome.unpinned === undefined)
    expect(imagesOf(admission.object)).toEqual([expect.stringMatching(/@sha256:[0-9a-f]{64}$/)])
  if (outcome.seal !== undefined) expect(admission.seal).toMatch(outcome.seal)
  if (outcome.validate !== undefined) expect(validateCall(admission).used).toEqual(outcome.validate)
  if (outcome.warnings !== undefined) expect(admission.warnings[0]).toMatch(outcome.warnings)
}

function validateCall(admission: Admission): WebhookCall {
  return admission.calls.find(({ phase }) => phase === 'validate')!
}

describe('countersign demo', () => {
  test('plays the chosen scenarios and prints what was sent, the patch, the verdict and the time', async () => {
    const { code, out, err } = await countersign(['demo', '--scenario', 'signed', 'unsigned'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^✓ signed {2}A signed image is admitted, pinned to its digest {2}\d+ ms$/m)
    expect(out).toMatch(/^ {2}sent {6}Pod with 127\.0\.0\.1:\d+\/shop\/api:1\.0, signed/m)
    expect(out).toMatch(/^ {2}mutate {4}\d+ ms · requests: registry 4, KMS 2$/m)
    expect(out).toMatch(
      /^ {12}replace \/spec\/containers\/0\/image = .*\/shop\/api:1\.0@sha256:[0-9a-f]{8}…$/m,
    )
    expect(out).toMatch(/^ {2}admitted {2}127\.0\.0\.1:\d+\/shop\/api:1\.0@sha256:[0-9a-f]{8}…$/m)
    expect(out).toMatch(
      /^ {2}denied {4}admission webhook "validate\.countersign\.dev" denied the request: Policy/m,
    )
    expect(out).toMatch(/^2 scenarios in \d+\.\d s, every verdict is the right one\.$/m)
    for (const next of ['countersign dev', 'countersign tokens new', 'countersign build'])
      expect(out).toContain(next)
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })

  test('prints whole requests and answers with --verbose', async () => {
    const { out } = await countersign(['demo', '--scenario', 'unsigned', '--verbose'])
    expect(out).toMatch(/^ +"operation": "CREATE",$/m)
    expect(out).toMatch(/^ +"reason": "Forbidden",$/m)
  })

  test('prints what the API server asked about images', async () => {
    const { code, out } = await countersign(['demo', '--scenario', 'image-review'])
    expect(code).toBe(0)
    expect(out).toMatch(/^ {2}review {4}[\d.]+ ms · requests: registry \d+, KMS \d+$/m)
    expect(out).toMatch(/^ {2}denied {4}pods "reviewed" is forbidden: image policy webhook/m)
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })

  test('prints everything as JSON', async () => {
    const { code, out } = await countersign(['demo', '--scenario', 'wrong-key', '--output', 'json'])
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      scenarios: [
        {
          name: 'wrong-key',
          ok: true,
          acts: [
            {
              allowed: false,
              code: 403,
              calls: [{ phase: 'mutate' }, { phase: 'validate', response: { allowed: false } }],
            },
          ],
        },
      ],
    })
  })

  test('a verdict that is not the right one is marked, and the exit code is 1', async () => {
    const wrong: Scenario = {
      name: 'wrong',
      title: 'An unsigned image is admitted',
      async run(on) {
        const image = await on.image('wrong', 'nobody')
        const admission = await on.create(pod({ name: 'wrong', image: image.reference }))
        return [{ sent: 'unsigned Pod', admission, checks: [admitted(admission)] }]
      },
    }
    const { io, ran } = recorder()
    expect(await playScenarios(io, [wrong], { output: 'text' })).toBe(1)
    expect(ran.out).toMatch(/^✗ wrong {2}An unsigned image is admitted/m)
    expect(ran.out).toMatch(/^ {2}✗ {9}admitted$/m)
    expect(ran.out).toMatch(/^1 of 1 scenario came out wrong: wrong$/m)
    expect(ran.err).toBe('')
  })

  test('a scenario that does not exist is bad usage, and the answer names those that do', async () => {
    const { code, err } = await countersign(['demo', '--scenario', 'everything'])
    expect(code).toBe(2)
    expect(err).toMatch(
      /^countersign demo: no scenario everything; there are signed, bundle, .*deadline\n$/,
    )
  })
})
