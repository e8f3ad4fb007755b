import { createMutate } from '#shared/engine/mutate.ts'
import { createValidate } from '#shared/engine/validate.ts'
import type { Flows } from './compose.ts'

/** Both phases, for apps that answer for both. */
export const BOTH_FLOWS: Flows = { mutate: createMutate, validate: createValidate }
