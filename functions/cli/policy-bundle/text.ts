import type { Io } from '#functions/cli/io.ts'
import type { BundleSummary, BundleVerdict } from './check.ts'

/** The verdict as people read it. */
export function bundleText(io: Io, result: BundleVerdict): string {
  const { bold, green, red } = io.colors
  const { verdict, summary } = result
  const lines = summary === undefined ? [] : linesOf(summary)
  if (verdict === 'refused') return [red(result.reason), ...lines, ''].join('\n')
  const sets = Object.entries(result.policySets).map(([name, set]) => `${name} ${set}`)
  return [
    `${green('functions take it:')} ${bold(summary?.file ?? '')}`,
    ...lines,
    row('deployment', result.deployment.slice(0, 12)),
    row('policy sets', sets.join(', ')),
    '',
  ].join('\n')
}

function linesOf(summary: BundleSummary): string[] {
  const { bytes, bundle, sequence, issuedAt, ageSeconds, expiresAt, pinnedKeys } = summary
  return [
    row('policies', summary.policies.join(', ')),
    row('signed', `${issuedAt}, ${age(ageSeconds)} ago`),
    row('expires', expiresAt ?? 'never'),
    row('sequence', String(sequence)),
    row('SHA-256', bundle),
    row('size', `${bytes} bytes`),
    row('for', `${summary.endpoints.join(', ')}; clusters ${summary.clusters.join(', ')}`),
    ...(pinnedKeys === undefined ? [] : [row('pinned keys', String(pinnedKeys))]),
  ]
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(12)} ${value}`
}

/** In the largest unit that has two of itself. */
function age(seconds: number): string {
  const units = [
    [86_400, 'days'],
    [3600, 'hours'],
    [60, 'minutes'],
  ] as const
  const [size, name] = units.find(([each]) => seconds >= 2 * each) ?? [1, 'seconds']
  return `${Math.floor(seconds / size)} ${name}`
}
