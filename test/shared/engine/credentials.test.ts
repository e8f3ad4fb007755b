import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OCI_MANIFEST } from '#functions/local/push.ts'
import { type LocalRegistry, startRegistry } from '#functions/local/registry.ts'
import { signImage } from '#functions/local/sign.ts'
import type { ImagePolicyEngine } from '#shared/engine/types.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { CredentialsPort } from '#shared/ports.ts'
import { createRegistryClient } from '#shared/registry/client.ts'
import type { CredentialNames } from '#shared/registry/types.ts'
import { createKmsKeys } from '#shared/signature/kms.ts'
import { createVerifier } from '#shared/signature/verify.ts'
import {
  callFor,
  createWorld,
  NO_KMS,
  patched,
  podWith,
  policyText,
  requestFor,
  type World,
} from '../../fakes/world.ts'

const LOGIN = { kind: 'basic', username: 'team', password: 's3cr3t' } as const

let world: World
/** Holds what the world's registry holds, for `LOGIN` only. */
let locked: LocalRegistry
let tagged: string
let pinned: string
let digest: string

beforeAll(async () => {
  world = await createWorld()
  locked = await startRegistry({ auth: LOGIN })
  const image = await world.push('private', ['release'])
  for (const [name, repository] of world.registry.repositories) {
    locked.repositories.set(name, repository)
  }
  digest = image.digest
  tagged = image.tagged.replace(world.registry.host, locked.host)
  pinned = `${tagged}@${digest}`
})

afterAll(async () => {
  await Promise.all([world.close(), locked.close()])
})

/** A policy whose logins are those of a Secret; the registries' own without one. */
function policy(name: string, secret?: string, more: { validations?: string; spec?: string } = {}) {
  const credentials = secret === undefined ? '' : `  credentials: {secrets: [${secret}]}`
  return policyText(world.keys, { ...more, name, spec: `${credentials}\n${more.spec ?? ''}` })
}

/** The Secret `team` has the login, `nobody` has none, and every other does not exist. */
function credentialsFor({ secrets }: CredentialNames): CredentialsPort {
  return async () => {
    if (secrets.includes('missing')) throw new AdmissionError('CONFIG_INVALID', 'no such Secret')
    return secrets.includes('team') ? LOGIN : undefined
  }
}

function engineOf(policies: readonly string[], credentials?: CredentialsPort) {
  const now = () => world.clock.now
  const live = {
    registry: createRegistryClient({
      fetch,
      now,
      credentials: credentials ?? (async () => undefined),
      credentialsFor,
      plainHttpHosts: [locked.host, world.registry.host],
    }),
    verifier: createVerifier({ now, kms: createKmsKeys({ port: NO_KMS, now }) }),
  }
  return world.engine(policies, { live: async () => live })
}

/** Whether the image may run by this policy alone, and how many requests of registries that took. */
async function ask(engine: ImagePolicyEngine, name: string, image = pinned) {
  const before = locked.requests.length
  const request = requestFor(podWith([image]))
  const { allowed } = await engine.validate(request, callFor({ policies: [name] }))
  return { allowed, asked: locked.requests.length > before }
}

const SEES_DATA = `    - expression: >-
        images.containers.all(image, getImageData(image).digest != '')`
const NO_EVIDENCE =
  '  validationConfigurations: {required: false, mutateDigest: false, verifyDigest: false}'

