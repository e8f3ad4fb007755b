import { describe, expect, test } from 'vitest'
import type { AdmissionRequest } from '#shared/admission/types.ts'
import type { Host, HostAnswer, HostCall } from '#shared/cel/types.ts'
import { CEL_PER_CALL_COST } from '#shared/limits.ts'
import { type EvaluationResult, evaluate, matchConditions } from '#shared/policy/evaluate.ts'
import { imagesOf } from '#shared/policy/images.ts'
import { loadRuntime, type PreparedPolicy, preparePolicy } from '#shared/policy/prepare.ts'
import { subjectOf } from '#shared/policy/subject.ts'
import type { CompiledPolicy } from '#shared/policy/types.ts'
import { compiledPolicy, keyAttestor } from './documents.ts'
import { pod, review } from './review.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const TAGS = { validationConfigurations: { verifyDigest: false } }

/** The policy as a function gets it: through JSON. */
async function prepared(spec: object): Promise<PreparedPolicy> {
  const shipped: CompiledPolicy = JSON.parse(JSON.stringify(await compiledPolicy(spec)))
  return preparePolicy(shipped, await loadRuntime(shipped))
}

/** A host that must not be asked. */
const nobody: Host = (call) => {
  throw new TypeError(`asked ${call.name}`)
}

/** A host with answers by image, and the calls it got. */
function hostOf(answers: Record<string, HostAnswer | number>): { host: Host; calls: HostCall[] } {
  const calls: HostCall[] = []
  return {
    calls,
    host: (call) => {
      calls.push(call)
      const answer = answers[String(call.args[0])] ?? { kind: 'pending' }
      return typeof answer === 'number' ? { kind: 'value', value: answer } : answer
    },
  }
}

async function run(
  spec: object,
  request: Partial<AdmissionRequest> = {},
  host: Host = nobody,
): Promise<EvaluationResult> {
  return evaluate(await prepared({ ...TAGS, ...spec }), subjectOf(review(request)), host)
}

const SIGNED = {
  validations: [
    {
      expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.release]) > 0)',
      message: 'not signed',
    },
  ],
}

describe('matchConditions', () => {
  const TRUE = { name: 'yes', expression: 'request.operation == "CREATE"' }
  const FALSE = { name: 'no', expression: 'request.operation == "UPDATE"' }
  const ERROR = { name: 'broken', expression: 'object.spec.nothing == 1' }
  const OTHER = { name: 'other', expression: 'object.nobody == 1' }

  test.each<{ name: string; conditions: object[]; failurePolicy?: string; is: object }>([
    { name: 'none is a match', conditions: [], is: { status: 'matched' } },
    { name: 'all true is a match', conditions: [TRUE], is: { status: 'matched' } },
    {
      name: 'a false is none',
      conditions: [TRUE, FALSE],
      is: { status: 'unmatched', condition: 'no' },
    },
    {
      name: 'a false outranks an error before it',
      conditions: [ERROR, FALSE],
      is: { status: 'unmatched', condition: 'no' },
    },
    {
      name: 'a false outranks an error behind it',
      conditions: [FALSE, ERROR],
      is: { status: 'unmatched', condition: 'no' },
    },
    {
      name: 'an error under Fail is an error',
      conditions: [TRUE, ERROR],
      is: {
        status: 'error',
        message: 'failed to evaluate policy: match condition broken: no such key: nothing',
      },
    },
    {
      name: 'every error is told',
      conditions: [ERROR, TRUE, OTHER],
      is: {
        status: 'error',
        message:
          'failed to evaluate policy: match condition broken: no such key: nothing; match condition other: no such key: nobody',
      },
    },
    {
      name: 'an error under Ignore is no match, and says so',
      conditions: [ERROR],
      failurePolicy: 'Ignore',
      is: {
        status: 'failed-open',
        message: 'failed to evaluate policy: match condition broken: no such key: nothing',
      },
    },
    {
      name: 'a false under Ignore is just no match',
      conditions: [ERROR, FALSE],
      failurePolicy: 'Ignore',
      is: { status: 'unmatched', condition: 'no' },
    },
  ])('$name', async ({ conditions, failurePolicy = 'Fail', is }) => {
    const policy = await prepared({ matchConditions: conditions, failurePolicy })
    expect(matchConditions(policy, subjectOf(review()))).toEqual(is)
  })

  test('conditions that cost too much together are an error', async () => {
    const expression = '[1,2,3,4,5,6,7,8,9,10].all(a, object.list.all(b, b > 0))'
    const conditions = Array.from({ length: 10 }, (_, i) => ({ name: `c${i}`, expression }))
    const policy = await prepared({ matchConditions: conditions })
    const object = { list: Array.from({ length: 10_000 }, () => 1) }
    const result = matchConditions(policy, subjectOf(review({ object })))
    expect(result.status).toBe('error')
    expect('message' in result && result.message).toContain('cost budget')
  })
})

