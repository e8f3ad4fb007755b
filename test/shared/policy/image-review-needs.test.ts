import { describe, expect, test } from 'vitest'
import { reviewNeeds } from '#shared/policy/image-review-needs.ts'
import { compiledPolicy, keyAttestor, load, POD_RULE, policyDocument } from './documents.ts'

const LISTS = 'the kind of container of each image'
const SIGNED = 'verifyImageSignatures(image, [attestors.release]) > 0'

async function needsOf(spec: object) {
  return reviewNeeds(await compiledPolicy(spec)).needs.map(({ path, what }) => `${path}: ${what}`)
}

/** Of a policy about the creation of Pods alone: nothing is known of those that are there already. */
const CREATED = {
  matchConstraints: {
    resourceRules: [{ ...POD_RULE, operations: ['CREATE'], resources: ['pods'] }],
  },
}

const needsOfValidation = (expression: string) => needsOf({ validations: [{ expression }] })

describe('validations that an ImageReview decides', () => {
  test.each([
    `images.containers.all(image, ${SIGNED})`,
    'images.containers.map(image, verifyImageSignatures(image, [attestors.release])).all(e, e > 0)',
    `(images.containers + images.initContainers + images.ephemeralContainers).all(image, ${SIGNED})`,
    `images.all(name, images[name].all(image, ${SIGNED}))`,
    `[images.containers, images.initContainers].all(list, list.all(image, ${SIGNED}))`,
    `['containers', 'initContainers'].all(name, images[name].all(image, ${SIGNED}))`,
    `!images.containers.exists(image, image.startsWith('docker.io/'))`,
    `images.containers.filter(image, !(${SIGNED})).size() == 0`,
    `size(images.containers.filter(image, !(${SIGNED}))) < 1`,
    'images.containers.size() <= 10 && size(images.initContainers) < 3',
    `images.containers.all(image, images.initContainers.all(other, image != other))`,
    `!('registry.example/bad:1' in images.containers)`,
    `!has(object.spec.initContainers) || object.spec.initContainers.all(c, c.image.endsWith(':1'))`,
    `has(object.spec.initContainers) ? object.spec.initContainers.all(c, c.image != 'a') : true`,
    `object.spec.?ephemeralContainers.orValue([]).all(c, c.image != 'a')`,
    `(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).all(c, c.image != 'a')`,
    `request.object.spec.containers.map(c, c.image).all(image, ${SIGNED})`,
    `cel.bind(all, images.containers + images.initContainers, all.all(image, ${SIGNED}))`,
    `object != null && object.kind == 'Pod' && request.kind.kind == 'Pod' && has(object.spec.containers)`,
    `request.namespace == 'shop' || object.metadata.namespace == 'shop'`,
    `object.metadata.annotations['mycluster.image-policy.k8s.io/ticket'] == 'break-glass'`,
    `!has(object.metadata.annotations) || !('a.image-policy.k8s.io/b' in object.metadata.annotations)`,
    `!(has(object.metadata.annotations) && 'a.image-policy.k8s.io/b' in object.metadata.annotations) || images.containers.size() < 3`,
    `object.metadata.?annotations[?'a.image-policy.k8s.io/b'].hasValue() || images.containers.size() < 3`,
    `object.metadata.?annotations.orValue({})[?'a.image-policy.k8s.io/b'].orValue('x') == 'x'`,
    `!has(object.spec.initContainers) || request.namespace == 'a' || object.spec.initContainers.size() < 3`,
    `object.spec.initContainers.all(c, c.image != 'a') || !has(object.spec.initContainers)`,
    `!(has(object.spec.initContainers) && object.spec.initContainers.exists(c, c.image == 'a'))`,
    `images.containers.all(i, i != 'a') && images.ephemeralContainers.all(i, i != 'b')`,
    `!images.containers.exists(i, i == 'a') && !(images.ephemeralContainers.exists(i, i == 'b') || images.initContainers.exists(i, i == 'c'))`,
    `images.map(name, images[name].size()).all(e, e < 5)`,
    `images.all(name, images[name].all(i, i != 'a') && images[name].size() < 3)`,
    `images.all(name, list, list.size() < 3)`,
    `(images.containers + images.ephemeralContainers).filter(i, i == 'a').size() == 0`,
    'size(images.containers) + size(images.initContainers) - 1 < 10',
    `[?images[?'containers'], images.initContainers].all(list, list.size() < 3)`,
    `'a' in exceptions.allowedValues || images.containers.all(i, !(i in exceptions.allowedImages))`,
    `object.metadata.?annotations[?'a.image-policy.k8s.io/b'].orValue('') == ''`,
    `images.containers.all(object, object.startsWith('registry.example/'))`,
    `json.unmarshal('{"a": 1}').a == 1`,
  ])('%s', async (expression) => {
    expect(await needsOfValidation(expression)).toEqual([])
  })
})

