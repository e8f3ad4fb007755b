import type { Library } from './implementation.ts'
import { kubernetesLists, listExtension } from './library/lists.ts'
import { sets } from './library/sets.ts'
import { strings } from './library/strings.ts'
import { standardLibrary } from './standard-library.ts'

/** What most policies get by with that call more than `plainLibrary` has; functions load `kyverno-library.ts` only for those that need it. */
export const coreLibrary: Library = {
  ...standardLibrary,
  ...strings,
  ...kubernetesLists,
  ...listExtension,
  ...sets,
}