describe('the variables of an expression', () => {
  const gone = { operation: 'DELETE' as const, object: null, oldObject: pod('a:1') }

  test.each<{ name: string; expression: string; request?: Partial<AdmissionRequest> }>([
    { name: 'object', expression: 'object.metadata.name == "web" && oldObject == null' },
    {
      name: 'oldObject of a DELETE',
      expression: 'object == null && oldObject.metadata.name == "web"',
      request: gone,
    },
    {
      name: 'an empty object of a DELETE',
      expression: 'object == null',
      request: { ...gone, object: {} },
    },
    { name: 'images of a DELETE', expression: 'images.containers == ["a:1"]', request: gone },
    {
      name: 'request',
      expression:
        'request.namespace == "shop" && request.kind.kind == "Pod" && request.userInfo.username == "dev" && request.object.metadata.name == "web"',
    },
    {
      name: 'what is empty in a request is not set',
      expression: '!has(request.name) && !has(request.subResource) && has(request.operation)',
      request: { name: '' },
    },
    {
      name: 'a subresource',
      expression: 'request.subResource == "ephemeralcontainers"',
      request: { subResource: 'ephemeralcontainers' },
    },
    {
      name: 'images of every kind',
      expression:
        'images.initContainers == [] && images.ephemeralContainers == [] && images.containers == ["registry.test/app:1"]',
    },
    {
      name: 'images of something without Pods',
      expression: 'size(images) == 0',
      request: {
        kind: { group: '', version: 'v1', kind: 'Service' },
        resource: { group: '', version: 'v1', resource: 'services' },
        requestResource: { group: '', version: 'v1', resource: 'services' },
        object: { spec: {} },
      },
    },
    {
      name: 'attestors',
      expression:
        'size(attestors) == 1 && "release" in attestors && attestors.release == attestors["release"]',
    },
    {
      name: 'parts of a reference',
      expression:
        'parseImageReference("nginx").registry() == "index.docker.io" && image("nginx").repository() == "library/nginx" && image("nginx").tag() == "latest" && image("nginx").identifier() == "latest" && image("nginx").digest() == "" && !image("nginx").containsDigest()',
    },
    {
      name: 'a tag beside a digest does not count',
      expression: `image("a.test/bb:1@${DIGEST}").tag() == "" && image("a.test/bb:1@${DIGEST}").containsDigest() && image("a.test/bb:1@${DIGEST}").identifier() == "${DIGEST}"`,
    },
    { name: 'what is no reference', expression: '!isImage("A B") && isImage("a/b:c")' },
    {
      name: 'functions of Kyverno that need nothing from outside',
      expression:
        'json.unmarshal("{\\"a\\":1}").a == 1.0 && md5("") == "d41d8cd98f00b204e9800998ecf8427e" && parseServiceAccount("system:serviceaccount:shop:bot").Name == "bot" && math.round(1.25, 1) == 1.3',
    },
  ])('$name', async ({ expression, request }) => {
    const result = await run({ validations: [{ expression, message: 'no' }] }, request)
    expect(result).toMatchObject({ status: 'pass', message: 'success' })
  })

  test.each([
    {
      name: 'a reference that is none',
      expression: 'image("A B").tag() == ""',
      message: /^failed to evaluate policy: image reference "A B": /,
    },
    {
      name: 'an attestor that is none',
      expression: 'verifyImageSignatures("registry.test/app:1", ["release"]) > 0',
      message:
        /^failed to evaluate policy: verifyImageSignatures: the list holds something that is not an attestor$/,
    },
    {
      name: 'an object that is not there',
      expression: 'object.spec.x == 1',
      message: /^failed to evaluate policy: no such key: x$/,
    },
  ])('$name is an error', async ({ expression, message }) => {
    const result = await run({ validations: [{ expression }] })
    expect(result).toEqual({ status: 'error', message: expect.stringMatching(message) })
  })
})

