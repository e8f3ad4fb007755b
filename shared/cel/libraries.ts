import type { Library } from './implementation.ts'
import { cidrs } from './library/cidr.ts'
import { encoders } from './library/encoders.ts'
import { specFormats } from './library/format-spec.ts'
import { ips } from './library/ip.ts'
import { listExtension } from './library/lists.ts'
import { math } from './library/math.ts'
import { regexExtension } from './library/regexes.ts'
import { sets } from './library/sets.ts'
import { strings } from './library/strings.ts'
import { standardLibrary } from './standard-library.ts'

export { kubernetesLibrary, kyvernoLibrary } from './kyverno-library.ts'

/** cel-go's own libraries, for its specification. */
export const specLibrary: Library = {
  ...standardLibrary,
  ...strings,
  ...specFormats,
  ...listExtension,
  ...sets,
  ...regexExtension,
  ...math,
  ...encoders,
  ...ips,
  ...cidrs,
}
