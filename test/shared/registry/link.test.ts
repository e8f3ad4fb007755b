import { describe, expect, test } from 'vitest'
import { nextPage } from '#shared/registry/link.ts'

const page = new URL('https://registry.example.com/v2/app/referrers/sha256:0')
const next = 'https://registry.example.com/v2/app/referrers/sha256:0?n=2'

describe('the next page', () => {
  test.each<{ name: string; header: string | null; gives: string | undefined }>([
    { name: 'no header', header: null, gives: undefined },
    { name: 'an empty header', header: '', gives: undefined },
    { name: 'a quoted relation', header: '<?n=2>; rel="next"', gives: next },
    { name: 'a bare relation', header: '<?n=2>; rel=next', gives: next },
    { name: 'tabs and spaces around the relation', header: '<?n=2>\t;\trel = next ', gives: next },
    { name: 'upper case', header: '<?n=2>; REL="NEXT"', gives: next },
    { name: 'one of several relations', header: '<?n=2>; rel="last next prev"', gives: next },
    {
      name: 'a relation after another parameter',
      header: '<?n=2>; title="a;b"; rel=next',
      gives: next,
    },
    { name: 'the second of two links', header: '<?n=1>; rel=prev, <?n=2>; rel=next', gives: next },
    { name: 'an absolute address', header: `<${next}>; rel="next"`, gives: next },
    { name: 'another relation', header: '<?n=2>; rel="prev"', gives: undefined },
    { name: 'a relation that begins so', header: '<?n=2>; rel="next-archive"', gives: undefined },
    { name: 'a parameter that ends so', header: '<?n=2>; xrel="next"', gives: undefined },
    {
      name: 'a relation inside another parameter',
      header: '<?n=2>; title="; rel=next"',
      gives: undefined,
    },
    { name: 'no relation', header: '<?n=2>', gives: undefined },
    { name: 'no address', header: '?n=2; rel=next', gives: undefined },
    { name: 'an address that is none', header: '<https://[>; rel=next', gives: undefined },
  ])('of $name', ({ header, gives }) => {
    expect(nextPage(header, page)?.href).toBe(gives)
  })

  test.each([
    { name: 'relations without an end', header: `<?n=2>;rel="${' next'.repeat(100_000)}` },
    { name: 'spaces', header: `<?n=2>;${' '.repeat(500_000)}rel=x` },
    { name: 'parameters', header: `<?n=2>${';rel'.repeat(100_000)}` },
    { name: 'quotes', header: `<?n=2>${';rel="'.repeat(100_000)}` },
    { name: 'links', header: '<'.repeat(500_000) },
  ])('is looked for in a header of many $name in time that grows with it', ({ header }) => {
    const started = performance.now()
    nextPage(header, page)
    expect(performance.now() - started).toBeLessThan(1000)
  })
})
