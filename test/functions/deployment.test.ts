import { describe, expect, test } from 'vitest'
import { createDeployment, formatDeployment, parseDeployment } from '#functions/deployment.ts'
import { SigstoreWorld } from '#test/fakes/sigstore.ts'
import { compiledPolicy, keyAttestor, PEM } from '#test/shared/policy/documents.ts'

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

  test.each(['null', '{}', '{"config":{},"policies":[],"hash":"a"}'])('is not %s', (text) => {
    expect(() => parseDeployment(text)).toThrow(TypeError)
  })
})