describe('imagesOf', () => {
  async function images(spec: object, ...found: string[]) {
    return imagesOf(await prepared(spec), subjectOf(review({ object: pod(...found) })))
  }
  const refs = (...matchImageReferences: object[]) => ({ matchImageReferences })

  test.each<{ name: string; spec: object; found: string[]; all: string[] }>([
    { name: 'no references: every image', spec: {}, found: ['a:1', 'b:1'], all: ['a:1', 'b:1'] },
    {
      name: 'a glob',
      spec: refs({ glob: 'a.test/*' }),
      found: ['a.test/x/yy:1', 'b.test/xx:1'],
      all: ['a.test/x/yy:1'],
    },
    {
      name: 'a glob on the reference as written',
      spec: refs({ glob: 'nginx:1' }),
      found: ['nginx:1'],
      all: ['nginx:1'],
    },
    {
      name: 'a glob on the normal form',
      spec: refs({ glob: 'docker.io/*' }),
      found: ['nginx', 'a.test/xx'],
      all: ['nginx'],
    },
    {
      name: 'a glob on the full name',
      spec: refs({ glob: 'index.docker.io/library/nginx:latest' }),
      found: ['nginx'],
      all: ['nginx'],
    },
    {
      name: 'an expression',
      spec: refs({ expression: 'parseImageReference(ref).registry() == "a.test"' }),
      found: ['a.test/xx', 'b.test/xx'],
      all: ['a.test/xx'],
    },
    {
      name: 'one of several',
      spec: refs({ glob: 'a.test/*' }, { glob: 'b.test/*' }),
      found: ['a.test/xx', 'b.test/xx', 'c.test/xx'],
      all: ['a.test/xx', 'b.test/xx'],
    },
    {
      name: 'a match beside an error',
      spec: refs({ expression: 'parseImageReference(ref).tag() == "x"' }, { glob: '*' }),
      found: ['A B'],
      all: ['A B'],
    },
    { name: 'every image once', spec: {}, found: ['a:1', 'a:1'], all: ['a:1'] },
    {
      name: 'a text that is no reference',
      spec: refs({ glob: 'A *' }),
      found: ['A B'],
      all: ['A B'],
    },
  ])('$name', async ({ spec, found, all }) => {
    expect(await images(spec, ...found)).toMatchObject({ status: 'ok', all })
  })

  test('keeps every extractor, with the matched images only', async () => {
    const spec = {
      ...refs({ glob: 'a.test/*' }),
      images: [{ name: 'more', expression: '["a.test/zz", "b.test/zz"]' }],
    }
    expect(await images(spec, 'a.test/xx', 'b.test/xx')).toEqual({
      status: 'ok',
      map: {
        containers: ['a.test/xx'],
        initContainers: [],
        ephemeralContainers: [],
        more: ['a.test/zz'],
      },
      all: ['a.test/xx', 'a.test/zz'],
    })
  })

  test('an extractor of the policy takes the place of one of the same name', async () => {
    const spec = { images: [{ name: 'containers', expression: '["mine"]' }] }
    expect(await images(spec, 'a:1')).toMatchObject({ status: 'ok', all: ['mine'] })
  })

  test.each<{ name: string; spec: object; message: RegExp }>([
    {
      name: 'a reference that cannot be matched',
      spec: refs({ expression: 'parseImageReference(ref).tag() == "x"' }),
      message: /^failed to match image A B: image reference "A B": /,
    },
    {
      name: 'an extractor that fails',
      spec: { images: [{ name: 'x', expression: 'object.nothing' }] },
      message: /^failed to evaluate images\.x: no such key: nothing$/,
    },
    {
      name: 'an extractor that is no list',
      spec: { images: [{ name: 'x', expression: 'object.metadata.name' }] },
      message: /^images\.x is not a list of strings$/,
    },
    {
      name: 'an extractor with something else in it',
      spec: { images: [{ name: 'x', expression: '[object.spec]' }] },
      message: /^images\.x is not a list of strings$/,
    },
  ])('$name is an error', async ({ spec, message }) => {
    expect(await images(spec, 'A B')).toEqual({
      status: 'error',
      message: expect.stringMatching(message),
    })
  })

  test('an image list that cannot be read is an error of the policy', async () => {
    const object = { metadata: {}, spec: { containers: [{ name: 'a' }] } }
    const result = await run({}, { object })
    expect(result).toEqual({
      status: 'error',
      message: expect.stringContaining(
        'failed to evaluate policy: images cannot be read: /spec/containers/0/image',
      ),
    })
  })

  test('more images than one object may have are an error', async () => {
    const images = [{ name: 'x', expression: 'object.many' }]
    const object = { ...pod('a:1'), many: Array.from({ length: 1000 }, (_, i) => `i${i}`) }
    expect(await run({ images }, { object })).toEqual({
      status: 'error',
      message: 'failed to evaluate policy: 1001 images, at most 1000 may be',
    })
  })
})

