import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { csvLines } from '#functions/cli/report/csv.ts'
import { reportDocuments } from '#functions/cli/report/documents.ts'
import { Fold, type FoldOptions } from '#functions/cli/report/fold.ts'
import { junitLines } from '#functions/cli/report/junit.ts'
import { eventsIn } from '#functions/cli/report/read.ts'
import { sarifLines } from '#functions/cli/report/sarif.ts'
import type { PolicyEvent } from '#shared/report/event.ts'
import { eventWith } from '../sinks/sink-server.ts'
import { countersign } from './harness.ts'
import { elementsOf, faultsOfReport } from './report-schemas.ts'

const at = (minute: number) => `2026-11-30T10:${String(minute).padStart(2, '0')}:00.500Z`
const web = eventWith().resource
const node = { group: '', version: 'v1', resource: 'nodes', kind: 'Node', name: 'n1' }
const fail = {
  status: 'fail',
  action: 'deny',
  verdict: 'deny',
  message: 'every image must be signed',
} as const

function folded(events: readonly PolicyEvent[], options: FoldOptions = {}) {
  const fold = new Fold(options)
  for (const event of events) fold.add(event)
  return fold.results()
}

const rows = (events: readonly PolicyEvent[], options?: FoldOptions) =>
  folded(events, options).map(({ cluster, policy, status }) => [cluster, policy, status])

describe('image reviews, which have neither name nor operation', () => {
  const review = (images: readonly string[], more: Partial<PolicyEvent> = {}): PolicyEvent => ({
    ...eventWith(),
    phase: 'image-review',
    operation: undefined,
    resource: {
      group: 'imagepolicy.k8s.io',
      version: 'v1alpha1',
      resource: 'imagereviews',
      kind: 'ImageReview',
      namespace: 'shop',
    },
    images: images.map((image) => ({ image, verifiedBy: [] })),
    ...more,
  })

  test('are read from a log, and are one result for the same images', () => {
    const lines = [
      review(['b:1', 'a:1'], { time: at(1), ...fail }),
      review(['a:1', 'b:1', 'a:1'], { time: at(2) }),
      review(['a:1'], { time: at(1), ...fail }),
      review(['a:1'], { time: at(3), cluster: 'dev' }),
    ].map((event) => JSON.stringify(event))
    const events = lines.flatMap((line) => eventsIn(line).events)
    expect(rows(events)).toEqual([
      ['dev', 'signed', 'pass'],
      ['prod', 'signed', 'fail'],
      ['prod', 'signed', 'pass'],
    ])
  })

  test('are in reports that Kubernetes takes, told by their images', () => {
    const many = ['f', 'e', 'd', 'c', 'b', 'a'].map((name) => `${name}:1`)
    const results = folded([review(['a:1', 'b:1'], fail), review(many)])
    for (const api of ['policyreport', 'openreports'] as const) {
      const documents = [...reportDocuments(api, results)].flatMap((text) =>
        parseAllDocuments(text).map((document) => document.toJS()),
      )
      expect(documents.flatMap((document) => faultsOfReport(api, document))).toEqual([])
      expect(documents.map(({ scope }) => [scope.kind, scope.name])).toEqual([
        ['ImageReview', 'a:1, b:1'],
        ['ImageReview', 'a:1, b:1, c:1, d:1, e:1 and 1 more'],
      ])
      expect(documents[0].results[0].properties).not.toHaveProperty('countersign.dev/operation')
    }
    expect([...csvLines(results)].slice(1, 3).map((line) => line.split(',').slice(1, 4))).toEqual([
      ['prod', 'shop', 'ImageReview'],
      ['prod', 'shop', 'ImageReview'],
    ])
    expect([...junitLines(results)].join('')).toContain('prod/shop/ImageReview/a:1, b:1')
    expect([...sarifLines(results)].join('')).toContain('prod/shop/ImageReview/a:1, b:1')
  })
})

