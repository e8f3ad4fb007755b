import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { POLICY_FILE, POLICY_TEXT } from '#functions/cli/demo/policy.ts'
import type { AdmissionRequest, JsonObject } from '#shared/admission/types.ts'
import { evaluate, matchConditions } from '#shared/policy/evaluate.ts'
import { loadPolicies } from '#shared/policy/load.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '#shared/policy/prepare.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'

const FOLDER = new URL('../../infra/policies/', import.meta.url)
const DIGEST = `sha256:${'a'.repeat(64)}`

async function shipped() {
  const names = (await readdir(FOLDER)).sort()
  const files = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(new URL(name, FOLDER), 'utf8') })),
  )
  return loadPolicies(files, { kmsRegion: 'eu-central-1' })
}

async function preparedOf(
  policies: readonly CompiledPolicy[],
  wanted: string,
): Promise<PreparedPolicy> {
  const policy = policies.find(({ name }) => name === wanted)!
  return preparePolicy(policy, await loadRuntime(policy))
}

function podRequest(image: string, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: 'u',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'web',
    namespace: 'shop',
    operation: 'CREATE',
    userInfo: {},
    object: podOf(image),
    oldObject: null,
    options: null,
    ...changes,
  }
}

function podOf(image: string, metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: 'web', ...metadata }, spec: { containers: [{ name: 'c', image }] } }
}

describe('the policies that ship', () => {
  test('load without a fault and without a note', async () => {
    const { policies, faults, warnings } = await shipped()
    expect(faults).toEqual([])
    expect(warnings).toEqual([])
    expect(policies.map(({ name }) => name)).toEqual(['shop-images', 'signed-images'])
  })

  test.each([
    { policy: 'signed-images', count: 1, is: { status: 'pass' } },
    { policy: 'shop-images', count: 1, is: { status: 'pass' } },
    {
      policy: 'signed-images',
      count: 0,
      is: {
        status: 'fail',
        message: `not signed by the release key: registry.example.com/shop/api:1@${DIGEST}`,
      },
    },
    {
      policy: 'shop-images',
      count: 0,
      is: {
        status: 'fail',
        message: `not signed by the shop's key: registry.example.com/shop/api:1@${DIGEST}`,
      },
    },
  ])('$policy with $count signatures: $is.status', async ({ policy, count, is }) => {
    const { policies } = await shipped()
    const prepared = await preparedOf(policies, policy)
    const subject = subjectOf(podRequest(`registry.example.com/shop/api:1@${DIGEST}`))
    expect(matchConditions(prepared, subject)).toEqual({ status: 'matched' })
    expect(evaluate(prepared, subject, () => ({ kind: 'value', value: count }))).toMatchObject(is)
  })

  test('a volume made of an image is an image to the policy that is about all of them', async () => {
    const { policies } = await shipped()
    const prepared = await preparedOf(policies, 'signed-images')
    const object = podOf(`registry.example.com/api:1@${DIGEST}`)
    const volume = `registry.example.com/model:1@${DIGEST}`
    const spec = { ...(object.spec as JsonObject), volumes: [{ image: { reference: volume } }, {}] }
    const subject = subjectOf(podRequest('', { object: { ...object, spec } }))
    const host = ({ args }: { args: readonly unknown[] }) => {
      return { kind: 'value', value: args[0] === volume ? 0 : 1 } as const
    }
    expect(evaluate(prepared, subject, host)).toMatchObject({
      status: 'fail',
      message: `not signed by the release key: ${volume}`,
    })
  })

  test('an update of labels is none of the shop policy’s business, another image is', async () => {
    const { policies } = await shipped()
    const prepared = await preparedOf(policies, 'shop-images')
    const update = (object: JsonObject) =>
      matchConditions(
        prepared,
        subjectOf(podRequest('a:1', { operation: 'UPDATE', object, oldObject: podOf('a:1') })),
      )
    expect(update(podOf('a:1', { labels: { a: 'b' } }))).toEqual({
      status: 'unmatched',
      condition: 'something-new-runs',
    })
    expect(update(podOf('b:1'))).toEqual({ status: 'matched' })
  })
})

test('the demo plays the policy that ships, whatever has become of the file', async () => {
  const shipped = new URL(`../../${POLICY_FILE}`, import.meta.url)
  expect(POLICY_TEXT).toBe(await readFile(shipped, 'utf8'))
})
