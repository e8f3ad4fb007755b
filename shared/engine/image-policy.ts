import { createIsolate, type EngineOptions } from './isolate.ts'
import { createMutate } from './mutate.ts'
import type { ImagePolicyEngine } from './types.ts'
import { createValidate } from './validate.ts'

/** What an engine is made of. */
export type { EngineOptions } from './isolate.ts'

/** Both flows of image policies over one isolate. A function that serves one phase only takes `createMutate` or `createValidate`. */
export function createImagePolicyEngine(options: EngineOptions): ImagePolicyEngine {
  const isolate = createIsolate(options)
  return { mutate: createMutate(isolate), validate: createValidate(isolate) }
}