describe('folding', () => {
  const passed = eventWith({ time: at(2) })
  const failed = eventWith({ ...fail, time: at(1) })

  test.each<[string, PolicyEvent[], string[][]]>([
    ['the last decision counts', [failed, passed], [['prod', 'signed', 'pass']]],
    ['in whichever order they come', [passed, failed], [['prod', 'signed', 'pass']]],
    [
      'whatever images it is about',
      [failed, { ...passed, images: [{ image: 'other:2', verifiedBy: [] }] }],
      [['prod', 'signed', 'pass']],
    ],
    [
      'other clusters, policies and resources have their own',
      [
        failed,
        { ...passed, cluster: 'dev' },
        { ...passed, policy: 'shop/signed' },
        { ...passed, resource: { ...web, name: 'api' } },
      ],
      [
        ['dev', 'signed', 'pass'],
        ['prod', 'signed', 'pass'],
        ['prod', 'shop/signed', 'pass'],
        ['prod', 'signed', 'fail'],
      ],
    ],
    [
      'a subresource is not its resource',
      [failed, { ...passed, resource: { ...web, subresource: 'scale' } }],
      [
        ['prod', 'signed', 'fail'],
        ['prod', 'signed', 'pass'],
      ],
    ],
    [
      'dry runs are no decisions',
      [failed, { ...passed, dryRun: true }],
      [['prod', 'signed', 'fail']],
    ],
    [
      'the mutate phase decides nothing',
      [failed, { ...passed, phase: 'mutate' }],
      [['prod', 'signed', 'fail']],
    ],
    ['what was deleted is gone', [failed, { ...passed, operation: 'DELETE' }], []],
    [
      'what could not be deleted is not',
      [passed, eventWith({ ...fail, operation: 'DELETE', time: at(3) })],
      [['prod', 'signed', 'pass']],
    ],
    [
      'what was made again is there again',
      [{ ...passed, operation: 'DELETE' }, eventWith({ ...fail, time: at(3) })],
      [['prod', 'signed', 'fail']],
    ],
  ])('%s', (_, events, expected) => {
    expect(rows(events)).toEqual(expected)
  })

  test('a controller that is refused again and again is one resource, until it gets in', () => {
    const pod = (name: string) => ({ ...web, kind: 'Pod', generateName: 'web-', name })
    const refused = ['a', 'b', 'c'].map((name, minute) =>
      eventWith({ ...fail, time: at(minute), resource: pod(`web-${name}`) }),
    )
    const results = folded(refused)
    expect(results).toHaveLength(1)
    expect(results[0]?.time).toBe(at(2))
    const admitted = eventWith({ time: at(5), resource: pod('web-d') })
    expect(rows([...refused, admitted])).toEqual([['prod', 'signed', 'pass']])
    expect(rows([admitted, ...refused])).toEqual([['prod', 'signed', 'pass']])
  })

  test.each<[string, FoldOptions, string[]]>([
    ['clusters', { clusters: ['dev'] }, ['dev signed']],
    [
      'names of policies',
      { policies: ['signed'] },
      ['dev signed', 'prod shop/signed', 'prod signed'],
    ],
    ['keys of policies', { policies: ['shop/signed'] }, ['prod shop/signed']],
    ['a time', { since: Date.parse(at(2)) }, ['dev signed', 'prod other', 'prod shop/signed']],
    ['what was admitted', { admittedOnly: true }, ['dev signed', 'prod other', 'prod shop/signed']],
  ])('takes %s', (_, options, expected) => {
    const events = [
      failed,
      { ...passed, cluster: 'dev' },
      { ...passed, policy: 'shop/signed' },
      { ...passed, policy: 'other' },
    ]
    const found = folded(events, options).map(({ cluster, policy }) => `${cluster} ${policy}`)
    expect(found).toEqual(expected)
  })

  test('is the same whatever the order of the events', () => {
    const event = fc.record({
      minute: fc.integer({ min: 0, max: 59 }),
      name: fc.constantFrom('a', 'b'),
      operation: fc.constantFrom('CREATE', 'UPDATE', 'DELETE'),
      verdict: fc.constantFrom('allow', 'deny'),
    })
    fc.assert(
      fc.property(
        fc.uniqueArray(event, { selector: ({ minute }) => minute, maxLength: 12 }),
        (all) => {
          const events = all.map(({ minute, name, operation, verdict }) =>
            eventWith({ time: at(minute), operation, verdict, resource: { ...web, name } }),
          )
          expect(folded(events)).toEqual(folded(events.toReversed()))
        },
      ),
    )
  })

  test('past its bound it stops instead of leaving something out', () => {
    const events = ['a', 'b', 'c'].map((policy) => eventWith({ policy }))
    expect(folded(events, { maxResults: 3 })).toHaveLength(3)
    expect(() => folded(events, { maxResults: 2 })).toThrow('more than 2 results')
  })
})

