import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { faultList, printError } from '#functions/cli/output.ts'
import { AdmissionError } from '#shared/errors.ts'
import { countersign } from './harness.ts'

const COMMANDS = [
  'demo',
  'init',
  'dev',
  'build',
  'bundle',
  'webhooks',
  'lint',
  'test',
  'verify',
  'cel',
  'verify-bundle',
  'report',
  'doctor',
  'tokens',
  'trust',
]

test('countersign --version says which one it is', async () => {
  const { version } = JSON.parse(
    await readFile(new URL('../../../package.json', import.meta.url), 'utf8'),
  )
  expect(await countersign(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' })
})

describe('countersign --help', () => {
  test('lists every command', async () => {
    const { code, out, err } = await countersign(['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const listed = [...out.matchAll(/^ {2}([a-z-]+) .*$/gm)].map(([, name]) => name)
    expect(listed.slice(listed.indexOf('demo'))).toEqual([...COMMANDS, 'help'])
  })

  test.each([...COMMANDS, 'tokens new', 'tokens rotate', 'tokens revoke'])(
    '%s --help says what it does and exits with 0',
    async (command) => {
      const { code, out, err } = await countersign([...command.split(' '), '--help'])
      expect({ code, err }).toEqual({ code: 0, err: '' })
      expect(out).toMatch(new RegExp(`^Usage: countersign ${command} `))
    },
  )

  test.each([...COMMANDS, 'tokens new', 'tokens rotate', 'tokens revoke'])(
    '%s --help has examples of the command itself',
    async (name) => {
      const { out } = await countersign([...name.split(' '), '--help'])
      expect(out).toMatch(new RegExp(`Examples:\n  \\$ (?:.* \\| )?countersign ${name}`))
    },
  )

  test.each(['demo', 'init', 'verify', 'build', 'doctor', 'cel', 'tokens new', 'trust'])(
    '%s prints text, JSON or YAML',
    async (command) => {
      const { out } = await countersign([...command.split(' '), '--help'])
      expect(out.replaceAll(/\s+/g, ' ')).toContain(
        '-o, --output <format> how to print (choices: "text", "json", "yaml", default: "text")',
      )
    },
  )

  test.each(COMMANDS)('%s --help fits a 100-column terminal', async (name) => {
    const { out } = await countersign([name, '--help'])
    const wide = out.split('\n').filter((line) => line.length > 100 && !line.startsWith('  $ '))
    expect(wide).toEqual([])
  })
})

describe('wrong usage', () => {
  test.each([
    { name: 'an unknown command', args: ['verfy'], says: "error: unknown command 'verfy'" },
    { name: 'an unknown option', args: ['demo', '--fast'], says: "error: unknown option '--fast'" },
    {
      name: 'a missing argument',
      args: ['verify'],
      says: "error: missing required argument 'image'",
    },
    {
      name: 'a missing option',
      args: ['tokens', 'new'],
      says: "error: required option '--cluster <name>' not specified",
    },
    {
      name: 'a format that is none',
      args: ['demo', '-o', 'xml'],
      says: "error: option '-o, --output <format>' argument 'xml' is invalid. Allowed choices are text, json, yaml.",
    },
  ])('$name exits with 2 and says where to read on', async ({ args, says }) => {
    const { code, out, err } = await countersign(args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    const lines = err.trim().split('\n')
    expect(lines[0]).toBe(says)
    expect(lines.at(-1)).toMatch(/^\(run 'countersign.* --help' for usage\)$/)
  })

  test.each([
    ['no command', []],
    ['tokens without a verb', ['tokens']],
  ])('%s prints the help and exits with 2', async (_, args) => {
    const { code, err } = await countersign(args)
    expect(code).toBe(2)
    expect(err).toMatch(/^Usage: countersign/)
  })
})

describe('printError', () => {
  const printed = (thrown: unknown) => {
    let err = ''
    const io = { err: (text: string) => (err += text) }
    const code = printError(io as never, 'countersign build', thrown)
    return { code, err }
  }

  test('is one line and the faults with their places', () => {
    const faults = [
      { path: 'a.yaml:3:5', message: 'expected a string,\n found a number' },
      { path: 'a.yaml:9:1', message: 'unknown field "x"' },
    ]
    expect(printed(new AdmissionError('CONFIG_INVALID', 'a.yaml: 2 faults', { faults }))).toEqual({
      code: 2,
      err: 'countersign build: a.yaml: 2 faults\n  a.yaml:3:5  expected a string, found a number\n  a.yaml:9:1  unknown field "x"\n',
    })
    expect(faultList([])).toBe('')
  })

  test.each([
    {
      name: 'an error',
      thrown: new RangeError('out\n  of range'),
      err: 'countersign build: unexpected RangeError: out of range\n',
    },
    { name: 'anything else', thrown: 'a string', err: 'countersign build: unexpected a string\n' },
  ])('$name that nobody expected is one line without a stack', ({ thrown, err }) => {
    expect(printed(thrown)).toEqual({ code: 2, err })
  })
})
