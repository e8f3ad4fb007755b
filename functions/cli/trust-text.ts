import { type Change, dayOf } from '#functions/trust/material.ts'
import { type RepositoryState, ROLES } from '#functions/trust/metadata.ts'
import { unreachable } from '#shared/errors.ts'
import type { Io } from './io.ts'

/** What became of one trusted root; JSON, its members in this order. */
export interface TrustReport {
  mirror: string
  file: string
  /** `outdated` and `missing`: it was only looked at. `refused`: the repository does not verify. `unreachable`: nobody could tell. */
  status: 'unchanged' | 'updated' | 'outdated' | 'missing' | 'refused' | 'unreachable'
  reason?: string
  changes: readonly Change[]
  /** Versions and ends of the repository's metadata. */
  metadata: RepositoryState
  /** What should be done something about soon. */
  notes: readonly string[]
}

/** A report as text: what became of the file, what changed, the repository's metadata, and what should be done soon. */
export function trustText(io: Io, report: TrustReport): string {
  const { bold, dim, green, red, yellow } = io.colors
  const { mirror, file, status, reason, changes, metadata, notes } = report
  const paint = {
    unchanged: green,
    updated: green,
    outdated: yellow,
    missing: red,
    refused: red,
    unreachable: red,
  }
  const versions = ROLES.flatMap((role) => {
    const state = metadata[role]
    return state ? [`${role} ${state.version} until ${dayOf(Date.parse(state.expires))}`] : []
  })
  const lines = [
    `${bold(file)}: ${paint[status](status)}${reason === undefined ? '' : `: ${reason}`}`,
    dim(`  ${mirror}`),
    ...changes.map((change) => `  ${changeText(change)}`),
    ...(versions.length > 0 ? [dim(`  ${versions.join(', ')}`)] : []),
    ...notes.map((note) => yellow(`  note: ${note}`)),
  ]
  return `${lines.join('\n')}\n`
}

function changeText(change: Change): string {
  const what = `${change.kind} ${change.name} (${change.id})`
  switch (change.change) {
    case 'added':
      return `+ ${what}: ${span(change)}`
    case 'removed':
      return `- ${what}: ${span(change)}`
    case 'validity':
      return `~ ${what}: ${span(change)}, was ${span(change.was)}`
    default:
      return unreachable(change)
  }
}

function span({ from, until }: { from: string; until?: string }): string {
  const end = until === undefined ? 'open' : dayOf(Date.parse(until))
  return `${dayOf(Date.parse(from))} to ${end}`
}
