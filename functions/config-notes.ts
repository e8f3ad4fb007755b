import type { Fault } from '#shared/errors.ts'
import type { ClusterConfig, Config } from './config.ts'

/** What is right in a config and has to be known to whoever builds with it: whom it lets in, and what it lets pass. */
export function configNotes({ clusters }: Config, now: number): Fault[] {
  return [...auditNotes(clusters), ...endNotes(clusters, now), ...tokenNotes(clusters)]
}

/** What is let in whatever policies say. */
function auditNotes(clusters: readonly ClusterConfig[]): Fault[] {
  return clusters.flatMap(({ name, mode }, index) => {
    const message = `cluster ${name} is in audit mode: nothing is denied there; what would be is a warning and an audit annotation`
    return mode === 'audit' ? [{ path: `clusters[${index}].mode`, message }] : []
  })
}

function endNotes(clusters: readonly ClusterConfig[], now: number): Fault[] {
  return clusters.flatMap(({ name, notAfter }, index) => {
    if (notAfter === undefined || Date.parse(notAfter) > now) return []
    const message = `cluster ${name} is unknown since ${notAfter}: remove it, or give it a later end`
    return [{ path: `clusters[${index}].notAfter`, message }]
  })
}

/** A block that was copied with its token: whoever calls as one cluster could as the other. */
function tokenNotes(clusters: readonly ClusterConfig[]): Fault[] {
  const first = new Map<string, { name: string; path: string }>()
  return clusters.flatMap(({ name, tokens }, index) =>
    tokens.flatMap((hash, at) => {
      const path = `clusters[${index}].tokens[${at}]`
      const other = first.get(hash)
      if (other === undefined) first.set(hash, { name, path })
      if (other === undefined || other.name === name) return []
      const message = `is a token of cluster ${other.name}, too (${other.path}): whoever has it can call as either; \`countersign tokens rotate\` makes one of its own`
      return [{ path, message }]
    }),
  )
}
