import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { countersign, type Ran } from './harness.ts'

let folder: string

const FILES: Readonly<Record<string, string>> = {
  'pod.yaml': `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: shop }
spec:
  priority: 1.0
  weight: 0.5
  big: 9007199254740993
  containers:
    - { name: app, image: "registry.example.com/app@sha256:1" }
    - { name: proxy, image: "registry.example.com/proxy:2" }
`,
  'old.json': '{"metadata": {"name": "web"}, "spec": {"weight": 1.0}}',
  'params.yaml': 'max: 5\n',
  'request.yaml': 'operation: UPDATE\nname: web\nuserInfo: { username: ada, groups: [dev] }\n',
  'namespace.yaml': 'metadata: { name: shop, labels: { tier: gold } }\n',
  'two.yaml': 'a: 1\n---\nb: 2\n',
  'list.yaml': '[1, 2]\n',
  'broken.yaml': 'a: 1\nb: [1\n',
  'twice.yaml': 'a: 1\nb: 2\na: 3\n',
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
  await Promise.all(
    Object.entries(FILES).map(([name, text]) => writeFile(path.join(folder, name), text)),
  )
})

afterAll(() => rm(folder, { recursive: true }))

/** `$` in an argument is the folder with the files. */
function cel(args: readonly string[], input: readonly string[] = []): Promise<Ran> {
  const resolved = args.map((arg) => arg.replace('$/', `${folder}/`))
  return countersign(['cel', ...resolved], { input: bytesOf(input) })
}