describe('verifyDigest', () => {
  const ON = {
    validationConfigurations: { verifyDigest: true },
    validations: [{ expression: 'false' }],
  }

  test('the first image without a digest fails the policy before anything is looked up', async () => {
    const object = pod(`a.test/xx@${DIGEST}`, 'a.test/yy:1', 'a.test/zz:1')
    expect(await run(ON, { object })).toEqual({
      status: 'fail',
      message: 'image a.test/yy:1 does not have a digest',
      auditAnnotations: {},
      images: [`a.test/xx@${DIGEST}`, 'a.test/yy:1', 'a.test/zz:1'],
      image: 'a.test/yy:1',
    })
  })

  test('what is no reference is an error', async () => {
    expect(await run(ON, { object: pod('A B') })).toEqual({
      status: 'error',
      message: expect.stringMatching(
        /^failed to evaluate policy: failed to parse image reference A B: /,
      ),
    })
  })

  test.each([
    {
      name: 'an image of somebody else need not have one',
      spec: { matchImageReferences: [{ glob: 'b.test/*' }] },
      image: 'a.test/xx:1',
    },
    { name: 'a tag beside a digest is pinned', spec: {}, image: `a.test/xx:1@${DIGEST}` },
    { name: 'it is off', spec: TAGS, image: 'a.test/xx:1' },
  ])('$name', async ({ spec, image }) => {
    const validations = [{ expression: 'true' }]
    expect(await run({ ...ON, validations, ...spec }, { object: pod(image) })).toMatchObject({
      status: 'pass',
    })
  })
})