describe('lines of a log', () => {
  const event = eventWith()
  const line = JSON.stringify({ level: 'info', ...event })

  test.each<[string, string]>([
    ['as functions write them', line],
    ['behind a timestamp', `2026-11-30T10:00:00.000Z ${line}`],
    ['behind a timestamp in brackets', `[2026-11-30] INFO ${line}`],
    ['as text in the record of a log service', JSON.stringify({ timestamp: 1, message: line })],
    ['in several such records', JSON.stringify({ events: [{ '@message': line }] })],
    ['as CloudEvents', JSON.stringify([{ specversion: '1.0', data: event }])],
    ['as events of EventBridge', JSON.stringify({ 'detail-type': 'x', detail: event })],
  ])('hold events %s', (_, text) => {
    const { events, unreadable } = eventsIn(text)
    expect(events).toEqual([expect.objectContaining({ id: event.id, images: event.images })])
    expect(unreadable).toBe(0)
  })

  test.each<[string, string, number]>([
    ['decisions', JSON.stringify({ level: 'info', event: 'decision', policies: [] }), 0],
    ['text', 'policy { not ours', 0],
    ['an event without its time', JSON.stringify({ ...event, time: undefined }), 1],
    ['an event with a time that is none', JSON.stringify({ ...event, time: 'soon' }), 1],
    ['an event with another status', JSON.stringify({ ...event, status: 'fine' }), 1],
    ['an event with images of another shape', JSON.stringify({ ...event, images: [{}] }), 1],
    ['an event with members by inheritance', `{"event":"policy","__proto__":${line}}`, 1],
    ['records without end', '{"message":'.repeat(50) + line + '}'.repeat(50), 0],
  ])('that are %s give none', (_, text, unreadable) => {
    expect(eventsIn(text)).toEqual({ events: [], unreadable })
  })

  test('never throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.string().map((s) => `policy ${s}{`),
        ),
        (text) => {
          expect(eventsIn(text).events).toEqual([])
        },
      ),
    )
  })
})

const HOSTILE = [
  '=HYPERLINK("http://evil.example","x")',
  '  =1+1',
  '@SUM(A1)',
  '+1',
  '-1',
  '\t=1',
  'a"b,c\r\nd',
  ']]><x>&amp;</testcase>\u0000\u001b[31m\ud800',
  'yes',
  '- a: &b *c',
  '---',
]

const hostile = HOSTILE.map((message, index) =>
  eventWith({
    ...fail,
    policy: `p${index}`,
    message,
    properties: { [message]: message },
    images: [{ image: message, verifiedBy: [message] }],
  }),
)

