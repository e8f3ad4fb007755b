import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { localSigner } from '#functions/local/signer.ts'
import { LocalSigstore } from '#functions/local/sigstore/authority.ts'
import type { JsonObject } from '#shared/admission/types.ts'
import { isJsonObject, type JsonValue } from '#shared/json.ts'
import { autogenStatus } from '#shared/policy/autogen-status.ts'
import { parseYaml } from '#shared/yaml.ts'
import { type Cluster, createCluster } from '#test/fakes/cluster.ts'
import { mint, mintRoot, pemOf } from '#test/fakes/pki.ts'
import { publish, workflow } from '#test/fakes/publish.ts'
import { createRegistries } from '#test/fakes/registries.ts'

// Kyverno's acceptance cases of image policies (specs/image-validating-policy.md 8) in our own words: what each folder of test/fixtures says is
// played through the chain of an API server and both functions, against registries that answer under the real names, with images signed here.

const FOLDER = fileURLToPath(new URL('../fixtures', import.meta.url))
const NOW = Date.parse('2026-03-01T12:00:00Z')
const NAMESPACE = 'shop'
const ISSUER = 'https://token.actions.githubusercontent.com'
const SUBJECT =
  'https://github.com/kyverno/test-images/.github/workflows/cosign.yml@refs/heads/main'
const IMAGE = 'ghcr.io/kyverno/test-verify-image'
const COSIGN = 'ghcr.io/kyverno/test-images/cosign'

/** `expect.yaml`. Digests stand as `<digest>`. */
interface Expectation {
  /** Where upstream is stale, wrong, or different. */
  note?: string
  /** Members that `status.autogen` of the first policy has. */
  autogen?: JsonObject
  /** `path: message` of every fault; nothing else is played then. */
  faults?: string[]
  requests?: {
    create: string
    operation?: 'CREATE' | 'UPDATE'
    subResource?: string
    verdict: 'allow' | 'deny'
    /** What the webhook says, all of it or a part. */
    message?: string
    contains?: string
    /** All warnings, or one of them. */
    warnings?: string[]
    warns?: string
    /** Of the stored object, in their order. */
    images?: string[]
  }[]
  report?: { resource: string; results: JsonObject[] }[]
}

const registries = createRegistries()
const root = mintRoot()
const chain = [mint({ issuer: root }), root]
const stranger = [mintRoot({ keyName: 'stranger', ca: null, usages: [0], purposes: undefined! })]
const release = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const sigstore = new LocalSigstore(NOW / 1000)
let signedDigest: string

beforeAll(async () => {
  const payload = { bomFormat: 'CycloneDX' }
  const sbom = { artifactType: 'sbom/cyclone-dx', payload }
  const signed = { notary: [chain], referrers: [{ ...sbom, notary: chain }] }
  signedDigest = (await publish(registries, `${IMAGE}:signed`, signed)).digest
  await publish(registries, `${IMAGE}:unsigned`)
  await publish(registries, `${IMAGE}:latest`)
  await publish(registries, `${IMAGE}:no-sbom`, { notary: [chain] })
  await publish(registries, `${IMAGE}:unsigned-sbom`, { notary: [chain], referrers: [sbom] })
  await publish(registries, `${IMAGE}:stranger`, { notary: [stranger] })
  const [key, wrongKey] = [localSigner(release.privateKey), localSigner(other.privateKey)]
  const builder = workflow(sigstore, SUBJECT, ISSUER)
  const wrongBuilder = workflow(sigstore, SUBJECT.replace('main', 'feature'), ISSUER)
  await publish(registries, `${IMAGE}:signed-keyless`, { cosign: [builder] })
  await publish(registries, `${COSIGN}:v2-traditional`, { cosign: [key] })
  await publish(registries, `${COSIGN}:v3-traditional`, { cosign: [key], layout: 'dsse' })
  await publish(registries, `${COSIGN}:other-traditional`, { cosign: [wrongKey] })
  await publish(registries, `${COSIGN}:v2-keyless`, { cosign: [builder] })
  await publish(registries, `${COSIGN}:v3-keyless`, { cosign: [builder], layout: 'dsse' })
  await publish(registries, `${COSIGN}:v3-bundle`, { cosign: [builder], layout: 'dsse' })
  await publish(registries, `${COSIGN}:other-keyless`, { cosign: [wrongBuilder], layout: 'dsse' })
  const predicate = { buildDefinition: {} }
  await publish(registries, `${COSIGN}:github-attestation`, {
    attestations: [{ predicateType: 'https://slsa.dev/provenance/v1', predicate, by: builder }],
  })
  await publish(registries, 'public.ecr.aws/docker/library/busybox:latest')
  await publish(registries, 'arm64v8/busybox:latest', { architecture: 'arm64' })
  await publish(registries, 'nginx')
  await publish(registries, 'registry.example.com/shop/web:1')
})
afterAll(() => registries.close())

