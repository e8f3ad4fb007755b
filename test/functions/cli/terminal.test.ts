import picocolors from 'picocolors'
import { describe, expect, test } from 'vitest'
import { forTerminal } from '#functions/cli/terminal.ts'

describe('forTerminal', () => {
  test('leaves text, lines and colours of ours as they are', () => {
    const { red, bold, dim } = picocolors.createColors(true)
    const text = `${bold('token')} ${red(`✗ ${dim('no')}`)}\n\tä\r\n`
    expect(forTerminal(text)).toBe(text)
  })

  test.each([
    { name: 'clears the screen', text: 'a\u001b[2Jb', shown: 'a\\u001b[2Jb' },
    { name: 'hides what follows', text: '\u001b[8mno', shown: '\\u001b[8mno' },
    { name: 'sets the title', text: '\u001b]0;x\u0007', shown: '\\u001b]0;x\\u0007' },
    { name: 'begins with one character', text: '\u009b2J', shown: '\\u009b2J' },
    { name: 'writes over the line', text: 'denied\rallowed', shown: 'denied\\u000dallowed' },
    { name: 'deletes', text: 'no\b\b\u007f', shown: 'no\\u0008\\u0008\\u007f' },
    { name: 'ends the text for some', text: 'a\u0000b', shown: 'a\\u0000b' },
    { name: 'turns the order around', text: 'a\u202eb\u2066c', shown: 'a\\u202eb\\u2066c' },
  ])('shows what $name', ({ text, shown }) => {
    expect(forTerminal(text)).toBe(shown)
  })
})