describe('validations that need what no ImageReview carries', () => {
  test.each([
    [`object.metadata.labels.app == 'web'`, 'object.metadata.labels'],
    [`has(object.metadata.labels)`, 'object.metadata.labels'],
    [`object.metadata.name == 'web'`, 'object.metadata.name'],
    [`object.metadata.?generateName.hasValue()`, 'object.metadata.generateName'],
    [`object['metadata']['labels']['app'] == 'web'`, 'object.metadata.labels'],
    [`object.spec.serviceAccountName == 'a'`, 'object.spec.serviceAccountName'],
    [`!has(object.spec.volumes)`, 'object.spec.volumes'],
    [
      `object.spec.containers.all(c, !has(c.securityContext))`,
      'object.spec.containers[…].securityContext',
    ],
    [`object.spec.containers.all(c, c.name != 'a')`, 'object.spec.containers[…].name'],
    [
      `object.spec.containers.filter(c, c.image != 'a').all(c, c.command.size() == 0)`,
      'object.spec.containers[…].command',
    ],
    [
      `cel.bind(spec, object.spec, spec.containers.all(c, c.name != 'a'))`,
      'object.spec.containers[…].name',
    ],
    [`object.spec.containers.all(c, dyn(c) != null)`, 'object.spec.containers[…] as a whole'],
    [`object.status.phase == 'Running'`, 'object.status'],
    [`object.metadata.annotations['owner'] == 'me'`, 'object.metadata.annotations.owner'],
    [`'owner' in object.metadata.annotations`, 'object.metadata.annotations.owner'],
    [
      `object.metadata.annotations['image-policy.k8s.io/x'] == '1'`,
      'object.metadata.annotations["image-policy.k8s.io/x"]',
    ],
    [`has(object.metadata.annotations)`, 'object.metadata.annotations'],
    [`object.metadata.annotations.all(key, key != 'a')`, 'object.metadata.annotations as a whole'],
    [
      `object.metadata.annotations[request.namespace] == 'a'`,
      'object.metadata.annotations as a whole',
    ],
    [`size(object.metadata) > 2`, 'object.metadata as a whole'],
    [`object == oldObject`, 'object as a whole'],
    [`oldObject == null`, 'oldObject'],
    [`request.operation == 'CREATE'`, 'request.operation'],
    [`request.userInfo.username != 'mallory'`, 'request.userInfo'],
    [`request.name != ''`, 'request.name'],
    [`!has(request.subResource)`, 'request.subResource'],
    [`request.dryRun`, 'request.dryRun'],
    [`request.oldObject == null`, 'request.oldObject'],
  ])('%s', async (expression, what) => {
    const needs = await needsOfValidation(expression)
    expect(needs).toContain(`spec.validations[0].expression: ${what}`)
  })
})

describe('validations that an image could pass by being named in another list', () => {
  test.each([
    `images.initContainers.exists(image, image.startsWith('scanner'))`,
    `images.initContainers.size() > 0`,
    `images.containers.size() == 1`,
    `images.containers[0].startsWith('registry.example/')`,
    `'registry.example/scanner:1' in images.initContainers`,
    `images.containers.exists_one(image, image == 'a')`,
    `!images.containers.all(image, image == 'a')`,
    `images.containers.all(image, images.initContainers.exists(other, image == other))`,
    `images.containers.all(image, image in images.initContainers)`,
    `images.containers == images.initContainers`,
    `images.containers.size() <= images.initContainers.size()`,
    `has(object.spec.initContainers)`,
    `has(object.spec.initContainers) ? true : images.containers.all(image, ${SIGNED})`,
    `images.initContainers.size() > 0 ? images.containers.size() < 3 : images.containers.size() < 2`,
    `string(images.containers.size()) != '0'`,
    `images.containers.map(i, i).filter(i, images.initContainers.exists(o, o == i)).size() > 0`,
    `[images.initContainers.map(i, 1)[0], 1].all(x, true)`,
    `[images.containers.all(i, i.split('/')[2] == 'a'), true].exists(ok, ok)`,
    `[images.containers.all(i, i.split('/')[2] == 'a')].size() == 1`,
    `images.map(name, images[name].all(i, i != 'a')).all(e, e)`,
    `['a', 'b'].map(n, images.containers.filter(i, i == n)[0]).size() == 2`,
  ])('%s', async (expression) => {
    expect(await needsOfValidation(expression)).toEqual([
      `spec.validations[0].expression: ${LISTS}`,
    ])
  })
})

