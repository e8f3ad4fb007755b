import type { Library } from './implementation.ts'
import { kubernetesLists, listExtension } from './library/lists.ts'
import { mapInsert } from './library/maps.ts'
import { optionals } from './library/optionals.ts'
import { sets } from './library/sets.ts'
import { conversions, members } from './library/std.ts'
import { strings } from './library/strings.ts'

/** What every environment has. */
export const standardLibrary: Library = { ...conversions, ...members, ...optionals, ...mapInsert }

/** Everything the API server's environment may call. */
export const kubernetesLibrary: Library = {
  ...standardLibrary,
  ...strings,
  ...kubernetesLists,
  ...listExtension,
  ...sets,
}

/** Everything a Kyverno image policy may call, besides its host functions. */
export const kyvernoLibrary: Library = { ...kubernetesLibrary }

/** cel-go's own libraries, for its specification. */
export const specLibrary: Library = { ...standardLibrary, ...strings, ...listExtension, ...sets }
