import { equals } from '../equality.ts'
import { type Library, list, overload } from '../implementation.ts'
import type { CelValue } from '../values.ts'

function has(values: CelValue[], wanted: CelValue): boolean {
  return values.some((value) => equals(value, wanted))
}

function contains(values: CelValue[], subset: CelValue[]): boolean {
  return subset.every((value) => has(values, value))
}

/** cel-go's set functions on lists. */
export const sets: Library = {
  list_sets_contains_list: overload('sets.contains', [list, list], contains),
  list_sets_equivalent_list: overload(
    'sets.equivalent',
    [list, list],
    (a, b) => contains(a, b) && contains(b, a),
  ),
  list_sets_intersects_list: overload('sets.intersects', [list, list], (a, b) =>
    b.some((value) => has(a, value)),
  ),
}
