import { kubernetesCosts } from './cost-kubernetes.ts'
import { specCosts } from './cost-spec.ts'
import { type PlanOptions, type PlanResult, planWith } from './planner.ts'
import type { CheckedExpression } from './types.ts'

export type { PlanOptions, PlanResult } from './planner.ts'

/** A program for a checked expression as `planWith` makes them, at the costs of its profile. */
export function plan(checked: CheckedExpression, options: PlanOptions): PlanResult {
  const costs = options.profile === 'spec' ? specCosts : kubernetesCosts
  return planWith(checked, { ...options, costs })
}
