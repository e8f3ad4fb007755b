import { describe, expect, test } from 'vitest'
import { load, policyDocument, said } from './documents.ts'

/** What is said of a policy with one validation, or with one expression elsewhere. */
async function faultsOf(spec: object, document: object = {}) {
  const { faults } = await load([{ ...policyDocument(spec), ...document }])
  return said(faults)
}

const validation = (expression: string) => ({ validations: [{ expression }] })

const NAMESPACED = {
  kind: 'NamespacedImageValidatingPolicy',
  metadata: { name: 'must-sign', namespace: 'shop' },
}

describe('every function of the libraries (image-validating-policy.md 2.7)', () => {
  test.each([
    'image.GetMetadata("a").digest == ""',
    'image.getMetadata("a").digest == ""',
    'resource.Get("v1", "pods", "a", "b").kind == "Pod"',
    'resource.get("v1", "pods", "a", "b").kind == "Pod"',
    'resource.get(resource.toGVR("v1", "Pod"), "a", "b").kind == "Pod"',
    'resource.Get(resource.ToGVR("v1", "Pod"), "a", "b").kind == "Pod"',
    'resource.List("v1", "pods", "a").items.size() == 0',
    'resource.list("v1", "pods", "a", {"x": "y"}).items.size() == 0',
    'resource.list(resource.toGVR("v1", "Pod"), "a").items.size() == 0',
    'resource.list(resource.toGVR("v1", "Pod"), "a", {"x": "y"}).items.size() == 0',
    'http.Get("https://a").ok == true',
    'http.get("https://a", {"x": "y"}).ok == true',
    'http.Post("https://a", {"x": 1}).ok == true',
    'http.post("https://a", "x", {"x": "y"}).ok == true',
    'http.Client("CA").Get("https://a").ok == true',
    'http.client("CA").get("https://a").ok == true',
    'user.parseServiceAccount("a").Name == ""',
    'parseServiceAccount("a").Namespace == ""',
    'sha1("a") == hash.sha1("a") && sha256("a") == hash.sha256("a") && md5("a") == hash.md5("a")',
    'math.round(1.5, 0) == 2.0',
    'random() == random("[a-z]") && random.random() == random.random("[a-z]")',
    'time.now() > timestamp("2026-01-01T00:00:00Z")',
    'time.toCron(time.truncate(time.now(), duration("1h"))) == ""',
    'listObjToMap([{"a": "b"}], [{"c": "d"}], "a", "c")["b"] == "d"',
    'transform.listObjToMap([{"a": "b"}], [{"c": "d"}], "a", "c")["b"] == "d"',
    'json.unmarshal(json.marshal({"a": 1})).a == 1',
    'yaml.parse("a: 1").a == 1',
    'gzip.decompress(gzip.compress("a")) == "a"',
    'namespaceObject == null || namespaceObject.metadata.labels["a"] == "b"',
  ])('%s', async (expression) => {
    expect(await faultsOf(validation(expression))).toEqual([])
  })

  test.each([
    'resource.get("v1", "pods", "a").kind == "Pod"',
    'resource.Get(resource.ToGVR("v1", "Pod"), "a").kind == "Pod"',
    'resource.list("v1", "pods").items.size() == 0',
    'resource.List("v1", "pods", {"x": "y"}).items.size() == 0',
    'resource.list(resource.toGVR("v1", "Pod")).items.size() == 0',
    'resource.list(resource.toGVR("v1", "Pod"), {"x": "y"}).items.size() == 0',
  ])('in a namespaced policy %s, and only there', async (expression) => {
    expect(await faultsOf(validation(expression), NAMESPACED)).toEqual([])
    expect(await faultsOf(validation(expression))).toMatchObject([{ code: 'CEL_CHECK' }])
  })
})

describe('what is refused when a policy loads', () => {
  const POST = 'resource.post is not supported: the connection to the cluster only reads'
  const PUT = 'http.put is not supported: policies of Kyverno have get and post'
  const GLOBAL =
    'globalContext is not supported: nothing watches the cluster between two requests; resource.list and resource.get read it'

  test.each<[string, string]>([
    ['resource.Post("v1", "pods", "a", {}).kind == ""', POST],
    ['resource.post("v1", "pods", {}).kind == ""', POST],
    ['dyn(resource).post("v1", "pods", {}).kind == ""', POST],
    ['http.put("https://a", {}).ok == true', PUT],
    ['globalContext.Get("a") == null', GLOBAL],
    ['globalContext.get("a", "b") == null', GLOBAL],
  ])('%s', async (expression, message) => {
    expect(await faultsOf(validation(expression))).toContainEqual({
      code: 'POLICY_UNSUPPORTED',
      path: 'spec.validations[0].expression',
      message,
    })
  })

  const early = (name: string) =>
    `${name} is not available here: nothing outside is asked before it is known which images the policy is about; use it in variables or validations`

  test.each<[string, string]>([
    ['resource.get("v1", "pods", "a", "b").kind == ""', early('resource')],
    ['http.get("https://a").ok == true', early('http')],
    ['yaml.parse("a").b == true', early('yaml')],
    ['random() == ""', early('random')],
    ['gzip.compress("a") == b""', early('gzip')],
    [
      'time.now() > timestamp("2026-01-01T00:00:00Z")',
      'time has only toCron and truncate here: time.now is for variables and validations',
    ],
  ])('as a match condition: %s', async (expression, message) => {
    expect(await faultsOf({ matchConditions: [{ name: 'a', expression }] })).toEqual([
      { code: 'POLICY_UNSUPPORTED', path: 'spec.matchConditions[0].expression', message },
    ])
  })

  test('namespaceObject where there is only a reference', async () => {
    const matchImageReferences = [{ expression: 'namespaceObject.metadata.name == ref' }]
    expect(await faultsOf({ matchImageReferences })).toEqual([
      {
        code: 'POLICY_UNSUPPORTED',
        path: 'spec.matchImageReferences[0].expression',
        message: 'namespaceObject is not available here',
      },
    ])
  })
})
