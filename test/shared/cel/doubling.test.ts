import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import { specLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import { toTagged } from '#shared/cel/tagged.ts'
import { toJson } from '#shared/cel/to-json.ts'
import { CelError } from '#shared/cel/values.ts'

/** Values that hold the value before them twice, level by level: cheap to make, and 2^levels parts for whoever walks through. */
const LEVELS = 60

const environment = createEnvironment({ profile: 'spec', variables: {} })

function doubled(name: string, innermost: string): string {
  let source = innermost
  for (let level = LEVELS; level > 0; level--) {
    const before = `${name}${level - 1}`
    source = `cel.bind(${name}${level}, [${before}, ${before}], ${source})`
  }
  return `cel.bind(${name}0, [1, 2], ${source})`
}

function run(source: string) {
  const result = compile(source, environment)
  if (!result.ok) throw new Error(result.issues[0]?.message)
  const planned = plan(result.checked, { profile: 'spec', implementations: specLibrary })
  if (!planned.ok) throw new Error(planned.message)
  return planned.program.evaluate({})
}

const LAST = `a${LEVELS}`

describe('a run ends long before it has looked at every part', () => {
  test.each([
    ['equality', doubled('a', doubled('b', `${LAST} == b${LEVELS}`))],
    ['equality of maps', doubled('a', doubled('b', `{1: ${LAST}} == {1: b${LEVELS}}`))],
    ['membership', doubled('a', doubled('b', `${LAST} in [b${LEVELS}]`))],
    ['distinct', doubled('a', doubled('b', `[${LAST}, b${LEVELS}].distinct().size()`))],
    ['sets', doubled('a', doubled('b', `sets.contains([${LAST}], [b${LEVELS}])`))],
    ['flatten', doubled('a', `${LAST}.flatten(${LEVELS}).size()`)],
    ['format', doubled('a', `'%s'.format([${LAST}]).size()`)],
  ])('%s', (_, source) => {
    expect(run(source)).toMatchObject({
      kind: 'error',
      code: 'evaluation',
      message: 'the evaluation does far more work than its cost pays for',
    })
  })
})

describe('as a result it is too large', () => {
  const outcome = run(doubled('a', LAST))
  if (outcome.kind === 'error') throw new Error(outcome.message)

  test('for JSON', () => {
    expect(toJson(outcome.value)).toEqual(new CelError('the value is too large for JSON'))
  })

  test('for tags', () => {
    expect(() => toTagged(outcome.value)).toThrow(RangeError)
  })
})

test('what is shared but small is compared and converted as ever', () => {
  const outcome = run('cel.bind(a, [1], cel.bind(b, [a, a], b == [[1], [1]] ? b : []))')
  if (outcome.kind === 'error') throw new Error(outcome.message)
  expect(toJson(outcome.value)).toEqual([[1], [1]])
})
