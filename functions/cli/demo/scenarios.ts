import { ATTACKS } from './attacks.ts'
import { EXCEPTIONS } from './exceptions.ts'
import { OUTAGES } from './outages.ts'
import { PROVENANCES } from './provenance.ts'
import { REVIEWS } from './reviews.ts'
import { ROUTINE } from './routine.ts'
import type { Scenario } from './scenario.ts'

/** Every scenario of the demo, in the order they are played. None depends on another. */
export const SCENARIOS: readonly Scenario[] = [
  ...ROUTINE,
  ...PROVENANCES,
  ...EXCEPTIONS,
  ...REVIEWS,
  ...ATTACKS,
  ...OUTAGES,
]
