import type { Library } from './implementation.ts'
import { mapInsert } from './library/maps.ts'
import { optionals } from './library/optionals.ts'
import { members, plainConversions } from './library/std.ts'

/** What many policies get by with. */
export const plainLibrary: Library = {
  ...plainConversions,
  ...members,
  ...optionals,
  ...mapInsert,
}
