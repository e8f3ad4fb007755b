import type { Library } from './implementation.ts'
import { kubernetesLists, listExtension } from './library/lists.ts'
import { sets } from './library/sets.ts'
import { strings } from './library/strings.ts'
import { standardLibrary } from './standard-library.ts'

/** What nearly every policy gets by with, so that functions load the rest (`libraries.ts`) only for policies that need it. */
export const coreLibrary: Library = {
  ...standardLibrary,
  ...strings,
  ...kubernetesLists,
  ...listExtension,
  ...sets,
}