async function* bytesOf(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

/** The records for these lines. */
async function records(lines: readonly unknown[], ...args: string[]) {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  const ran = await cel(args, [`${text.join('\n')}\n`])
  return { ...ran, records: recordsIn(ran.out) }
}

function recordsIn(out: string): unknown[] {
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

describe('cel EXPRESSION', () => {
  test.each<[string, string[], number, string]>([
    ['a value, its type and its cost', ['1 + 1 == 2'], 0, 'true\nbool, cost 2\n'],
    ['false is a value', ['1 > 2'], 0, 'false\nbool, cost 1\n'],
    ['of an object', ['object.metadata.name', '--object', '$/pod.yaml'], 0, '"web"\ndyn, cost 3\n'],
    [
      'YAML has no doubles of integral value, and integers of any size are exact',
      ['[object.spec.priority, object.spec.weight, object.spec.big]', '--object', '$/pod.yaml'],
      0,
      '[1, 0.5, 9007199254740993]\nlist(dyn), cost 19\n',
    ],
    [
      'JSON has them',
      ['oldObject.spec.weight', '--old-object', '$/old.json'],
      0,
      '1.0\ndyn, cost 3\n',
    ],
    [
      'every input',
      [
        'object.kind == "Pod" && oldObject.metadata.name == request.name && params.max == 5 && namespaceObject.metadata.labels.tier == "gold" && "dev" in request.userInfo.groups',
        ...['--object', '$/pod.yaml', '--old-object', '$/old.json', '--params', '$/params.yaml'],
        ...['--request', '$/request.yaml', '--namespace-object', '$/namespace.yaml'],
      ],
      0,
      'true\nbool, cost 21\n',
    ],
    [
      'an input that is not given is null',
      ['oldObject == null && params == null', '--object', '$/pod.yaml'],
      0,
      'true\nbool, cost 4\n',
    ],
    [
      'variables in their order, with their cost',
      [
        'variables.pinned.size() == variables.images.size()',
        ...['--var', 'images=object.spec.containers.map(c, c.image)'],
        ...['--var', 'pinned=variables.images.filter(i, i.contains("@"))'],
        ...['--object', '$/pod.yaml'],
      ],
      0,
      'false\nbool, cost 7, variables 57\n',
    ],
    [
      'images in Kyverno’s profile',
      ['images.containers', '--profile', 'kyverno', '--object', '$/pod.yaml'],
      0,
      '["registry.example.com/app@sha256:1", "registry.example.com/proxy:2"]\nlist(string), cost 2\n',
    ],
    [
      'Kyverno’s functions, those that ask this process included',
      [
        'md5("a").startsWith("0cc") && yaml.parse("a: 2").a == 2.0 && gzip.decompress(gzip.compress("b")) == "b" && time.now() > timestamp("2000-01-01T00:00:00Z")',
        ...['--profile', 'kyverno'],
      ],
      0,
      'true\nbool, cost 15\n',
    ],
    [
      'cel-go’s extensions in the profile of the specification',
      ['math.greatest(1, 2.5)', '--profile', 'spec'],
      0,
      '2.5\ndyn, cost 1\n',
    ],
    [
      'an evaluation error',
      ['object.spec.none', '--object', '$/pod.yaml'],
      1,
      'error: no such key: none\ndyn, cost 3\n',
    ],
    [
      'a constant that can be none',
      ["int('x')"],
      1,
      "error: type conversion error from 'string' to 'int'\nint\n",
    ],
    [
      'a syntax error, underlined',
      ['1 +\n  * 2'],
      1,
      "ERROR: <input>:2:3: Syntax error: mismatched input '*' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n |   * 2\n | ..^\n",
    ],
    [
      'every check error, underlined',
      ['objec.x && request.uid == ""'],
      1,
      `ERROR: <input>:1:1: undeclared reference to 'objec' (in container '')
 | objec.x && request.uid == ""
 | ^
ERROR: <input>:1:19: undefined field 'uid'
 | objec.x && request.uid == ""
 | ..................^
`,
    ],
    [
      'a variable that does not compile, though nothing uses it',
      ['1', '--var', 'x=1 + "a"'],
      1,
      `variables.x
ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'
 | 1 + "a"
 | ..^
1
int, cost 0, variables 0
`,
    ],
    [
      'the use of a variable that cannot be made a program',
      ['variables.x', '--var', 'x=int("a")'],
      1,
      `variables.x
error: type conversion error from 'string' to 'int'
error: a variable it uses cannot be compiled
int, cost 2, variables 0
`,
    ],
    [
      'a function that only a registry could answer',
      ['verifyImageSignatures("a", [])', '--profile', 'kyverno'],
      1,
      `ERROR: <input>:1:22: undeclared reference to 'verifyImageSignatures' (in container '')
 | verifyImageSignatures("a", [])
 | .....................^
`,
    ],
    [
      'a function that an older Kubernetes does not have',
      ['[2, 1].sort()', '--kubernetes', '1.33'],
      1,
      `ERROR: <input>:1:12: undeclared reference to 'sort' (in container '')
 | [2, 1].sort()
 | ...........^
`,
    ],
    [
      'and a newer one has',
      ['[2, 1].sort()', '--kubernetes', 'v1.34'],
      0,
      '[1, 2]\nlist(int), cost 19\n',
    ],
  ])('%s', async (_, args, code, out) => {
    expect(await cel(args)).toEqual({ code, out, err: '' })
  })

  test.each<[string, string, string]>([
    [
      'a list of everything',
      '[1, 2.0, 3u, "a\\n", true, null, b"a\\xff\\"", {"k": [1]}].map(x, dyn(x))',
      '[1, 2.0, 3u, "a\\n", true, null, b"a\\xff\\x22", {"k": [1]}]',
    ],
    [
      'times',
      '[dyn(timestamp("2020-01-02T03:04:05+01:00")), dyn(duration("90m"))]',
      '[timestamp("2020-01-02T02:04:05Z"), duration("5400s")]',
    ],
    [
      'doubles that are no numbers',
      '[0.0 / 0.0, 1.0 / 0.0]',
      '[double("NaN"), double("Infinity")]',
    ],
    ['optionals', '[optional.of(1), optional.none()]', '[optional.of(1), optional.none()]'],
    ['types', 'type(1)', 'int'],
    ['opaque values', 'quantity("1Gi")', 'kubernetes.Quantity("1Gi")'],
  ])('spells %s', async (_, expression, text) => {
    const { out } = await cel([
      expression,
      '--profile',
      /quantity/.test(expression) ? 'kubernetes' : 'spec',
    ])
    expect(out.split('\n')[0]).toBe(text)
  })

  test('standard input can be the object', async () => {
    const ran = await cel(['object.kind', '--object', '-'], ['ki', 'nd: Pod\n'])
    expect(ran).toEqual({ code: 0, out: '"Pod"\ndyn, cost 2\n', err: '' })
  })

  test('JSON and YAML hold the record, and the faults with their places', async () => {
    const args = ['a + variables.x', '--var', 'x=[1](0)']
    const json = await cel([...args, '-o', 'json'])
    const yaml = await cel([...args, '-o', 'yaml'])
    expect([json.code, yaml.code]).toEqual([1, 1])
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out))
    expect(JSON.parse(json.out)).toEqual({
      phase: 'check',
      error: expect.stringMatching(/^ERROR: <input>:1:1: undeclared reference to 'a'/),
      issues: [
        { line: 1, column: 1, offset: 0, message: "undeclared reference to 'a' (in container '')" },
      ],
      variables: [
        {
          name: 'x',
          error: expect.stringMatching(/^ERROR: <input>:1:4: /),
          issues: [
            { line: 1, column: 4, offset: 3, message: expect.stringMatching(/^Syntax error/) },
          ],
        },
      ],
    })
    expect(JSON.parse((await cel(['1u', '-o', 'json'])).out)).toEqual({
      phase: 'ok',
      type: 'uint',
      value: { uint: '1' },
      cost: 0,
    })
  })

  test.each<[string, string[], string]>([
    [
      'a file that is not there',
      ['1', '--object', '$/none.yaml'],
      'cannot read $/none.yaml: no such file or folder',
    ],
    ['two documents', ['1', '--object', '$/two.yaml'], '$/two.yaml has 2 documents, not one'],
    ['a list', ['1', '--object', '$/list.yaml'], '$/list.yaml holds no object'],
    [
      'standard input twice',
      ['1', '--object', '-', '--params', '-'],
      'standard input can be one input only',
    ],
    ['nothing on standard input', ['1', '--object', '-'], 'standard input holds no object'],
    ['a variable without a name', ['1', '--var', '1+1'], '--var wants name=expression, not "1+1"'],
    [
      'a version that is none',
      ['1', '--kubernetes', 'new'],
      '--kubernetes wants a version such as 1.33',
    ],
    [
      'a version that cannot be imitated',
      ['1', '--kubernetes', '1.29'],
      'Kubernetes 1.29 is not one of 1.30 to 1.37',
    ],
    [
      'such a version for lines',
      ['--kubernetes', '1.99'],
      'Kubernetes 1.99 is not one of 1.30 to 1.37',
    ],
    [
      'a version of another profile',
      ['1', '--profile', 'spec', '--kubernetes', '1.33'],
      '--kubernetes goes with --profile kubernetes',
    ],
    [
      'inputs of the specification',
      ['1', '--profile', 'spec', '--object', '$/pod.yaml'],
      '--profile spec knows no inputs and no --var; NDJSON lines can bind variables',
    ],
    [
      'inputs without an expression',
      ['--object', '$/pod.yaml'],
      'inputs, --var and --output go with an expression; NDJSON lines bring their own',
    ],
    [
      'a format without an expression',
      ['-o', 'json'],
      'inputs, --var and --output go with an expression; NDJSON lines bring their own',
    ],
  ])('%s is bad input', async (_, args, says) => {
    const ran = await cel(args)
    expect(ran).toEqual({
      code: 2,
      out: '',
      err: `countersign cel: ${says.replace('$', folder)}\n`,
    })
  })

  test.each([
    ['a syntax error', 'broken.yaml', '3:1'],
    ['a key that occurs twice', 'twice.yaml', '3:1'],
  ])('%s of a file is bad input, with its place', async (_, file, place) => {
    const { code, out, err } = await cel(['1', '--object', `$/${file}`])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    const name = path.join(folder, file)
    expect(err).toContain(`countersign cel: ${name}: 1 fault\n  ${name}:${place}  `)
  })
})

