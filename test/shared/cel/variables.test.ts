import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { compose } from '#shared/cel/composition.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import type { CheckedExpression, CompileResult } from '#shared/cel/types.ts'
import { type NamedProgram, unescapeName, Variables } from '#shared/cel/variables.ts'
import { environmentOf, regex, show } from '#test/shared/cel/run.ts'

const OPTIONS = { profile: 'kubernetes', implementations: kubernetesLibrary, regex } as const

function programOf(checked: CheckedExpression) {
  const planned = plan(checked, OPTIONS)
  if (!planned.ok) throw new Error(planned.message)
  return planned.program
}

function named(name: string, result: CompileResult): NamedProgram {
  if (!result.ok) return { name, program: { fault: result.issues[0]?.message ?? '' } }
  return { name, program: programOf(result.checked) }
}

/** An expression beside the variables it may use. */
function composed(expression: string, definitions: Readonly<Record<string, string>>) {
  const list = Object.entries(definitions).map(([name, text]) => ({ name, expression: text }))
  const { variables, environment } = compose(environmentOf('kubernetes'), list)
  const compiled = compile(expression, environment)
  if (!compiled.ok) throw new Error(compiled.issues[0]?.message)
  const programs = variables.map(({ name, result }) => named(name, result))
  return { program: programOf(compiled.checked), programs }
}

describe('variables', () => {
  test('are evaluated when first used, once, and counted apart', () => {
    const { program, programs } = composed('variables.n == 3 && variables.n > 2', {
      n: 'size(object.items)',
      unused: '1 / 0',
    })
    const object = { items: [1, 2, 3] }
    const variables = new Variables(programs, { object })
    expect(program.evaluate({ object, variables })).toMatchObject({ value: true, cost: 6 })
    expect(variables.cost).toBe(3)
    expect(program.evaluate({ object, variables })).toMatchObject({ value: true, cost: 6 })
    expect(variables.cost).toBe(3)
    expect(variables.takeCost()).toBe(3)
    expect(variables.cost).toBe(0)
  })

  test('see those before them', () => {
    const { program, programs } = composed('variables.b', { a: '2', b: 'variables.a * 3' })
    const variables = new Variables(programs, {})
    expect(show(program.evaluate({ variables }))).toBe('6')
  })

  test('keep their errors, which say which variable failed', () => {
    const { program, programs } = composed('variables.bad == 1', { bad: 'object.missing' })
    const variables = new Variables(programs, { object: {} })
    expect(program.evaluate({ variables })).toEqual({
      kind: 'error',
      code: 'evaluation',
      message: 'composited variable "bad" fails to evaluate: no such key: missing',
      cost: 3,
    })
  })

  test('that do not compile fail only where they are used', () => {
    const { program, programs } = composed('true || variables.bad', { bad: 'nothing()' })
    expect(show(program.evaluate({ variables: new Variables(programs, {}) }))).toBe('true')
    const used = composed('variables.bad == 1', { bad: 'nothing()' })
    expect(used.program.evaluate({ variables: new Variables(used.programs, {}) })).toMatchObject({
      message: expect.stringContaining('composited variable "bad" fails to compile'),
    })
  })

  test('draw from the budget of the expression that uses them', () => {
    const { program, programs } = composed('variables.n == 3', { n: 'size(object.items)' })
    const object = { items: [1, 2, 3] }
    const spend = (limit: number) => {
      const budget = { limit, spent: 0 }
      const activation = { object, variables: new Variables(programs, { object }) }
      return { outcome: program.evaluate(activation, { budget }), spent: budget.spent }
    }
    expect(spend(6)).toMatchObject({ outcome: { kind: 'value', cost: 3 }, spent: 6 })
    expect(spend(5).outcome).toMatchObject({
      code: 'cost',
      message: expect.stringContaining('running out of cost budget'),
    })
    expect(spend(2).outcome).toMatchObject({ code: 'cost' })
  })

  test('past their own limit are an error like any other', () => {
    const { program, programs } = composed('variables.big > 0 || true', {
      big: 'size(object.items.map(a, object.items.map(b, object.items.map(c, c))))',
    })
    const object = { items: Array.from({ length: 100 }, (_, i) => i) }
    const variables = new Variables(programs, { object })
    expect(show(program.evaluate({ object, variables }))).toBe('true')
    expect(variables.cost).toBeGreaterThan(1_000_000)
  })

  test.each([
    { name: 'ordinary', means: 'ordinary' },
    { name: '__namespace__', means: 'namespace' },
    { name: 'a__dash__b__slash__c__dot__d', means: 'a-b/c.d' },
    { name: 'a__underscores__b', means: 'a__b' },
  ])('the name $name stands for $means', ({ name, means }) => {
    expect(unescapeName(name)).toBe(means)
  })
})
