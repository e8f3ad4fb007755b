import type { Library } from './implementation.ts'
import { kubernetesLists, listExtension } from './library/lists.ts'
import { mapInsert } from './library/maps.ts'
import { optionals } from './library/optionals.ts'
import { sets } from './library/sets.ts'
import { conversions, members } from './library/std.ts'
import { strings } from './library/strings.ts'

/** What every environment has. */
export const standardLibrary: Library = { ...conversions, ...members, ...optionals, ...mapInsert }

/** What nearly every policy gets by with, so that functions load the rest (`libraries.ts`) only for policies that need it. */
export const coreLibrary: Library = {
  ...standardLibrary,
  ...strings,
  ...kubernetesLists,
  ...listExtension,
  ...sets,
}
