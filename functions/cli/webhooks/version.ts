import { NEWEST_MINOR, OLDEST_MINOR } from '#shared/cel/profiles.ts'
import { AdmissionError } from '#shared/errors.ts'

/** First version with manifest-based admission, and the first that has it without a feature gate. */
const STATIC_MINOR = 36
const STATIC_DEFAULT_MINOR = 37

/** The minor version to write for; newer ones than are known take what the newest known takes. Throws `CONFIG_INVALID`. */
export function minorOf(version: string | undefined): number | undefined {
  if (version === undefined) return undefined
  const minor = Number(/^1\.([0-9]{1,2})$/.exec(version)?.[1] ?? Number.NaN)
  if (Number.isNaN(minor)) throw refusal(`Kubernetes ${version}: expected a version such as 1.31`)
  if (minor < OLDEST_MINOR) {
    throw refusal(
      `Kubernetes ${version}: what its API server takes is known from 1.${OLDEST_MINOR} on`,
    )
  }
  return Math.min(minor, NEWEST_MINOR)
}

/** What to say about manifest-based admission in this version. Throws `CONFIG_INVALID` where the API server would not read the files at all. */
export function staticNotes(
  { service }: { service?: string },
  minor: number | undefined,
): string[] {
  if (service !== undefined) {
    throw refusal('manifest-based admission calls URLs only: leave --service out')
  }
  if (minor === undefined) {
    return [
      `manifest-based admission takes Kubernetes 1.${STATIC_MINOR} or newer; say which one the cluster has (clusters[].kubernetes or --kubernetes)`,
    ]
  }
  if (minor < STATIC_MINOR) {
    throw refusal(
      `manifest-based admission takes Kubernetes 1.${STATIC_MINOR} or newer, and the cluster has 1.${minor}: its API server would not start with these files; use --flavour url`,
    )
  }
  return minor < STATIC_DEFAULT_MINOR
    ? [
        `Kubernetes 1.${minor} reads manifests with the feature gate ManifestBasedAdmissionControlConfig alone`,
      ]
    : []
}

function refusal(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