/** The text of a fixture with the material of this run in it. */
function filled(text: string): string {
  const key = release.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  return text
    .replaceAll('$NOTARY', JSON.stringify(pemOf(root)))
    .replaceAll('$RELEASE_KEY', JSON.stringify(key))
    .replaceAll('$SIGNED_DIGEST', signedDigest)
}

function textOf(name: string, file: string): string | undefined {
  const where = path.join(FOLDER, name, file)
  return existsSync(where) ? filled(readFileSync(where, 'utf8')) : undefined
}

function objectsOf(name: string, file: string): JsonObject[] {
  return parseYaml(textOf(name, file) ?? '').filter(isJsonObject)
}

/** Digests are not what a fixture can know. */
const blank = (text: string) => text.replaceAll(/sha256:[0-9a-f]{64}/g, '<digest>')

function nameOf({ metadata }: JsonObject): unknown {
  return isJsonObject(metadata) ? metadata.name : undefined
}

/** Every `image` in an object. */
function imagesIn(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(imagesIn)
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, each]) =>
    key === 'image' && typeof each === 'string' ? [each] : imagesIn(each),
  )
}

describe.each(readdirSync(FOLDER).sort())('%s', (name) => {
  const expected = parseYaml(
    readFileSync(path.join(FOLDER, name, 'expect.yaml'), 'utf8'),
  )[0] as unknown as Expectation
  let cluster: Cluster | undefined

  beforeAll(async () => {
    const files = ['policy.yaml', 'exceptions.yaml'].flatMap((file) => {
      const text = textOf(name, file)
      return text === undefined ? [] : [{ name: file, text }]
    })
    const made = await createCluster({
      files,
      namespace: NAMESPACE,
      existing: objectsOf(name, 'existing.yaml'),
      fetch: registries.fetch,
      trustedRoot: JSON.stringify(sigstore.trustedRoot()),
      now: () => NOW,
    })
    const faults = made.faults.map(({ path: where, message }) => `${where}: ${message}`)
    expect(faults).toEqual(expected.faults ?? [])
    cluster = 'cluster' in made ? made.cluster : undefined
  })
  afterAll(() => cluster?.close())

  test('loads, or is refused, as expected', () => {
    expect(cluster === undefined).toBe(expected.faults !== undefined)
  })

  const withAutogen = expected.autogen === undefined ? [] : [expected.autogen]
  test.each(withAutogen)('generates the policies for Pod controllers', (autogen) => {
    const [policy] = objectsOf(name, 'policy.yaml')
    const status = JSON.parse(JSON.stringify(autogenStatus(policy)))
    if (Object.keys(autogen).length === 0) expect(status).toEqual({})
    else expect(status).toMatchObject(autogen)
  })

  test.each(expected.requests ?? [])('$create: $verdict', async (request) => {
    const object = objectsOf(name, 'resources.yaml').find(
      (each) => nameOf(each) === request.create,
    )!
    const { operation = 'CREATE', subResource } = request
    const admission = await cluster!.create({
      operation,
      object,
      ...(operation === 'UPDATE' && { oldObject: object }),
      ...(subResource !== undefined && { subResource }),
    })
    const denial = 'admission webhook "validate.countersign.dev" denied the request: '
    const said = blank(admission.message.replace(denial, ''))
    expect({ said, allowed: admission.allowed }).toEqual({
      said: request.message ?? (request.contains ? expect.stringContaining(request.contains) : ''),
      allowed: request.verdict === 'allow',
    })
    if (request.warnings) expect(admission.warnings.map(blank)).toEqual(request.warnings)
    if (request.warns) expect(admission.warnings.map(blank)).toContain(request.warns)
    if (request.images) expect(imagesIn(admission.object).map(blank)).toEqual(request.images)
  })

  test.each(expected.report ?? [])('$resource is reported', ({ resource, results }) => {
    const reports = cluster!.reports()
    const report = reports.find(({ scope }) => isJsonObject(scope!) && scope.name === resource)
    expect(report).toMatchObject({ kind: 'PolicyReport', results })
  })
})
