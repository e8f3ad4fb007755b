import type { Library } from './implementation.ts'
import { conversions } from './library/conversions.ts'
import { plainLibrary } from './plain-library.ts'

/** What every environment has. */
export const standardLibrary: Library = { ...plainLibrary, ...conversions }
