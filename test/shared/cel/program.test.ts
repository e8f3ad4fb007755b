import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compile } from '#shared/cel/compile.ts'
import { kubernetesLibrary } from '#shared/cel/libraries.ts'
import { plan } from '#shared/cel/plan.ts'
import type { Budget } from '#shared/cel/types.ts'
import { normalInt } from '#shared/cel/values.ts'
import { environmentOf, programOf, run, show } from '#test/shared/cel/run.ts'

/** A checked expression of the Kubernetes profile. */
function checked(expression: string) {
  const compiled = compile(expression, environmentOf('kubernetes'))
  if (!compiled.ok) throw new Error(compiled.issues[0]?.message)
  return compiled.checked
}

describe('a program is refused when it is planned', () => {
  test.each([
    { name: 'a constant conversion that fails', expression: "int('x') + object.a" },
    { name: 'a constant duration that is too long', expression: "duration(dyn('300000000h'))" },
    { name: 'a bad constant pattern', expression: "object.a.find('(')" },
    { name: 'a constant that can be no key', expression: 'object[dyn(null)]' },
  ])('$name', ({ expression }) => {
    const planned = plan(checked(expression), {
      profile: 'kubernetes',
      implementations: kubernetesLibrary,
      regex: {
        compile: () => {
          throw new Error('no pattern')
        },
      },
    })
    expect(planned).toMatchObject({ ok: false })
  })

  test('a pattern without a regex engine', () => {
    expect(
      plan(checked("object.a.matches('a')"), {
        profile: 'kubernetes',
        implementations: kubernetesLibrary,
      }),
    ).toEqual({ ok: false, message: 'matches needs the regex engine' })
  })

  test('a function nobody implements', () => {
    expect(
      plan(checked("url('/a')"), { profile: 'kubernetes', implementations: {} }),
    ).toMatchObject({ ok: false })
  })
})

describe('names', () => {
  test('an absent variable is an error, and && absorbs it', () => {
    expect(run('x == 1')).toMatchObject({ kind: 'error', code: 'evaluation', cost: 2 })
    expect(show(run('x == 1 && false'))).toBe('false')
  })

  test('a thunk is asked once, and only when its name is used', () => {
    let asked = 0
    const x = () => ++asked
    expect(show(run('true || x == 1', { x }))).toBe('true')
    expect(asked).toBe(0)
    expect(show(run('x + x', { x }))).toBe('2')
    expect(asked).toBe(1)
  })

  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'the key %s is one like any other, and absent when it is absent',
    (key) => {
      const x = JSON.parse(`{"${key}": 1}`)
      expect(show(run(`x['${key}']`, { x }))).toBe('1')
      expect(show(run(`has(x.${key})`, { x: {} }))).toBe('false')
      expect(show(run(`x.${key}`, { x: {} }))).toBe('error')
      expect(show(run(`'${key}' in x`, { x: {} }))).toBe('false')
      expect(show(run(`{'${key}': 1}['${key}']`))).toBe('1')
    },
  )

  test('a dotted name of the activation is not a field of another', () => {
    const outcome = run('authorizer.group("") == authorizer.group("")', {})
    expect(outcome).toMatchObject({ kind: 'error', code: 'evaluation' })
  })
})

