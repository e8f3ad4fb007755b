import { expect, test } from 'vitest'
import { plainCosts } from '#shared/cel/cost.ts'
import { kubernetesCosts } from '#shared/cel/cost-kubernetes.ts'
import { loadRuntime, planOptions } from '#shared/policy/prepare.ts'
import { compiledPolicy } from './documents.ts'

test('what is called without another library costs the same by both tables', () => {
  for (const [id, { fn }] of Object.entries(planOptions({}).implementations)) {
    for (const overload of [id, undefined]) {
      expect([fn, plainCosts.call(fn, overload)]).toEqual([fn, kubernetesCosts.call(fn, overload)])
    }
  }
  const plain = plainCosts.equality('_!=_')
  expect(kubernetesCosts.equality('_!=_')).toBe(plain)
})

test.each([
  ['nothing more', "images.containers.all(image, image.contains('a'))", undefined],
  ['sets', 'sets.contains(images.containers, [])', kubernetesCosts],
  ['quantities', "isQuantity('1Gi')", kubernetesCosts],
])('a policy that calls %s is charged as the API server charges', async (_, expression, costs) => {
  const policy = await compiledPolicy({ validations: [{ expression }] })
  expect((await loadRuntime(policy)).costs).toBe(costs)
})