describe('a policy with credentials', () => {
  test.each([
    { name: 'logs in with its own', secret: 'team', allowed: true },
    { name: 'cannot tell with others', secret: 'nobody', allowed: false },
    { name: 'cannot tell with those that are not there', secret: 'missing', allowed: false },
    { name: 'has none of its own', secret: undefined, allowed: false },
  ])('$name', async ({ secret, allowed }) => {
    const engine = await engineOf([policy('p', secret)])
    expect((await ask(engine, 'p')).allowed).toBe(allowed)
  })

  test('never uses those of the registries', async () => {
    const engine = await engineOf([policy('own', 'nobody'), policy('p')], async () => LOGIN)
    expect((await ask(engine, 'p')).allowed).toBe(true)
    expect((await ask(engine, 'own')).allowed).toBe(false)
  })

  test.each([
    { name: 'first', order: ['own', 'other', 'own', 'other'] },
    { name: 'last', order: ['other', 'own', 'other', 'own'] },
  ])('leaves no answer to a policy with others, asked $name', async ({ order }) => {
    const engine = await engineOf([policy('own', 'team'), policy('other')])
    for (const name of order) expect((await ask(engine, name)).allowed).toBe(name === 'own')
  })

  test('remembers its own answers', async () => {
    const engine = await engineOf([policy('own', 'team'), policy('twin', 'team')])
    expect(await ask(engine, 'own')).toEqual({ allowed: true, asked: true })
    expect(await ask(engine, 'own')).toEqual({ allowed: true, asked: false })
    expect(await ask(engine, 'twin')).toEqual({ allowed: true, asked: false })
  })

  test('is asked in one request with another, and each has its own answer', async () => {
    const engine = await engineOf([policy('own', 'team'), policy('other')])
    const decision = await engine.validate(requestFor(podWith([pinned])), callFor())
    expect(decision.allowed).toBe(false)
    expect(decision.status?.message).toContain('other')
    expect(decision.status?.message).not.toMatch(/own\b/)
    expect(decision.status?.message).not.toContain('s3cr3t')
  })

  // Policies are asked in the order of their names.
  test.each(['a-own', 'z-own'])('reads image data for itself only (%s)', async (own) => {
    const reading = { validations: SEES_DATA, spec: NO_EVIDENCE }
    const engine = await engineOf([policy(own, 'team', reading), policy('m', undefined, reading)])
    const both = await engine.validate(requestFor(podWith([pinned])), callFor())
    expect(both.allowed).toBe(false)
    expect(both.status?.message).toContain('Policy m error')
    expect(both.status?.message).not.toContain(own)
    for (const name of [own, 'm']) expect((await ask(engine, name)).allowed).toBe(name === own)
  })
})

describe('an attestor with PullSecrets', () => {
  const SOURCE = 'ctlog: {insecureIgnoreTlog: true}'

  /** The policy, its signatures in the locked registry, read with these Secrets. */
  function sourced(name: string, secrets: readonly string[]) {
    const list = secrets.map((secret) => `{name: ${secret}}`).join(', ')
    const source = `source: {repository: ${locked.host}/signatures, PullSecrets: [${list}]}`
    return policy(name).replace(SOURCE, `${SOURCE}\n        ${source}`)
  }

  test('reads signatures with them, the image without, and leaves nothing to other attestors', async () => {
    const { pinned: open, digest: signed } = await world.push('open', [])
    const target = { url: world.registry.url, repository: 'signatures' }
    const descriptor = { mediaType: OCI_MANIFEST, digest: signed, size: 1 }
    await signImage(target, { descriptor, reference: 'x' }, [world.signers.release], 'tag')
    const signatures = world.registry.repositories.get('signatures')
    if (signatures !== undefined) locked.repositories.set('signatures', signatures)
    const texts = [
      sourced('team', ['team']),
      sourced('nobody', ['nobody']),
      sourced('missing', ['missing']),
      sourced('none', []),
    ]
    const engine = await engineOf(texts)
    for (const name of ['none', 'team', 'nobody', 'missing', 'none', 'team']) {
      const { allowed } = await ask(engine, name, open)
      expect({ name, allowed }).toEqual({ name, allowed: name === 'team' })
    }
    const secret = Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')
    const leaked = world.registry.requests.filter(({ headers }) =>
      JSON.stringify(headers).includes(secret),
    )
    expect(leaked).toEqual([])
  })
})

describe('pinning with credentials', () => {
  test.each([
    { name: 'by the policy that can see the image', policies: ['own'], pins: true },
    { name: 'by the first of two that can', policies: ['other', 'own'], pins: true },
    { name: 'by neither of two that cannot', policies: ['other', 'blind'], pins: false },
  ])('is done $name', async ({ policies, pins }) => {
    const secrets: Record<string, string> = { own: 'team', blind: 'nobody' }
    const engine = await engineOf(policies.map((name) => policy(name, secrets[name])))
    const object = podWith([tagged])
    const decision = await engine.mutate(requestFor(object), callFor())
    const text = JSON.stringify(patched(object, decision))
    expect(text.includes(`"${tagged}@${digest}"`)).toBe(pins)
    expect(JSON.stringify(decision)).not.toContain('s3cr3t')
  })

  test('proves nothing for a policy that cannot see the image', async () => {
    const engine = await engineOf([policy('own', 'team'), policy('other')])
    const object = podWith([tagged])
    const after = patched(object, await engine.mutate(requestFor(object), callFor()))
    const validated = await engine.validate(requestFor(after), callFor())
    expect(validated.allowed).toBe(false)
    const own = await engine.validate(requestFor(after), callFor({ policies: ['own'] }))
    expect(own.allowed).toBe(true)
  })
})
