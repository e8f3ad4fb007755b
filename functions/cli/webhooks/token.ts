import type { ClusterConfig } from '#functions/config.ts'
import { readText } from '#functions/files.ts'
import { AdmissionError } from '#shared/errors.ts'
import type { Io } from '../io.ts'
import { hashOf } from '../token.ts'

/** Where the token of a cluster comes from. */
export interface TokenSource {
  tokenFile?: string
  tokenPlaceholder?: string | true
}

/** What stands in the place of the token in every URL. */
export interface UrlToken {
  text: string
  /** It is to be replaced by the token before anything is applied. */
  isPlaceholder: boolean
  notes: readonly string[]
}

/** The variable that may hold the token. */
export const TOKEN_VARIABLE = 'COUNTERSIGN_TOKEN'
const PLACEHOLDER = `\${${TOKEN_VARIABLE}}`

/** Printed on one line, and no step to another folder. */
const PLACEHOLDER_TEXT = /^(?!\.{1,2}$)(?!.*[/?#])[!-~]+$/
/** What stands in a path as it is. */
const TOKEN_TEXT = /^(?!\.{1,2}$)[A-Za-z0-9._~-]+$/

/** Longest input that is read for a token, bytes. */
const MAX_TOKEN_INPUT_BYTES = 4096

/**
 * The token of the cluster: the config has only its hash, so that it is given in a file, on standard input or in the environment, and
 * checked. Throws `CONFIG_INVALID` without the token when there is none or it is not one of this cluster.
 */
export async function urlToken(
  io: Io,
  { tokenFile, tokenPlaceholder }: TokenSource,
  cluster: ClusterConfig,
): Promise<UrlToken> {
  if (tokenPlaceholder !== undefined) {
    const text = tokenPlaceholder === true ? PLACEHOLDER : tokenPlaceholder
    if (!PLACEHOLDER_TEXT.test(text)) {
      throw refusal('a placeholder has no blanks and none of / ? #: it is one segment of a path')
    }
    return { text, isPlaceholder: true, notes: [] }
  }
  const given = await readToken(io, tokenFile)
  if (given === undefined) {
    throw refusal(
      `the config has only the hash of the token of ${cluster.name}: give the token with --token-file FILE (- for standard input) or in ${TOKEN_VARIABLE}, or write the URLs with --token-placeholder. \`countersign tokens rotate\` makes another one`,
    )
  }
  const place = cluster.tokens.indexOf(await hashOf(given))
  if (place < 0) {
    throw refusal(
      `the token is none of the ${cluster.tokens.length} of cluster ${cluster.name}: it was revoked, it is one of another cluster, or the config is not the one it was made with`,
    )
  }
  if (!TOKEN_TEXT.test(given)) {
    throw refusal(
      `the token of cluster ${cluster.name} is not one segment of a URL (letters, digits and - _ ~ . between them), so that no webhook can show it: \`countersign tokens rotate\` makes one that is`,
    )
  }
  const isOlder = cluster.tokens.length > 1 && place === 0
  const note = `the token is the older one of ${cluster.name}: \`tokens revoke\` ends it`
  return { text: given, isPlaceholder: false, notes: isOlder ? [note] : [] }
}

/** The token of a file, of standard input (`-`) or of the environment; undefined when it is given nowhere. */
export async function readToken(io: Io, file: string | undefined): Promise<string | undefined> {
  if (file === '-') return (await readInput(io)).trim()
  if (file !== undefined) {
    return (await readText(file, 'CONFIG_INVALID', MAX_TOKEN_INPUT_BYTES)).text.trim()
  }
  const fromEnvironment = io.env[TOKEN_VARIABLE]?.trim()
  return fromEnvironment === '' ? undefined : fromEnvironment
}

async function readInput({ input }: Io): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of input) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_TOKEN_INPUT_BYTES)
      throw refusal('standard input is no token: it is too long')
  }
  return text + decoder.decode()
}

function refusal(message: string): AdmissionError {
  return new AdmissionError('CONFIG_INVALID', message)
}
