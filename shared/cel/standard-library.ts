import type { Library } from './implementation.ts'
import { mapInsert } from './library/maps.ts'
import { optionals } from './library/optionals.ts'
import { conversions, members } from './library/std.ts'

/** What every environment has, and what many policies get by with. */
export const standardLibrary: Library = { ...conversions, ...members, ...optionals, ...mapInsert }