describe('validations', () => {
  const no = (fields: object = {}) => ({ expression: 'object == null', ...fields })
  const yes = { expression: 'object != null' }
  const broken = { expression: 'object.nothing == 1' }

  test.each<{ name: string; validations: object[]; status: string; message: string }>([
    { name: 'all true', validations: [yes, yes], status: 'pass', message: 'success' },
    { name: 'none', validations: [], status: 'pass', message: 'success' },
    {
      name: 'the first false decides',
      validations: [yes, no({ message: 'a' }), no({ message: 'b' })],
      status: 'fail',
      message: 'a',
    },
    {
      name: 'a false before an error',
      validations: [no({ message: 'a' }), broken],
      status: 'fail',
      message: 'a',
    },
    {
      name: 'an error before a false',
      validations: [broken, no()],
      status: 'error',
      message: 'failed to evaluate policy: no such key: nothing',
    },
    {
      name: 'no message',
      validations: [yes, no()],
      status: 'fail',
      message: 'CEL expression validation failed at index 1',
    },
    {
      name: 'an empty message',
      validations: [no({ message: '' })],
      status: 'fail',
      message: 'CEL expression validation failed at index 0',
    },
    {
      name: 'a message expression instead of the message',
      validations: [no({ message: 'a', messageExpression: '"b " + object.metadata.name' })],
      status: 'fail',
      message: 'b web',
    },
    {
      name: 'an empty message expression',
      validations: [no({ message: 'a', messageExpression: '""' })],
      status: 'fail',
      message: 'CEL expression validation failed at index 0',
    },
    {
      name: 'a message expression that fails',
      validations: [no({ message: 'a', messageExpression: 'object.nothing + ""' })],
      status: 'fail',
      message: 'failed to evaluate message expression: no such key: nothing',
    },
  ])('$name', async ({ validations, status, message }) => {
    expect(await run({ validations })).toMatchObject({ status, message })
  })

  test('an expression that costs too much is an error', async () => {
    const object = { ...pod('a:1'), list: Array.from({ length: 5000 }, (_, i) => i) }
    const validations = [{ expression: 'object.list.all(a, object.list.all(b, a + b >= 0))' }]
    expect(await run({ validations }, { object })).toEqual({
      status: 'error',
      message: 'failed to evaluate policy: operation cancelled: actual cost limit exceeded',
    })
  })

  test('expressions that cost too much together are an error, never a pass', async () => {
    const object = { ...pod('a:1'), list: Array.from({ length: 300 }, () => 1) }
    const validations = Array.from({ length: 40 }, () => ({
      expression: 'object.list.all(a, object.list.all(b, a + b == 2))',
    }))
    const one = await run({ validations: validations.slice(0, 1) }, { object })
    expect(one).toMatchObject({ status: 'pass' })
    expect(await run({ validations }, { object })).toEqual({
      status: 'error',
      message: expect.stringContaining('running out of cost budget'),
    })
    expect(CEL_PER_CALL_COST).toBe(1_000_000)
  })

  test('a variable nobody reads cannot fail, one that is read fails who reads it', async () => {
    const variables = [{ name: 'bad', expression: 'object.nothing' }]
    expect(await run({ variables, validations: [yes] })).toMatchObject({ status: 'pass' })
    expect(await run({ variables, validations: [{ expression: 'variables.bad == 1' }] })).toEqual({
      status: 'error',
      message: expect.stringContaining('no such key: nothing'),
    })
  })

  test('patterns run on RE2', async () => {
    const validations = [
      { expression: 'images.containers.all(i, i.matches("^registry\\\\.test/(?i:APP):[0-9]+$"))' },
    ]
    expect(await run({ validations })).toMatchObject({ status: 'pass' })
  })
})

describe('audit annotations', () => {
  const annotations = (...expressions: string[]) => ({
    auditAnnotations: expressions.map((valueExpression, index) => ({
      key: `k${index}`,
      valueExpression,
    })),
  })

  test.each<{ name: string; spec: object; is: object }>([
    {
      name: 'on a pass',
      spec: annotations('string(object.metadata.name)'),
      is: { status: 'pass', auditAnnotations: { k0: 'web' } },
    },
    {
      name: 'on a failure',
      spec: { ...annotations('"x"'), validations: [{ expression: 'false', message: 'm' }] },
      is: { status: 'fail', message: 'm', auditAnnotations: { k0: 'x' } },
    },
    {
      name: 'empty text and null are left out',
      spec: annotations('""', 'null', '"x"'),
      is: { status: 'pass', auditAnnotations: { k2: 'x' } },
    },
    {
      name: 'one that fails is an error of the policy',
      spec: annotations('object.nothing + ""'),
      is: {
        status: 'error',
        message:
          "failed to evaluate policy: failed to evaluate auditAnnotation 'k0': no such key: nothing",
      },
    },
  ])('$name', async ({ spec, is }) => {
    expect(await run(spec)).toMatchObject(is)
  })
})

