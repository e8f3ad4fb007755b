import { parseReference } from '../image/reference.ts'
import { repositoryOf } from '../registry/session.ts'
import type { RegistrySession } from '../registry/types.ts'
import type { Subject } from './content.ts'
import type { Attestor } from './types.ts'

/** The image with where its signatures and attestations are for this attestor: beside it, or where `cosign.source` says. */
export function subjectOf(
  about: Pick<Subject, 'repository' | 'digest'>,
  attestor: Attestor,
): Subject {
  if (attestor.kind === 'notary' || attestor.source === undefined) return about
  const { repository, tagPrefix } = attestor.source
  return {
    ...about,
    ...(repository === undefined ? {} : { store: repositoryOf(parseReference(repository)) }),
    ...(tagPrefix === undefined ? {} : { tagPrefix }),
  }
}

/** The registry as the attestor's signatures are read: with the logins of `source.PullSecrets` where it names some. */
export function sourceSession(registry: RegistrySession, attestor: Attestor): RegistrySession {
  const secrets = attestor.kind === 'notary' ? undefined : attestor.source?.pullSecrets
  return secrets === undefined ? registry : registry.withCredentials({ secrets, providers: [] })
}