describe('validations that are an error for a Pod without a field, which that of a review has', () => {
  const init = 'to know whether object.spec.initContainers is there'
  const annotations = 'to know whether object.metadata.annotations is there'
  test.each([
    [`object.spec.initContainers.all(c, c.image != 'a')`, init],
    [`object.spec['initContainers'].all(c, c.image != 'a')`, init],
    [
      `has(object.spec.containers) ? object.spec.initContainers.all(c, c.image != 'a') : true`,
      init,
    ],
    [
      `!has(object.spec.ephemeralContainers) || object.spec.initContainers.all(c, c.image != 'a')`,
      init,
    ],
    [`!has(object.spec.initContainers) && object.spec.initContainers.all(c, c.image != 'a')`, init],
    [`cel.bind(all, object.spec.initContainers, all.all(c, c.image != 'a'))`, init],
    [`!('a.image-policy.k8s.io/b' in object.metadata.annotations)`, annotations],
    [
      `(request.namespace == 'a' ? object.metadata.annotations : object.metadata.annotations).exists(k, true)`,
      'object.metadata.annotations as a whole',
    ],
    [
      `!has(object.metadata.annotations) || 'a.image-policy.k8s.io/b' in object.metadata.annotations`,
      annotations,
    ],
  ])('%s', async (expression, what) => {
    const needs = await needsOfValidation(expression)
    expect(needs).toContain(`spec.validations[0].expression: ${what}`)
  })

  test('through variables, unless they are used where it is there', async () => {
    const variables = [{ name: 'all', expression: 'object.spec.initContainers' }]
    const expression = `variables.all.all(c, c.image != 'a')`
    const guarded = `!has(object.spec.initContainers) || ${expression}`
    expect(await needsOf({ variables, validations: [{ expression: guarded }] })).toEqual([])
    expect(await needsOf({ variables, validations: [{ expression }] })).toEqual([
      `spec.validations[0].expression: ${init}`,
    ])
  })

  test('in extractors, conditions and exceptions', async () => {
    const expression = 'object.spec.initContainers.map(c, c.image)'
    const images = [{ name: 'own', expression }]
    expect(await needsOf({ images })).toEqual([`spec.images[0].expression: ${init}`])
    const matchConditions = [{ name: 'a', expression: `${expression}.size() > 0` }]
    expect(await needsOf({ ...CREATED, matchConditions })).toEqual([
      `spec.matchConditions[0].expression: ${init}`,
    ])
  })
})

describe('validations by which a stand-in could be let in', () => {
  const missing = (what: string) => [`spec.validations[0].expression: ${what}`]
  test.each([
    [
      'what stands for a list that is not there',
      `object.spec.?initContainers.orValue([{'image': 'a'}]).all(c, c.image != 'a')`,
      'object.spec.containers[…] as a whole',
    ],
    [
      'what stands for annotations',
      `object.metadata.?annotations.orValue({'a.image-policy.k8s.io/b': 'x'})[?'a.image-policy.k8s.io/b'].orValue('y') == 'y'`,
      'object.metadata.annotations as a whole',
    ],
    [
      'a list of what is there',
      `size([?object.metadata.?annotations]) == 1`,
      'to know whether object.metadata.annotations is there',
    ],
    ['numbers that overflow', 'size(images.containers) - 9223372036854775807 - 3 < 0', LISTS],
    [
      'a name that two things have',
      `size([dyn(object.metadata), dyn(images)][1].namespace) < 3`,
      'object.metadata as a whole',
    ],
  ])('%s', async (_, expression, what) => {
    expect(await needsOfValidation(expression)).toEqual(expect.arrayContaining(missing(what)))
  })

  test('the length of a list whose elements may be there', async () => {
    const matchConditions = [{ name: 'a', expression: 'size([?object.spec.?initContainers]) < 1' }]
    expect(await needsOf({ ...CREATED, matchConditions })).toContain(
      `spec.matchConditions[0].expression: ${LISTS}`,
    )
  })
})

