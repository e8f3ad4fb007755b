import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { kubernetesYaml } from '#functions/cli/kubernetes-yaml.ts'
import { parseYaml } from '#shared/yaml.ts'

describe('kubernetesYaml', () => {
  test('quotes what version 1.1 takes for a boolean, a number, a time or nothing', () => {
    const texts = [
      'no',
      'y',
      'On',
      '1e3',
      '017',
      '0x1f',
      '1_000',
      '190:20:30',
      '2001-01-01',
      '~',
      '',
    ]
    for (const text of texts) expect(kubernetesYaml([text])).toBe(`- ${JSON.stringify(text)}\n`)
  })

  // Tried with the parser of kubectl, which reads each of them as a number without the quotes.
  test.each(['0o17', '0O17', '0X1F', '0B1', '-0B1', '+0o7', '1e_3', '0b_1'])(
    'quotes %s, which only Go takes for a number',
    (text) => {
      expect(kubernetesYaml({ [text]: text })).toBe(`"${text}": "${text}"\n`)
    },
  )

  test.each([
    ['a next line', 'a\u0085b', '"a\\u0085b"'],
    ['a line separator', 'a\u2028b', '"a\\u2028b"'],
    ['a paragraph separator', 'a\u2029b', '"a\\u2029b"'],
    ['a delete', 'a\u007fb', '"a\\u007fb"'],
    ['a control character', 'a\u0090b', '"a\\u0090b"'],
    ['a byte order mark', '\ufeffa', '"\\ufeffa"'],
    ['a noncharacter', '\uffff', '"\\uffff"'],
    ['quotes beside one', '"\u2028\'', '"\\"\\u2028\'"'],
    ['a tab at the start of lines', '\ta\nb', '"\\ta\\nb"'],
    ['an empty first line', '\n\ta', '"\\n\\ta"'],
    ['blanks and a break', ' \n', '"\\ \\n"'],
  ])('writes %s as what it is, within one line', (_, text, written) => {
    expect(kubernetesYaml([text])).toBe(`- ${written}\n`)
    expect(parse(kubernetesYaml([text]), { version: '1.1' })).toEqual([text])
    expect(parseYaml(kubernetesYaml([text]))).toEqual([[text]])
  })

  test('leaves all else as it is written everywhere', () => {
    const value = {
      name: 'signed-images',
      expression: 'object.spec != oldObject.spec\n  && true\n',
      list: ['a: b', "it's", 'é', '\u{1f600}', '1.2.3', 'a_b', '7up', '<<', 10, true, null, {}, []],
    }
    const options = { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false } as const
    expect(kubernetesYaml(value)).toBe(stringify(value, options))
    const twice = { a: value, b: value }
    expect(kubernetesYaml(twice)).toBe(stringify(twice, options))
  })
})
