/** Whether a value is what a member of a bundle has to be. */
export type Check = (value: unknown) => boolean

/** True of these words. */
export const among =
  (...words: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && words.includes(value)

/** True of what has members by name. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