describe('the images that a Pod has already, when it is updated', () => {
  const others = 'the images that a Pod has already'
  const at = (path: string) => `spec.${path}.expression: ${others}`
  const about = (operations: string[], ...resources: string[]) => ({
    matchConstraints: { resourceRules: [{ ...POD_RULE, operations, resources }] },
  })
  const condition = (list: string) => ({
    matchConditions: [
      { name: 'a', expression: `object.spec.?${list}.orValue([]).exists(c, c.image == 'a')` },
    ],
  })

  test.each<[string, object, string[]]>([
    [
      'containers, for ephemeral ones',
      { ...about(['*'], 'pods', 'pods/ephemeralcontainers'), ...condition('containers') },
      [at('matchConditions[0]')],
    ],
    [
      'ephemeral containers, for the others',
      { ...about(['CREATE', 'UPDATE'], 'pods'), ...condition('ephemeralContainers') },
      [at('matchConditions[0]')],
    ],
    [
      'those that may have changed',
      { ...about(['CREATE', 'UPDATE'], 'pods'), ...condition('initContainers') },
      [],
    ],
    [
      'none, for Pods that are created',
      { ...about(['CREATE'], 'pods', 'pods/*'), ...condition('ephemeralContainers') },
      [],
    ],
    [
      'the list of an extractor',
      {
        images: [{ name: 'own', expression: 'object.spec.containers.map(c, c.image)' }],
        validations: [
          { expression: `!('a' in images.own) || !('b' in images.ephemeralContainers)` },
        ],
      },
      [at('validations[0]')],
    ],
  ])('in conditions: %s', async (_, spec, needs) => {
    expect(await needsOf(spec)).toEqual(needs)
  })

  test.each([
    `!images.containers.exists(i, i == 'a') || images.ephemeralContainers.all(i, i == 'b')`,
    `images.containers.exists(i, i == 'a') ? images.ephemeralContainers.all(i, i == 'b') : true`,
    `!(images.containers.exists(i, i == 'a') && images.ephemeralContainers.exists(i, i == 'b'))`,
    `images.containers.all(i, !(i in images.ephemeralContainers))`,
    `images.containers.all(i, images.all(name, images[name].all(j, i != j)))`,
    `size(images.containers) + size(images.ephemeralContainers) < 5`,
    `size(images.containers + images.ephemeralContainers) < 5`,
    'images.map(name, images[name]).flatten().size() < 5',
    'images.transformList(name, list, list).flatten().size() < 5',
    'images.all(a, images.all(b, images[a].size() + images[b].size() < 5))',
    'images.all(a, images.all(b, !(images[a].size() > 1 && images[b].size() > 1)))',
    `cel.bind(run, images.containers, images.ephemeralContainers.all(i, !(i in run)))`,
  ])('in validations that do not look at them alone: %s', async (expression) => {
    expect(await needsOfValidation(expression)).toEqual([at('validations[0]')])
    expect(await needsOf({ ...CREATED, validations: [{ expression }] })).toEqual([])
  })

  test('through a variable', async () => {
    const variables = [{ name: 'prod', expression: `images.containers.exists(i, i == 'a')` }]
    const expression = `!variables.prod || images.ephemeralContainers.all(i, i == 'b')`
    expect(await needsOf({ variables, validations: [{ expression }] })).toEqual([
      at('validations[0]'),
    ])
  })
})

