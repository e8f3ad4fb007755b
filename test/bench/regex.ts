import { RE2JS } from 're2js'
import { compileRegex } from '#shared/cel/regex/engine.ts'
import { geometricMean, perSecond, type Quick } from './measure.ts'

/** Patterns of policies, each with a short text that it is asked about. */
const PATTERNS: readonly { name: string; pattern: string; text: string }[] = [
  {
    name: 'digest',
    pattern: '^sha256:[a-f0-9]{64}$',
    text: `sha256:${'a1b2c3d4e5f60718'.repeat(4)}`,
  },
  {
    name: 'digest of an image',
    pattern: '@sha256:[a-f0-9]{64}',
    text: `registry.example.com/team/app@sha256:${'a1b2c3d4e5f60718'.repeat(4)}`,
  },
  {
    name: 'image',
    pattern: '^ghcr\\.io/[^/]+/.*:v[0-9]+\\.[0-9]+\\.[0-9]+$',
    text: 'ghcr.io/acme/shop/web:v1.22.3',
  },
  {
    name: 'workflow',
    pattern: '^https://github\\.com/acme/.+/\\.github/workflows/release\\.ya?ml@refs/tags/v.*$',
    text: 'https://github.com/acme/shop/.github/workflows/release.yml@refs/tags/v1.2.3',
  },
  {
    name: 'date',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}Z$',
    text: '2026-11-30T09:31:00Z',
  },
  {
    name: 'host',
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
    text: 'my-app.prod.example.com',
  },
  {
    name: 'version with groups',
    pattern: '^v?(\\d+)\\.(\\d+)\\.(\\d+)(?:-([0-9A-Za-z.-]+))?$',
    text: 'v1.22.333-rc.1',
  },
  { name: 'either case', pattern: '(?i)^(prod|staging|dev)-[a-z]+$', text: 'Staging-frontend' },
  { name: 'digits', pattern: '[0-9]+', text: 'pod-123-456' },
  {
    name: 'no match',
    pattern: 'latest|nightly|edge',
    text: 'the quick brown fox jumps over the lazy dog',
  },
  { name: 'literal', pattern: 'latest', text: 'registry.example.com/team/app:latest' },
]

const DOINGS = ['compile', 'test', 'matches'] as const
type Doing = (typeof DOINGS)[number]

/** Our speed relative to re2js: what every pattern gives, by what is done with it. */
export type RegexReport = Readonly<Record<Doing, readonly { name: string; ratio: number }[]>>

/** Both on all patterns, in turns. */
export function regexReport(): RegexReport {
  const runs = PATTERNS.flatMap((each) => [...ours(each), ...theirs(each)])
  const rates = perSecond(runs)
  const ratios = (doing: Doing) =>
    PATTERNS.map(({ name }) => ({
      name,
      ratio: (rates.get(`ours ${name} ${doing}`) ?? 0) / (rates.get(`re2js ${name} ${doing}`) ?? 1),
    }))
  return { compile: ratios('compile'), test: ratios('test'), matches: ratios('matches') }
}

function ours({ name, pattern, text }: (typeof PATTERNS)[number]): Quick[] {
  const regex = compileRegex(pattern)
  return [
    { name: `ours ${name} compile`, run: () => compileRegex(pattern) },
    { name: `ours ${name} test`, run: () => regex.test(text) },
    { name: `ours ${name} matches`, run: () => regex.matches(text) },
  ]
}

function theirs({ name, pattern, text }: (typeof PATTERNS)[number]): Quick[] {
  const regex = RE2JS.compile(pattern)
  const matches = () => {
    const out: (string | null)[] = []
    const matcher = regex.matcher(text)
    while (matcher.find()) {
      for (let group = 0; group <= matcher.groupCount(); group++) out.push(matcher.group(group))
    }
    return out
  }
  return [
    { name: `re2js ${name} compile`, run: () => RE2JS.compile(pattern) },
    { name: `re2js ${name} test`, run: () => regex.test(text) },
    { name: `re2js ${name} matches`, run: matches },
  ]
}

/** Prints the ratios; true when ours is no slower in geometric mean, whatever is done. */
export function printRegex(report: RegexReport): boolean {
  console.log('\nRegular expressions, speed relative to re2js')
  console.log(`  ${''.padEnd(26)}${DOINGS.map((doing) => doing.padStart(10)).join('')}`)
  const line = (name: string, ratioOf: (doing: Doing) => number) => {
    const cells = DOINGS.map((doing) => `×${ratioOf(doing).toFixed(2)}`.padStart(10))
    console.log(`  ${name.padEnd(26)}${cells.join('')}`)
  }
  for (const [i, { name }] of PATTERNS.entries())
    line(name, (doing) => report[doing][i]?.ratio ?? 0)
  const mean = (doing: Doing) => geometricMean(report[doing].map(({ ratio }) => ratio))
  line('geometric mean', mean)
  return DOINGS.every((doing) => {
    const met = mean(doing) >= 1
    console.log(`  ${doing} ≥ 1× re2js: ${mean(doing).toFixed(2)}×, ${met ? 'met' : 'MISSED'}`)
    return met
  })
}