describe('cost', () => {
  test('the limit stops the run at the step that passes it', () => {
    const expression = '[1, 2, 3].all(v, v > 0)'
    expect(run(expression)).toMatchObject({ kind: 'value', cost: 16 })
    expect(run(expression, {}, { limit: 16 })).toMatchObject({ kind: 'value' })
    expect(run(expression, {}, { limit: 15 })).toEqual({
      kind: 'error',
      code: 'cost',
      cost: 16,
      message: 'operation cancelled: actual cost limit exceeded',
    })
  })

  test('nothing absorbs the stop', () => {
    const outcome = run("true || x.all(v, v == '')", { x: ['a'] }, { limit: 0 })
    expect(show(outcome)).toBe('true')
    expect(run("x.all(v, v == '') || true", { x: ['a'] }, { limit: 3 })).toMatchObject({
      code: 'cost',
    })
  })

  test('a budget is drawn from by one run after the other, and spent exactly is not passed', () => {
    const budget: Budget = { limit: 4, spent: 0 }
    const program = programOf("object.kind == ''")
    const object = { kind: 'Pod' }
    expect(program.evaluate({ object }, { budget })).toMatchObject({ kind: 'value', cost: 2 })
    expect(program.evaluate({ object }, { budget })).toMatchObject({ kind: 'value', cost: 2 })
    expect(budget.spent).toBe(4)
    expect(program.evaluate({ object }, { budget })).toMatchObject({ kind: 'error', code: 'cost' })
  })

  test('the same program runs any number of times at the same cost', () => {
    const program = programOf('x.filter(v, v > 1).map(v, v * 2)')
    const first = program.evaluate({ x: [1, 2, 3] })
    expect(program.evaluate({ x: [1, 2, 3] })).toEqual(first)
    expect(show(program.evaluate({ x: [] }))).toBe('[]')
  })

  test('sums of lists cost one each however long they are, and are not copied', () => {
    const program = programOf('size(x + x)')
    let x: unknown = Array.from({ length: 1000 }, (_, i) => i)
    for (let doubling = 0; doubling < 40; doubling++) {
      const sum = programOf('[x + x]').evaluate({ x })
      // The only element is the sum.
      x = sum.kind === 'value' && Array.isArray(sum.value) ? sum.value[0] : undefined
    }
    expect(program.evaluate({ x })).toMatchObject({ kind: 'value', value: 1000 * 2 ** 41, cost: 4 })
    expect(show(programOf('x[3]').evaluate({ x }))).toBe('3')
    expect(programOf('x.all(v, v >= 0)').evaluate({ x })).toMatchObject({ code: 'cost' })
  })

  test('calls of flat cost do not read a long text without end', () => {
    const x = 'ü'.repeat(3_000_000)
    const started = performance.now()
    const outcome = run('y.all(v, size(x) > 0)', { x, y: Array.from({ length: 100_000 }, () => 0) })
    expect(outcome).toMatchObject({ kind: 'error', code: 'evaluation' })
    expect(performance.now() - started).toBeLessThan(20_000)
  })
})

describe('integers', () => {
  const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  const near = fc.oneof(
    int64,
    fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
    fc.integer().map(BigInt),
  )
  test.each([
    { operator: '+', exact: (a: bigint, b: bigint) => a + b },
    { operator: '-', exact: (a: bigint, b: bigint) => a - b },
    { operator: '*', exact: (a: bigint, b: bigint) => a * b },
    { operator: '/', exact: (a: bigint, b: bigint) => (b === 0n ? undefined : a / b) },
    { operator: '%', exact: (a: bigint, b: bigint) => (b === 0n ? undefined : a % b) },
  ])('x $operator y is exact or an error', ({ operator, exact }) => {
    const program = programOf(`x ${operator} y`)
    fc.assert(
      fc.property(near, near, (a, b) => {
        const result = exact(a, b)
        const overflow =
          result === undefined ||
          BigInt.asIntN(64, result) !== result ||
          (operator === '%' && a === -(2n ** 63n) && b === -1n)
        const outcome = program.evaluate({ x: normalInt(a), y: normalInt(b) })
        expect(show(outcome)).toBe(overflow ? 'error' : String(result))
      }),
    )
  })

  test('comparison agrees with that of unbounded integers', () => {
    const program = programOf('x < y')
    fc.assert(
      fc.property(near, near, (a, b) => {
        expect(show(program.evaluate({ x: normalInt(a), y: normalInt(b) }))).toBe(String(a < b))
      }),
    )
  })
})

describe('texts', () => {
  test('their order is that of their code points', () => {
    const program = programOf('x < y')
    const points = (text: string) => Array.from(text, (point) => point.codePointAt(0) ?? 0)
    const text = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(text, text, (x, y) => {
        const [a, b] = [points(x), points(y)]
        const at = a.findIndex((point, i) => point !== b[i])
        const less = at < 0 ? a.length < b.length : (a[at] ?? 0) < (b[at] ?? -1)
        expect(show(program.evaluate({ x, y }))).toBe(String(less))
      }),
    )
  })

  test('joined texts cost a tenth of their code points, those that meet halfway included', () => {
    const program = programOf('string(x) + string(y) + string(x)')
    const points = (text: string) => Array.from(text).length
    const text = fc.array(fc.constantFrom('a', 'ü', '🚀', '\ud83d', '\ude80', 'long enough'))
    fc.assert(
      fc.property(text, text, (xs, ys) => {
        const [x, y] = [xs.join(''), ys.join('')]
        const first = Math.ceil((points(x) + points(y)) * 0.1)
        const second = Math.ceil((points(x + y) + points(x)) * 0.1)
        const outcome = program.evaluate({ x, y })
        // Each of the three arguments is a name and its conversion.
        expect(outcome).toMatchObject({ value: x + y + x, cost: 6 + first + second })
      }),
    )
  })
})