describe('every expression of a policy', () => {
  const field = 'object.metadata.labels'
  const reading = `has(${field})`

  test.each<[string, object, string[]]>([
    [
      'conditions that more images could make false',
      {
        ...CREATED,
        matchConditions: [{ name: 'a', expression: '!has(object.spec.initContainers)' }],
      },
      [`spec.matchConditions[0].expression: ${LISTS}`],
    ],
    [
      'conditions that more images can only make true',
      {
        ...CREATED,
        matchConditions: [
          { name: 'a', expression: `object.spec.containers.exists(c, c.image != 'a')` },
        ],
      },
      [],
    ],
    [
      'conditions',
      { matchConditions: [{ name: 'a', expression: reading }] },
      [`spec.matchConditions[0].expression: ${field}`],
    ],
    [
      'a variable that is read, where it is written',
      {
        variables: [
          { name: 'unread', expression: 'request.userInfo.username' },
          { name: 'labels', expression: field },
          { name: 'through', expression: 'variables.labels' },
        ],
        validations: [{ expression: 'size(variables.through) > 0' }],
      },
      [`spec.variables[1].expression: ${field}`],
    ],
    [
      'variables that stand for a part of the object',
      {
        variables: [
          { name: 'spec', expression: 'object.spec' },
          { name: 'all', expression: 'images.containers + images.initContainers' },
        ],
        validations: [
          { expression: `variables.spec.containers.all(c, c.image != 'a')` },
          { expression: 'variables.spec.hostNetwork == true' },
          { expression: `variables.all.all(image, ${SIGNED})` },
          { expression: `variables.all.exists(image, ${SIGNED})` },
        ],
      },
      [
        'spec.validations[1].expression: object.spec.hostNetwork',
        `spec.validations[3].expression: ${LISTS}`,
      ],
    ],
    [
      'a messageExpression and an audit annotation, of which lists are no matter',
      {
        validations: [
          { expression: 'true', messageExpression: 'images.containers[0]' },
          { expression: 'true', messageExpression: 'request.userInfo.username' },
        ],
        auditAnnotations: [
          { key: 'a', valueExpression: 'string(images.containers.size())' },
          { key: 'b', valueExpression: 'request.operation' },
        ],
      },
      [
        'spec.validations[1].messageExpression: request.userInfo',
        'spec.auditAnnotations[1].valueExpression: request.operation',
      ],
    ],
    [
      'what an attestor is made of',
      {
        variables: [{ name: 'key', expression: 'object.metadata.name' }],
        attestors: [
          keyAttestor('release', { expression: 'request.userInfo.username' }),
          keyAttestor('other', { expression: 'variables.key' }),
          keyAttestor('fine', { expression: 'request.namespace' }),
          keyAttestor('lists', { expression: 'images.containers[0]' }),
        ],
      },
      [
        'spec.attestors[0].expressions[0].expression: request.userInfo',
        'spec.variables[0].expression: object.metadata.name',
        `spec.attestors[3].expressions[0].expression: ${LISTS}`,
      ],
    ],
    [
      'extractors',
      {
        images: [
          { name: 'fine', expression: 'object.spec.containers.map(c, c.image)' },
          { name: 'volumes', expression: 'object.spec.volumes.map(v, v.image.reference)' },
          { name: 'one', expression: '[object.spec.containers[0].image]' },
        ],
      },
      ['spec.images[1].expression: object.spec.volumes', `spec.images[2].expression: ${LISTS}`],
    ],
    [
      'references, which see nothing but themselves',
      { matchImageReferences: [{ expression: `ref.startsWith('a')` }, { glob: 'b*' }] },
      [],
    ],
  ])('%s', async (_, spec, needs) => {
    expect(await needsOf(spec)).toEqual(needs)
  })

  test('exceptions are looked at where they count, and must not be widened by images', async () => {
    const exception = (name: string, expression: string) => ({
      apiVersion: 'policies.kyverno.io/v1',
      kind: 'PolicyException',
      metadata: { name, namespace: 'shop' },
      spec: {
        policyRefs: [{ name: 'must-sign', kind: 'ImageValidatingPolicy' }],
        matchConditions: [{ name: 'a', expression }],
      },
    })
    const { policies, faults } = await load([
      policyDocument(CREATED),
      exception('labels', reading),
      exception('lists', 'object.spec.containers.exists(c, c.image == "a")'),
      exception('ticket', 'object.metadata.?annotations[?"a.image-policy.k8s.io/b"].hasValue()'),
    ])
    expect(faults).toEqual([])
    const needs = (counting?: string[]) =>
      reviewNeeds(policies[0]!, counting && new Set(counting)).needs
    const at = (name: string) => `exception shop/${name}: spec.matchConditions[0].expression`
    expect(needs()).toEqual([
      { path: at('labels'), what: field },
      { path: at('lists'), what: LISTS },
    ])
    expect(needs(['shop/ticket'])).toEqual([])
    expect(needs(['shop/lists'])).toEqual([{ path: at('lists'), what: LISTS }])
  })
})

