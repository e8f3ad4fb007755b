import { homedir } from 'node:os'
import path from 'node:path'
import { readTextIfThere } from '#functions/files.ts'
import type { CredentialsPort } from '#shared/ports.ts'
import { credentialsFrom, parseDockerConfig } from '#shared/registry/credentials.ts'

/** Logins found on this machine, and what their user should know about them. */
export interface DockerLogins {
  credentials: CredentialsPort
  notes: readonly string[]
}

const ANONYMOUS: DockerLogins = { credentials: async () => undefined, notes: [] }

/**
 * The logins of `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`; anonymous access when there is no such file. Credential helpers
 * are not run, which a note says. Throws `CONFIG_INVALID` when the file is there and wrong.
 */
export async function readDockerLogins(
  env: Readonly<Record<string, string | undefined>>,
): Promise<DockerLogins> {
  const folder = env.DOCKER_CONFIG ?? path.join(env.HOME ?? homedir(), '.docker')
  const file = path.join(folder, 'config.json')
  const text = await readTextIfThere(file)
  if (text === undefined) return ANONYMOUS
  const { rest, helpers } = withoutHelpers(text)
  const notes = helpers ? [`${file}: credential helpers are not run; only its auths are used`] : []
  return { credentials: credentialsFrom(parseDockerConfig(rest, file)), notes }
}

/** The config without its helpers and without the empty entries that mark hosts a helper serves. */
function withoutHelpers(text: string): { rest: string; helpers: boolean } {
  const config = parseObject(text)
  if (config === undefined || !('credsStore' in config || 'credHelpers' in config)) {
    return { rest: text, helpers: false }
  }
  const { auths } = config
  const filled = Object.entries(typeof auths === 'object' && auths !== null ? auths : {}).filter(
    ([, entry]) => typeof entry !== 'object' || entry === null || Object.keys(entry).length > 0,
  )
  return { rest: JSON.stringify({ auths: Object.fromEntries(filled) }), helpers: true }
}

/** The object, or undefined: what is wrong with the text is for `parseDockerConfig` to say, which quotes none of it. */
function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