describe('NDJSON', () => {
  const pod = { kind: 'Pod', spec: { containers: [{ name: 'a' }] } }

  test.each<[string, unknown, unknown]>([
    ['a value', { expr: '1 + 1' }, { phase: 'ok', type: 'int', value: { int: '2' }, cost: 1 }],
    [
      'an input',
      { expr: 'object.kind', input: { object: pod } },
      { phase: 'ok', type: 'dyn', value: { string: 'Pod' }, cost: 2 },
    ],
    [
      'an input that is not there is null',
      { expr: 'oldObject == null', input: { object: pod } },
      { phase: 'ok', type: 'bool', value: { bool: true }, cost: 2 },
    ],
    [
      'without inputs no name is bound',
      { expr: 'object.kind' },
      { phase: 'eval', type: 'dyn', cost: 1, error: 'no such attribute(s): object' },
    ],
    [
      'variables are lazy, and what they cost is counted apart',
      {
        expr: 'variables.b || variables.c == 1',
        input: { object: pod },
        variables: [
          { name: 'a', expr: 'object.kind' },
          { name: 'b', expr: 'variables.a == "Pod"' },
          { name: 'c', expr: '1 / 0' },
        ],
      },
      { phase: 'ok', type: 'bool', value: { bool: true }, cost: 2, varCost: 5 },
    ],
    [
      'a variable that fails',
      { expr: 'variables.c == 1', variables: [{ name: 'c', expr: 'object.x / 0' }], input: {} },
      {
        phase: 'eval',
        type: 'bool',
        cost: 3,
        varCost: expect.any(Number),
        error: expect.stringMatching(/^composited variable "c" fails to evaluate: /),
      },
    ],
    [
      'exact numbers',
      '{"expr": "[object.a, object.b, object.c]", "input": {"object": {"a": 1.0, "b": 1, "c": 9007199254740993}}}',
      {
        phase: 'ok',
        type: 'list(dyn)',
        value: { list: [{ double: '1' }, { int: '1' }, { int: '9007199254740993' }] },
        cost: 16,
      },
    ],
    [
      'a syntax error',
      { expr: '1 1' },
      {
        phase: 'parse',
        error:
          "ERROR: <input>:1:3: Syntax error: mismatched input '1' expecting <EOF>\n | 1 1\n | ..^",
      },
    ],
    [
      'a check error',
      { expr: 'request.uid' },
      {
        phase: 'check',
        error: "ERROR: <input>:1:8: undefined field 'uid'\n | request.uid\n | .......^",
      },
    ],
    [
      'no program',
      { expr: "int('x')" },
      {
        phase: 'program',
        type: 'int',
        error: "type conversion error from 'string' to 'int'",
      },
    ],
    [
      'the limit of one call',
      { expr: `${'[1,2,3,4,5,6,7,8,9,10].all(a, '.repeat(6)}true${')'.repeat(6)}` },
      {
        phase: 'eval',
        type: 'bool',
        cost: 1_000_001,
        error: 'operation cancelled: actual cost limit exceeded',
      },
    ],
    [
      'a value that is far larger written out than it is in memory',
      { expr: `[0]${'.map(a, [a, a, a, a, a, a, a, a])'.repeat(7)}` },
      {
        phase: 'eval',
        type: `${'list('.repeat(8)}int${')'.repeat(8)}`,
        cost: 217,
        error: 'a value of more than 1000000 parts',
      },
    ],
    [
      'Kyverno’s profile',
      {
        profile: 'kyverno',
        expr: 'images.initContainers.size() + parseServiceAccount("system:serviceaccount:a:b").Name.size()',
        input: {
          object: { apiVersion: 'v1', kind: 'Pod', spec: { containers: [], initContainers: [] } },
        },
      },
      { phase: 'ok', type: 'int', value: { int: '1' }, cost: 8 },
    ],
    [
      'images that cannot be read',
      {
        profile: 'kyverno',
        expr: 'images.containers',
        input: { object: { apiVersion: 'v1', kind: 'Pod' } },
      },
      { phase: 'eval', type: 'list(string)', cost: 1, error: expect.stringMatching(/spec/) },
    ],
    [
      'YAML that is none',
      { profile: 'kyverno', expr: 'yaml.parse("a: [")' },
      {
        phase: 'eval',
        type: 'dyn',
        cost: 2,
        error: expect.stringMatching(/^yaml.parse: YAML is not valid at 1:5/),
      },
    ],
    [
      'bytes that are no gzip',
      { profile: 'kyverno', expr: 'gzip.decompress(b"a")' },
      {
        phase: 'eval',
        type: 'string',
        cost: 1,
        error: expect.stringMatching(/^gzip.decompress: /),
      },
    ],
    [
      'a function that asks the cluster',
      { profile: 'kyverno', expr: 'resource.Get("v1", "pods", "a", "b")' },
      { phase: 'check', error: expect.stringMatching(/undeclared reference to 'resource'/) },
    ],
    [
      'the specification’s profile with variables and a container',
      {
        profile: 'spec',
        expr: 'x + y',
        container: 'a.b',
        vars: { 'a.b.x': 'int', y: 'int' },
        bindings: { 'a.b.x': { int: '1' }, y: { int: '2' } },
      },
      { phase: 'ok', type: 'int', value: { int: '3' }, cost: 3 },
    ],
    [
      'the same unchecked',
      { profile: 'spec', expr: 'x + "a"', bindings: { x: { int: '1' } }, disableCheck: true },
      { phase: 'eval', type: 'dyn', cost: 2, error: 'no such overload: _+_' },
    ],
    [
      'a type alone, with functions nobody has written',
      {
        profile: 'spec',
        expr: 'f("a")',
        checkOnly: true,
        functions: [
          {
            name: 'f',
            overloads: [{ id: 'f_s', params: ['string'], result: 'list(int)', method: false }],
          },
        ],
      },
      { phase: 'ok', type: 'list(int)' },
    ],
    [
      'members it does not know',
      { expr: 'true', source: 'somewhere', expect: { phase: 'ok' } },
      { phase: 'ok', type: 'bool', value: { bool: true }, cost: 0 },
    ],
  ])('%s', async (_, line, record) => {
    const ran = await records([line])
    expect(ran.records).toEqual([record])
    expect({ code: ran.code, err: ran.err }).toEqual({ code: 0, err: '' })
  })

  test.each<[string, unknown, string]>([
    [
      'no JSON',
      'x',
      'JSON is not valid at offset 0 (line 1, column 1): expected a value, found "x"',
    ],
    [
      'a key that occurs twice',
      '{"expr": "1", "expr": "2"}',
      'JSON is not valid at offset 14 (line 1, column 15): key "expr" occurs twice',
    ],
    ['no object', '[]', 'a line must be an object'],
    ['no expression', {}, 'expr is missing'],
    ['an expression that is no text', { expr: 1 }, 'expr must be a string'],
    [
      'a profile that is none',
      { expr: '1', profile: 'go' },
      'profile must be one of kubernetes, kyverno, spec',
    ],
    ['inputs that are none', { expr: '1', input: [] }, 'input must be an object'],
    [
      'a misspelt input',
      { expr: '1', input: { obj: {} } },
      'input has no obj, only object, oldObject, request, params, namespaceObject',
    ],
    ['variables that are no list', { expr: '1', variables: {} }, 'variables must be a list'],
    [
      'a variable without an expression',
      { expr: '1', variables: [{ name: 'a' }] },
      'variables[0].expr is missing',
    ],
    [
      'a type that is none',
      { profile: 'spec', expr: '1', vars: { x: 'list(' } },
      'not a type name: "list(" at 5',
    ],
    [
      'a value without a tag',
      { profile: 'spec', expr: '1', bindings: { x: 1 } },
      'bindings.x is no tagged value such as {"int": "1"}',
    ],
    [
      'a number past its range',
      { profile: 'spec', expr: '1', bindings: { x: { int: '9223372036854775808' } } },
      'bindings.x is no tagged value such as {"int": "1"}',
    ],
    [
      'a flag that is none',
      { profile: 'spec', expr: '1', disableCheck: 'yes' },
      'disableCheck must be true or false',
    ],
  ])('%s is answered as such, and the run goes on', async (_, line, error) => {
    const good = { expr: 'true' }
    const ran = await records([good, line, good])
    const value = { phase: 'ok', type: 'bool', value: { bool: true }, cost: 0 }
    expect(ran.records).toEqual([value, { phase: 'input', error }, value])
    expect({ code: ran.code, err: ran.err }).toEqual({
      code: 2,
      err: 'countersign cel: 1 of 3 lines could not be used\n',
    })
  })

  test('the profile of a line goes before that of the command', async () => {
    const lines = [{ expr: 'math.abs(-1)' }, { expr: 'math.abs(-1)', profile: 'kubernetes' }]
    const ran = await records(lines, '--profile', 'spec')
    expect(ran.records).toMatchObject([{ phase: 'ok' }, { phase: 'check' }])
  })

  test('a Kubernetes version is for all lines', async () => {
    const ran = await records(
      [{ expr: '[1].sort()' }, { expr: '[1].sum()' }],
      '--kubernetes',
      '1.30',
    )
    expect(ran.records).toMatchObject([{ phase: 'check' }, { phase: 'ok' }])
  })

  test('lines end where newlines are, whatever the chunks; blank ones are passed over', async () => {
    const text = '{"expr": "\'ä\'"}\r\n\n  \n{"expr": "2"}'
    const bytes = Buffer.from(text)
    const whole = await cel([], [text])
    expect(recordsIn(whole.out)).toMatchObject([
      { value: { string: 'ä' } },
      { value: { int: '2' } },
    ])
    for (let size = 1; size < 12; size++) {
      const chunks: Uint8Array[] = []
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
      const { out } = await countersign(['cel'], { input: bytesOf(chunks) })
      expect(out).toBe(whole.out)
    }
    expect(await cel([], [])).toEqual({ code: 0, out: '', err: '' })
  })

  test('a line that is no text, and one past every bound, are answered as such', async () => {
    const long = Buffer.alloc(1024 * 1024, 0x20)
    const chunks = [
      Buffer.from('{"expr": "1'),
      Buffer.from([0xff, 0x0a]),
      ...Array.from({ length: 17 }, () => long),
      Buffer.from('\n{"expr": "1"}\n'),
    ]
    const ran = await countersign(['cel'], { input: bytesOf(chunks) })
    expect(recordsIn(ran.out)).toEqual([
      { phase: 'input', error: 'a line is not UTF-8' },
      { phase: 'input', error: 'a line of 17825792 bytes; at most 16777216 are read' },
      { phase: 'ok', type: 'int', value: { int: '1' }, cost: 0 },
    ])
    expect(ran.code).toBe(2)
  })

  test('an answer is there before the next line is', async () => {
    let out = ''
    const seen: number[] = []
    async function* asking() {
      for (let i = 0; i < 3; i++) {
        yield Buffer.from(`{"expr": "${i}"}\n`)
        seen.push(recordsIn(out).length)
      }
    }
    await countersign(['cel'], {
      input: asking(),
      out: (text) => {
        out += text
      },
    })
    expect(seen).toEqual([1, 2, 3])
  })

  test('answers wait for whoever reads them', async () => {
    const waiting: number[] = []
    let written = 0
    const { code } = await countersign(['cel'], {
      input: bytesOf(Array.from({ length: 5 }, () => '{"expr": "1"}\n')),
      out: () => {
        written++
      },
      drained: async () => {
        waiting.push(written)
      },
    })
    expect({ code, waiting }).toEqual({ code: 0, waiting: [1, 2, 3, 4, 5] })
  })

  test('ends when it is told to', async () => {
    const stop = new AbortController()
    async function* endless() {
      for (let i = 0; ; i++) {
        if (i === 3) stop.abort()
        yield Buffer.from('{"expr": "1"}\n')
      }
    }
    const { code, out } = await countersign(['cel'], { input: endless(), signal: stop.signal })
    expect({ code, count: recordsIn(out).length }).toEqual({ code: 1, count: 3 })
  })

  test('10,000 lines are answered in order and within seconds', async () => {
    const count = 10_000
    const lines = Array.from({ length: count }, (_, i) => ({
      expr: `object.spec.containers.all(c, c.name != "n${i % 2000}") && object.n + ${i % 1000} >= 0`,
      input: { object: { ...pod, n: i } },
      variables: [{ name: 'n', expr: 'object.n' }],
    }))
    const started = performance.now()
    const ran = await records([...lines, { expr: `${count}` }])
    expect(ran.records).toHaveLength(count + 1)
    expect(ran.records.slice(0, -1)).toEqual(
      lines.map(() => expect.objectContaining({ phase: 'ok', value: { bool: true }, varCost: 0 })),
    )
    expect(ran.records.at(-1)).toMatchObject({ value: { int: String(count) } })
    expect(performance.now() - started).toBeLessThan(20_000)
  })
})