describe('PolicyReports and OpenReports', () => {
  const documentsOf = (api: 'policyreport' | 'openreports', events: readonly PolicyEvent[]) => {
    const text = [...reportDocuments(api, folded(events))].join('')
    return { text, documents: parseAllDocuments(text).map((document) => document.toJS()) }
  }

  test('are one for every resource, in its namespace or the cluster', () => {
    const namespaces = { group: '', version: 'v1', resource: 'namespaces', kind: 'Namespace' }
    const events = [
      eventWith({ time: at(1), resource: { ...web, uid: 'u-1' } }),
      eventWith({ ...fail, policy: 'other', resource: { ...web, uid: 'u-1' } }),
      eventWith({ resource: { ...namespaces, name: 'shop', namespace: 'shop' } }),
    ]
    const { documents } = documentsOf('policyreport', events)
    expect(documents.map(({ kind, scope }) => [kind, scope])).toEqual(
      [
        [
          'PolicyReport',
          { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', namespace: 'shop' },
        ],
        ['ClusterPolicyReport', { apiVersion: 'v1', kind: 'Namespace', name: 'shop' }],
      ].map((row) => row),
    )
    expect(documents[0].summary).toEqual({ pass: 1, fail: 1, warn: 0, error: 0, skip: 0 })
  })

  test('say what Kyverno says', () => {
    const skip = eventWith({
      time: at(1),
      status: 'skip',
      rule: 'exception',
      message: 'rule is skipped due to policy exception: ops/legacy',
      exceptions: ['ops/legacy', 'ops/other'],
      properties: { label: 'prod' },
      resource: { ...web, uid: 'u-1' },
    })
    const { documents } = documentsOf('policyreport', [skip])
    expect(documents).toEqual([
      {
        apiVersion: 'wgpolicyk8s.io/v1alpha2',
        kind: 'PolicyReport',
        metadata: {
          name: expect.stringMatching(/^countersign-[0-9a-f]{32}$/),
          namespace: 'shop',
          labels: {
            'app.kubernetes.io/managed-by': 'countersign',
            'countersign.dev/cluster': 'prod',
          },
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u-1' }],
        },
        scope: {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: 'web',
          namespace: 'shop',
          uid: 'u-1',
        },
        summary: { pass: 0, fail: 0, warn: 0, error: 0, skip: 1 },
        results: [
          {
            source: 'KyvernoImageValidatingPolicy',
            policy: 'signed',
            rule: 'exception',
            result: 'skip',
            scored: true,
            message: 'rule is skipped due to policy exception: ops/legacy',
            timestamp: { seconds: Date.parse(at(1)) / 1000 - 0.5, nanos: 500_000_000 },
            properties: {
              label: 'prod',
              process: 'admission review',
              exceptions: 'ops/legacy,ops/other',
              'countersign.dev/action': 'allow',
              'countersign.dev/operation': 'CREATE',
              'countersign.dev/verdict': 'allow',
              'countersign.dev/images': 'registry.example.com/web:1',
              'countersign.dev/verified-by': 'release',
              'countersign.dev/review-uid': skip.uid,
            },
          },
        ],
      },
    ])
  })

  test.each(['policyreport', 'openreports'] as const)(
    'fit the schema of %s, whatever is in them',
    (api) => {
      const events = [
        ...hostile,
        eventWith({ policy: 'warned', status: 'warn', action: 'warn' }),
        eventWith({ cluster: 'not a label!', images: [] }),
        eventWith({ resource: node }),
      ]
      const { text, documents } = documentsOf(api, events)
      expect(documents.flatMap((document) => faultsOfReport(api, document))).toEqual([])
      expect(text).not.toMatch(/^[\s-]*(?:[\w./-]+: )?[&*]\w/m)
      const said = documents.flatMap(({ results }) =>
        results.map((r: { message: string }) => r.message),
      )
      expect(said).toEqual(
        expect.arrayContaining(HOSTILE.map((each) => each.replace('\ud800', '\ufffd'))),
      )
    },
  )

  test('are read alike by YAML 1.1, which Kubernetes reads', () => {
    const words = [
      'yes',
      'on',
      'off',
      'n',
      '1_000',
      '12:30',
      '0x1f',
      '1e3',
      '~',
      '0o7',
      '.inf',
      '017',
    ]
    const events = words.map((message, index) =>
      eventWith({ policy: `p${index}`, message, ...{ status: 'fail' } }),
    )
    const text = [...reportDocuments('policyreport', folded(events))].join('')
    const [document] = parseAllDocuments(text, { version: '1.1' })
    const { results } = (document?.toJS() ?? {}) as { results: { message: unknown }[] }
    expect(new Set(results.map(({ message }) => message))).toEqual(new Set(words))
    expect(text).not.toContain('%YAML')
  })

  test('have names that follow from cluster and resource alone', () => {
    const nameOf = (more: Partial<PolicyEvent>) =>
      documentsOf('policyreport', [eventWith(more)]).documents[0].metadata.name
    expect(nameOf({ policy: 'a' })).toBe(nameOf({ policy: 'b', ...fail, uid: 'other' }))
    expect(nameOf({})).not.toBe(nameOf({ cluster: 'dev' }))
    expect(nameOf({})).not.toBe(nameOf({ resource: { ...web, name: 'api' } }))
  })

  test('belong to no resource that was refused', () => {
    const { documents } = documentsOf('openreports', [
      eventWith({ ...fail, resource: { ...web, uid: 'u-1' } }),
    ])
    expect(documents[0].metadata.ownerReferences).toBeUndefined()
    expect(documents[0].scope.uid).toBeUndefined()
  })
})

describe('other formats', () => {
  test('CSV has a row for every image, and no cell that a spreadsheet would run', () => {
    const lines = [...csvLines(folded([eventWith({ images: [] }), ...hostile]))]
    const table = parseCsv(lines.join(''))
    expect(new Set(table.map((row) => row.length))).toEqual(new Set([18]))
    expect(table).toHaveLength(2 + HOSTILE.length)
    for (const cell of table.flat()) expect(cell).not.toMatch(/^[\s\0]*[=+\-@|%\t\r]/)
    const column = table[0]?.indexOf('message') ?? -1
    const messages = table.slice(1).map((row) => row[column])
    expect(messages).toContain('a"b,c\r\nd')
    expect(messages).toContain(`'${HOSTILE[0]}`)
  })

  test('JUnit is well-formed and counts what it holds', () => {
    const events = [
      ...hostile,
      eventWith(),
      eventWith({ policy: 'e', status: 'error', action: 'deny', message: 'x' }),
      eventWith({ policy: 's', status: 'skip', message: 'x' }),
      eventWith({ policy: 'w', status: 'warn', action: 'warn', message: 'x' }),
    ]
    const text = [...junitLines(folded(events))].join('')
    const elements = elementsOf(text)
    const count = (name: string) => elements.filter((element) => element.name === name).length
    expect(elements[0]).toMatchObject({
      name: 'testsuites',
      attributes: {
        tests: String(events.length),
        failures: String(HOSTILE.length + 1),
        errors: '1',
        skipped: '1',
      },
    })
    expect([count('testcase'), count('failure'), count('error'), count('skipped')]).toEqual([
      events.length,
      HOSTILE.length + 1,
      1,
      1,
    ])
    const messages = elements.flatMap(({ attributes }) => attributes.message ?? [])
    expect(messages).toContain('a"b,c\r\nd')
    expect(messages).toContain(']]><x>&amp;</testcase>\ufffd\ufffd[31m\ufffd')
  })

  test('SARIF has a rule for every policy, levels for failures only, and a place for every result', () => {
    const events = [
      eventWith(),
      eventWith({ ...fail, policy: 'denied' }),
      eventWith({ ...fail, policy: 'audited', action: 'audit', verdict: 'allow' }),
      eventWith({ policy: 'skipped', status: 'skip' }),
      ...hostile,
    ]
    const log = JSON.parse([...sarifLines(folded(events))].join(''))
    const [run] = log.runs
    expect(log.version).toBe('2.1.0')
    const levels = run.results
      .slice(0, 0)
      .concat(run.results.filter(({ ruleId }: { ruleId: string }) => !ruleId.startsWith('p')))
    expect(
      levels.map(({ ruleId, kind, level }: Record<string, string>) => [ruleId, kind, level]),
    ).toEqual([
      ['audited', 'fail', 'warning'],
      ['denied', 'fail', 'error'],
      ['signed', 'pass', 'none'],
      ['skipped', 'notApplicable', 'none'],
    ])
    for (const result of run.results) {
      expect(run.tool.driver.rules[result.ruleIndex].id).toBe(result.ruleId)
      expect(result.message.text).not.toBe('')
      const { uri } = result.locations[0].physicalLocation.artifactLocation
      expect(uri).toMatch(/^([A-Za-z0-9\-._~!*'()]|%[0-9A-F]{2}|\/)+$/)
    }
    expect(
      new Set(
        run.results.map((r: { partialFingerprints: object }) =>
          JSON.stringify(r.partialFingerprints),
        ),
      ).size,
    ).toBe(events.length)
  })
})

describe('countersign report', () => {
  let folder: string
  let log: string
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'report-'))
    log = path.join(folder, 'validate.log')
    const lines = [
      'START RequestId: 1 Version: policy',
      JSON.stringify({ level: 'info', event: 'decision', verdict: 'deny', policies: [] }),
      JSON.stringify({ level: 'warn', ...eventWith({ ...fail, policy: 'strict' }) }),
      JSON.stringify(
        eventWith({
          policy: 'late',
          status: 'error',
          action: 'audit',
          cluster: 'dev',
          message: 'no \u001b[2J answer',
        }),
      ),
      JSON.stringify(eventWith()),
    ]
    await writeFile(log, `${lines.join('\n')}\n`)
    await writeFile(`${log}.gz`, gzipSync(await readFile(log)))
  })
  afterAll(() => rm(folder, { recursive: true }))

  test('lists what is not well and counts everything', async () => {
    const { code, out, err } = await countersign(['report', log])
    expect(out).toBe(
      `error dev/shop/Deployment/web  late  audit, 2026-11-30T10:00:00.000Z
      no  [2J answer
      registry.example.com/web:1  verified by release
fail  prod/shop/Deployment/web  strict  deny, 2026-11-30T10:00:00.000Z
      every image must be signed
      registry.example.com/web:1  verified by release
3 results: 1 pass, 1 fail, 0 warn, 1 error, 0 skip
`,
    )
    expect([code, err]).toEqual([0, ''])
  })

  test.each<[string, string[], number]>([
    ['fail', ['--fail-on', 'fail'], 1],
    ['error', ['--fail-on', 'error'], 1],
    ['fail where only errors are left', ['--fail-on', 'fail', '--cluster', 'dev'], 1],
    ['error where none is left', ['--fail-on', 'error', '--cluster', 'prod'], 0],
    ['fail where neither is left', ['--fail-on', 'fail', '--policy', 'signed'], 0],
    ['a time before everything', ['--fail-on', 'fail', '--since', '2026-11-30'], 1],
    ['a time after everything', ['--fail-on', 'fail', '--since', '2026-11-30T23:00:00Z'], 0],
  ])('exits with --fail-on %s', async (_, options, code) => {
    expect((await countersign(['report', log, ...options])).code).toBe(code)
  })

  test('reads standard input, and compressed files', async () => {
    const input = (async function* () {
      yield await readFile(log)
    })()
    const expected = (await countersign(['report', log, '--format', 'json'])).out
    expect((await countersign(['report', '--format', 'json'], { input })).out).toBe(expected)
    expect((await countersign(['report', `${log}.gz`, '-f', 'json'])).out).toBe(expected)
    expect(JSON.parse(expected).summary).toEqual({ pass: 1, fail: 1, warn: 0, error: 1, skip: 0 })
  })

  test.each(['policyreport', 'openreports', 'sarif', 'junit', 'csv'])(
    'writes %s to a file',
    async (format) => {
      const file = path.join(folder, format)
      const printed = await countersign(['report', log, '--format', format])
      const written = await countersign(['report', log, '--format', format, '--output-file', file])
      expect([written.code, written.out]).toEqual([0, ''])
      expect(await readFile(file, 'utf8')).toBe(printed.out)
    },
  )

  test('says that reports of several clusters belong to each its own', async () => {
    const { err } = await countersign(['report', log, '--format', 'policyreport'])
    expect(err).toBe(
      'countersign report: reports of 2 clusters: apply each to its own, with --cluster\n',
    )
  })

  test.each<[string, { lines: string; hasLog?: true; options?: string[]; code: number }]>([
    ['lines without an event', { lines: 'START RequestId: 1\n', code: 2 }],
    ['nothing at all', { lines: '', code: 2 }],
    [
      'an event that cannot be read beside good ones',
      { lines: '{"event":"policy"}\n', hasLog: true, options: ['--policy', 'signed'], code: 2 },
    ],
    [
      'one beside a bad one, which is bad enough',
      { lines: '{"event":"policy"}\n', hasLog: true, code: 1 },
    ],
  ])('--fail-on does not take for good: %s', async (_, { lines, hasLog, options = [], code }) => {
    const input = (async function* () {
      yield Buffer.from(lines)
      if (hasLog) yield await readFile(log)
    })()
    const { code: exited } = await countersign(['report', '--fail-on', 'fail', ...options], {
      input,
    })
    expect(exited).toBe(code)
  })

  test('says when there was nothing to read, and what it could not read', async () => {
    const input = (async function* () {
      yield Buffer.from('{"event":"policy"}\n')
      yield Buffer.concat([Buffer.from([0xff]), Buffer.from('\n')])
    })()
    const { code, err } = await countersign(['report'], { input })
    expect(code).toBe(0)
    expect(err).toContain('no event found')
    expect(err).toContain('2 lines or events could not be read')
  })

  test.each<[string, string[], RegExp]>([
    [
      'a file that is not there',
      ['nowhere.log'],
      /cannot read nowhere\.log: no such file or folder$/m,
    ],
    ['a folder', ['.'], /cannot read \.: is a folder$/m],
    ['a time that is none', ['--since', 'yesterday'], /yesterday/],
    ['a format that is none', ['--format', 'xml'], /xml/],
    [
      'a file that cannot be written',
      ['--output-file', '/nowhere/at/all'],
      /cannot write \/nowhere\/at\/all: no such file or folder$/m,
    ],
  ])('exits 2 for %s', async (_, args, says) => {
    const { code, err } = await countersign(['report', ...args], {
      input: (async function* () {})(),
    })
    expect(code).toBe(2)
    expect(err).toMatch(says)
    expect(err).not.toContain('unexpected')
  })

  test('exits 2 for what is not compressed though it says so', async () => {
    const file = path.join(folder, 'plain.gz')
    await writeFile(file, 'plain')
    const { code, err } = await countersign(['report', file])
    expect([code, err]).toEqual([
      2,
      `countersign report: cannot read ${file}: is not compressed, or damaged\n`,
    ])
  })
})

/** Rows of RFC 4180. */
function parseCsv(text: string): string[][] {
  const table: string[][] = [[]]
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/gy
  for (const [whole, quoted, bare = '', end] of text.matchAll(cell)) {
    if (whole === '') break
    table.at(-1)?.push(quoted?.replaceAll('""', '"') ?? bare)
    if (end === '\r\n') table.push([])
  }
  return table.filter((row) => row.length > 0)
}