test('what exceptions tell expressions depends on what their conditions do', async () => {
  const exception = {
    apiVersion: 'policies.kyverno.io/v1',
    kind: 'PolicyException',
    metadata: { name: 'few', namespace: 'shop' },
    spec: {
      policyRefs: [{ name: 'must-sign', kind: 'ImageValidatingPolicy' }],
      matchConditions: [{ name: 'a', expression: 'object.spec.containers.size() < 3' }],
      allowedValues: ['x'],
    },
  }
  const expression = `!('x' in exceptions.allowedValues)`
  const { policies, faults } = await load([
    policyDocument({ ...CREATED, validations: [{ expression }] }),
    exception,
  ])
  expect(faults).toEqual([])
  const path = 'spec.validations[0].expression'
  expect(reviewNeeds(policies[0]!).needs).toEqual([{ path, what: LISTS }])
  expect(reviewNeeds(policies[0]!, new Set()).needs).toEqual([])
})

describe('what a policy is about', () => {
  const rules = (...resourceRules: object[]) => ({
    matchConstraints: { resourceRules: resourceRules.map((rule) => ({ ...POD_RULE, ...rule })) },
  })
  const at = (rest: string) => `spec.matchConstraints.${rest}`

  test.each<[string, object, { isAsked: boolean; needs: { path: string; what: string }[] }]>([
    ['pods', rules({}), { isAsked: true, needs: [] }],
    [
      'everything',
      rules({ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'] }),
      { isAsked: true, needs: [] },
    ],
    [
      'deployments',
      rules({ apiGroups: ['apps'], resources: ['deployments'] }),
      { isAsked: false, needs: [] },
    ],
    ['pods that go away', rules({ operations: ['DELETE'] }), { isAsked: false, needs: [] }],
    [
      'other subresources',
      rules({ resources: ['pods/exec', 'pods/status'] }),
      { isAsked: false, needs: [] },
    ],
    [
      'updates alone',
      rules({ operations: ['DELETE'] }, { operations: ['UPDATE'], resources: ['pods'] }),
      { isAsked: true, needs: [{ path: at('resourceRules[1]'), what: 'UPDATE of pods' }] },
    ],
    [
      'ephemeral containers alone',
      rules({ resources: ['pods/ephemeralcontainers'] }),
      {
        isAsked: true,
        needs: [{ path: at('resourceRules[0]'), what: 'UPDATE of pods/ephemeralcontainers' }],
      },
    ],
    [
      'pods of some names',
      rules({ operations: ['UPDATE'] }, { resourceNames: ['web'] }),
      {
        isAsked: true,
        needs: [{ path: at('resourceRules[1].resourceNames'), what: 'names of Pods' }],
      },
    ],
    [
      'all pods, and some by name as well',
      rules({ resourceNames: ['web'] }, {}),
      { isAsked: true, needs: [] },
    ],
    [
      'pods with some labels',
      {
        matchConstraints: {
          resourceRules: [POD_RULE],
          objectSelector: { matchLabels: { a: 'b' } },
        },
      },
      { isAsked: true, needs: [{ path: at('objectSelector'), what: 'labels of Pods' }] },
    ],
    [
      'pods but for some names',
      {
        matchConstraints: {
          resourceRules: [POD_RULE],
          excludeResourceRules: [{ ...POD_RULE, resourceNames: ['web'] }],
        },
      },
      {
        isAsked: true,
        needs: [{ path: at('excludeResourceRules[0].resourceNames'), what: 'names of Pods' }],
      },
    ],
    [
      'pods, but not when they are created',
      {
        matchConstraints: {
          resourceRules: [POD_RULE],
          excludeResourceRules: [{ ...POD_RULE, operations: ['CREATE'] }],
        },
      },
      { isAsked: true, needs: [{ path: at('resourceRules[0]'), what: 'UPDATE of pods' }] },
    ],
    [
      'namespaces with some labels, which are looked up',
      {
        matchConstraints: {
          resourceRules: [POD_RULE],
          namespaceSelector: { matchLabels: { a: 'b' } },
        },
      },
      { isAsked: true, needs: [] },
    ],
  ])('%s', async (_, spec, expected) => {
    const policy = await compiledPolicy({ attestors: [keyAttestor('release')], ...spec })
    expect(reviewNeeds(policy)).toEqual(expected)
  })

  test('variants for controllers are not asked', async () => {
    const { policies } = await load([
      policyDocument({
        matchConstraints: { resourceRules: [{ ...POD_RULE, resources: ['pods'] }] },
      }),
    ])
    expect(policies.map((policy) => [policy.autogen, reviewNeeds(policy).isAsked])).toEqual([
      [undefined, true],
      ['defaults', false],
      ['cronjobs', false],
    ])
  })
})