describe('host calls', () => {
  const TWO = { object: pod('a.test/xx:1', 'a.test/yy:1') }

  test('what is not known yet is pending, and everything is asked for in one pass', async () => {
    const { host, calls } = hostOf({})
    expect(await run(SIGNED, TWO, host)).toEqual({ status: 'pending' })
    expect(calls).toEqual([
      { name: 'verifyImageSignatures', args: ['a.test/xx:1', ['release']] },
      { name: 'verifyImageSignatures', args: ['a.test/yy:1', ['release']] },
    ])
  })

  test('later validations ask in the same pass', async () => {
    const validations = [
      ...SIGNED.validations,
      { expression: 'images.containers.all(i, getImageData(i).config.os == "linux")' },
    ]
    const { host, calls } = hostOf({})
    expect(await run({ validations }, { object: pod('a.test/xx:1') }, host)).toEqual({
      status: 'pending',
    })
    expect(calls.map(({ name }) => name)).toEqual(['verifyImageSignatures', 'getImageData'])
  })

  test.each<{ name: string; answers: Record<string, HostAnswer | number>; is: object }>([
    {
      name: 'all verified',
      answers: { 'a.test/xx:1': 1, 'a.test/yy:1': 1 },
      is: { status: 'pass', message: 'success', images: ['a.test/xx:1', 'a.test/yy:1'] },
    },
    {
      name: 'one not verified',
      answers: { 'a.test/xx:1': 1, 'a.test/yy:1': 0 },
      is: { status: 'fail', message: 'not signed' },
    },
    {
      name: 'one not verified decides while another is not known',
      answers: { 'a.test/xx:1': 0 },
      is: { status: 'fail', message: 'not signed' },
    },
    {
      name: 'one that could not be checked is an error',
      answers: {
        'a.test/xx:1': 1,
        'a.test/yy:1': { kind: 'error', message: 'failed to get imagedata: no answer' },
      },
      is: {
        status: 'error',
        message: 'failed to evaluate policy: failed to get imagedata: no answer',
      },
    },
    {
      name: 'one that is not known is pending, not passed',
      answers: { 'a.test/xx:1': 1 },
      is: { status: 'pending' },
    },
  ])('$name', async ({ answers, is }) => {
    expect(await run(SIGNED, TWO, hostOf(answers).host)).toMatchObject(is)
  })

  test('a later answer never decides before an earlier one that is not known', async () => {
    const validations = [...SIGNED.validations, { expression: 'false', message: 'later' }]
    expect(await run({ validations }, TWO, hostOf({}).host)).toEqual({ status: 'pending' })
    const error = [...SIGNED.validations, { expression: 'object.nothing == 1' }]
    expect(await run({ validations: error }, TWO, hostOf({}).host)).toEqual({ status: 'pending' })
    const known = hostOf({ 'a.test/xx:1': 0 })
    expect(await run({ validations }, TWO, known.host)).toMatchObject({
      status: 'fail',
      message: 'not signed',
    })
  })

  test('an image that is not the policy’s counts no attestor and nobody is asked', async () => {
    const spec = {
      matchImageReferences: [{ glob: 'b.test/*' }],
      validations: [
        { expression: 'verifyImageSignatures("a.test/xx:1", [attestors.release]) == 0' },
      ],
    }
    expect(await run(spec, TWO)).toMatchObject({ status: 'pass', images: [] })
  })

  test('several attestors are one call', async () => {
    const spec = {
      attestors: [keyAttestor('a'), keyAttestor('b')],
      validations: [
        {
          expression:
            'images.containers.all(i, verifyImageSignatures(i, [attestors.a, attestors.b]) == 2)',
        },
      ],
    }
    const { host, calls } = hostOf({ 'a.test/xx:1': 2 })
    expect(await run(spec, { object: pod('a.test/xx:1') }, host)).toMatchObject({ status: 'pass' })
    expect(calls).toEqual([{ name: 'verifyImageSignatures', args: ['a.test/xx:1', ['a', 'b']] }])
  })

  test('image data is a map', async () => {
    const validations = [
      {
        expression:
          'image.GetMetadata("a.test/xx:1").config.os == "linux" && image.getMetadata("a.test/xx:1") == getImageData("a.test/xx:1")',
      },
    ]
    const { host, calls } = hostOf({
      'a.test/xx:1': { kind: 'value', value: { config: { os: 'linux' } } },
    })
    expect(await run({ validations }, {}, host)).toMatchObject({ status: 'pass' })
    expect(new Set(calls.map(({ name }) => name))).toEqual(new Set(['getImageData']))
  })

  test('variables, messages and audit annotations wait too', async () => {
    const data = 'getImageData("a.test/xx:1").digest'
    const variables = [{ name: 'digest', expression: data }]
    const specs = [
      { variables, validations: [{ expression: 'variables.digest == "d"' }] },
      {
        variables,
        validations: [
          { expression: 'object == null', messageExpression: '"digest " + variables.digest' },
        ],
      },
      { variables, auditAnnotations: [{ key: 'k', valueExpression: 'string(variables.digest)' }] },
    ]
    const known = hostOf({ 'a.test/xx:1': { kind: 'value', value: { digest: 'd' } } })
    const results = []
    for (const spec of specs) {
      expect(await run(spec, {}, hostOf({}).host)).toEqual({ status: 'pending' })
      results.push(await run(spec, {}, known.host))
    }
    expect(results).toMatchObject([
      { status: 'pass' },
      { status: 'fail', message: 'digest d' },
      { status: 'pass', auditAnnotations: { k: 'd' } },
    ])
  })

  test('the host is asked again in every pass, nothing is remembered between them', async () => {
    const policy = await prepared({ ...TAGS, ...SIGNED })
    const subject = subjectOf(review({ object: pod('a.test/xx:1') }))
    expect(evaluate(policy, subject, hostOf({}).host)).toEqual({ status: 'pending' })
    expect(evaluate(policy, subject, hostOf({ 'a.test/xx:1': 1 }).host)).toMatchObject({
      status: 'pass',
    })
    expect(evaluate(policy, subject, hostOf({ 'a.test/xx:1': 0 }).host)).toMatchObject({
      status: 'fail',
    })
  })
})

