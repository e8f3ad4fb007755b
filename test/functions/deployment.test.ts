import { describe, expect, test } from 'vitest'
import { createDeployment } from '#functions/create-deployment.ts'
import { formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { SigstoreWorld } from '#test/fakes/sigstore.ts'
import {
  compiledPolicy,
  keyAttestor,
  load,
  PEM,
  policyDocument,
} from '#test/shared/policy/documents.ts'

const ROOT = JSON.stringify(new SigstoreWorld().trustedRoot())
const OTHER = JSON.stringify(new SigstoreWorld().trustedRoot())
const witnessed = (name: string, value: string) => ({
  name,
  cosign: { key: { data: PEM }, trustedRoot: { value } },
})
const asked = (value: string) => ({
  name: 'c',
  cosign: { key: { expression: '"key"' }, trustedRoot: { value } },
})

describe('a deployment in a bundle', () => {
  test('comes out as it went in, with each trusted root in the text once', async () => {
    const policies = [
      await compiledPolicy({ attestors: [witnessed('a', ROOT), keyAttestor('b')] }, 'one'),
      await compiledPolicy({ attestors: [witnessed('a', OTHER), witnessed('b', ROOT)] }, 'two'),
      await compiledPolicy({ attestors: [asked(ROOT)] }, 'three'),
    ]
    // Nothing of the config matters but that it is there.
    const config = { clusters: [] } as unknown as Parameters<typeof createDeployment>[0]
    const deployment = await createDeployment(config, policies)
    const text = formatDeployment(deployment)
    expect(parseDeployment(text)).toEqual(deployment)
    expect(text.split(JSON.stringify(ROOT))).toHaveLength(2)
    expect(text.split(JSON.stringify(OTHER))).toHaveLength(2)
  })

  test('has what a policy and its variants share once, and every exception', async () => {
    const pods = {
      apiGroups: [''],
      apiVersions: ['v1'],
      operations: ['CREATE'],
      resources: ['pods'],
    }
    const message = 'a message that is long enough to be found'
    const { policies, faults } = await load([
      policyDocument(
        {
          matchConstraints: { resourceRules: [pods] },
          attestors: [witnessed('a', ROOT)],
          validations: [{ expression: 'true', message }],
        },
        'one',
      ),
      policyDocument({}, 'two'),
      {
        apiVersion: 'policies.kyverno.io/v1',
        kind: 'PolicyException',
        metadata: { name: 'e', namespace: 'shop' },
        spec: {
          policyRefs: ['one', 'two'].map((name) => ({ kind: 'ImageValidatingPolicy', name })),
          matchConditions: [{ name: 'c', expression: 'true' }],
        },
      },
    ])
    expect(faults).toEqual([])
    expect(policies.map(({ name, autogen }) => [name, autogen])).toEqual([
      ['one', undefined],
      ['one', 'defaults'],
      ['one', 'cronjobs'],
      ['two', undefined],
    ])
    const config = { clusters: [] } as unknown as Parameters<typeof createDeployment>[0]
    const deployment = await createDeployment(config, policies)
    const text = formatDeployment(deployment)
    expect(parseDeployment(text)).toEqual(deployment)
    expect(text.split(message)).toHaveLength(2)
    const [base, ...others] = policies
    const alone = await createDeployment(config, [...others, base!])
    expect(parseDeployment(formatDeployment(alone))).toEqual(alone)
  })

  test.each(['null', '{}', '{"config":{},"policies":[],"hash":"a"}'])('is not %s', (text) => {
    expect(() => parseDeployment(text)).toThrow(TypeError)
  })
})
