/** What file systems say, in words. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of it is a file',
  EISDIR: 'is a folder',
  EEXIST: 'there is a file of this name',
  ENOTEMPTY: 'there is a folder of this name',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long',
  ELOOP: 'its links go in a circle',
  ENOSPC: 'no space is left',
  EDQUOT: 'no space is left',
  EBUSY: 'it is in use',
  EMFILE: 'too many files are open',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
  Z_DATA_ERROR: 'is not compressed, or damaged',
  ERR_INVALID_ARG_VALUE: 'no file can have this name',
}

/** Why a call of the file system failed, without the path, which messages have already; undefined for what is no fault of a file system. */
export function knownFileReason(thrown: unknown): string | undefined {
  const { code } = thrown as { code?: unknown }
  return typeof code === 'string' && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined
}

/** The same, and the message of whatever else it is. */
export function fileReason(thrown: unknown): string {
  const { message } = thrown as { message?: string }
  return knownFileReason(thrown) ?? message ?? String(thrown)
}