describe('preparePolicy', () => {
  test.each([
    { name: 'an ordinary policy needs nothing more', expression: '"a" in ["a"]', parts: [] },
    {
      name: 'a pattern needs the regex engine',
      expression: '"a".matches(object.kind)',
      parts: ['regex'],
    },
    {
      name: 'a function few policies use needs the library',
      expression: 'isIP(object.kind)',
      parts: ['costs', 'library'],
    },
    {
      name: 'both may be needed, also in a macro',
      expression: '["a"].all(x, x.matches("a") && isQuantity(x))',
      parts: ['costs', 'library', 'regex'],
    },
  ])('$name', async ({ expression, parts }) => {
    const policy = await compiledPolicy({ validations: [{ expression }] })
    expect(Object.keys(await loadRuntime(policy)).sort()).toEqual(parts)
  })

  test('refuses a policy whose programs cannot be made', async () => {
    const policy = await compiledPolicy({ validations: [{ expression: 'isImage("a")' }] })
    const text = JSON.stringify(policy)
      .replaceAll('isImage', 'nobody')
      .replaceAll('is_image_string', 'nobody_string')
    expect(() => preparePolicy(JSON.parse(text))).toThrow(
      expect.objectContaining({ code: 'CEL_PROGRAM' }),
    )
  })
})
