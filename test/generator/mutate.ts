import type { Random } from '#test/generator/random.ts'

/** What an expression can be damaged with: every kind of token, and halves of them. */
const SCRAPS: readonly string[] = [
  ...'( ) [ ] { } . , : ? ?. [? ! - + * / % = == != < <= > >= && || & | in 0 1u 1.5 0x 1e . \' " """ r" b\' \\ ` @ # $'.split(
    ' ',
  ),
  ...[
    '//',
    '\n',
    '\t',
    '\u0000',
    '\ud800',
    '😀',
    'é',
    ' has(',
    '.all(x, ',
    ' null',
    ' package',
    '\\u',
    '\\777',
  ],
]

/** The text with up to three places damaged: something inserted, taken out, doubled or put elsewhere. */
export function mutate(text: string, random: Random): string {
  let damaged = text
  for (let i = 0; i <= random.below(3); i++) damaged = mutateOnce(damaged, random)
  return damaged
}

function mutateOnce(text: string, random: Random): string {
  const start = random.below(text.length + 1)
  const end = Math.min(text.length, start + random.below(8))
  const [before, part, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)]
  switch (random.below(4)) {
    case 0:
      return before + random.pick(SCRAPS) + part + after
    case 1:
      return before + after
    case 2:
      return before + part + part + after
    default:
      return before + random.pick(SCRAPS) + after
  }
}
