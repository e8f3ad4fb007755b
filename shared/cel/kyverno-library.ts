import { coreLibrary } from './core-library.ts'
import type { Library } from './implementation.ts'
import { authorizers } from './library/authorizer.ts'
import { cidrs } from './library/cidr.ts'
import { encoders } from './library/encoders.ts'
import { formats } from './library/format.ts'
import { ips } from './library/ip.ts'
import { jsonPatches } from './library/jsonpatch.ts'
import { math } from './library/math.ts'
import { namedFormats } from './library/named-formats.ts'
import { quantities } from './library/quantity.ts'
import { kubernetesRegexes, regexExtension } from './library/regexes.ts'
import { semvers } from './library/semver.ts'
import { urls } from './library/url.ts'

/** Everything the API server's environment may call. */
export const kubernetesLibrary: Library = {
  ...coreLibrary,
  ...formats,
  ...kubernetesRegexes,
  ...urls,
  ...ips,
  ...cidrs,
  ...quantities,
  ...semvers,
  ...namedFormats,
  ...authorizers,
  ...jsonPatches,
}

/** Everything a Kyverno image policy may call, besides its host functions. */
export const kyvernoLibrary: Library = {
  ...kubernetesLibrary,
  ...regexExtension,
  ...math,
  ...encoders,
}
