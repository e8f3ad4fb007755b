import { attestorSources } from './attestor-expressions.ts'
import { isRecord, own, type Path } from './shape.ts'

/** What an expression is for: decides its environment and the types it may have. */
export type ExpressionRole =
  | 'matchCondition'
  | 'imageReference'
  | 'image'
  | 'variable'
  | 'attestor'
  | 'validation'
  | 'message'
  | 'auditAnnotation'

/** One expression of a spec and where it stands. */
export interface SourceExpression {
  role: ExpressionRole
  path: Path
  source: string
  /** Name of the variable, for a variable. */
  name?: string
}

/** Role, list of the spec, and field of its items; in the order in which Kyverno compiles (image-validating-policy.md 2.2). */
const PLACES: readonly [ExpressionRole, string, string?][] = [
  ['matchCondition', 'matchConditions', 'expression'],
  ['imageReference', 'matchImageReferences', 'expression'],
  ['image', 'images', 'expression'],
  ['variable', 'variables', 'expression'],
  // Deeper in their items than one field.
  ['attestor', 'attestors'],
  ['validation', 'validations', 'expression'],
  ['message', 'validations', 'messageExpression'],
  ['auditAnnotation', 'auditAnnotations', 'valueExpression'],
]

/**
 * Every expression of a spec, in compile order. Looks at the document as it stands, whatever else is wrong with it, so that a
 * misspelt field does not hide a misspelt expression.
 */
export function expressionsOf(spec: unknown, path: Path): SourceExpression[] {
  if (!isRecord(spec)) return []
  return PLACES.flatMap(([role, list, field]) => {
    const items = own(spec, list)
    if (!Array.isArray(items)) return []
    return items.flatMap((item, index): SourceExpression[] => {
      if (field === undefined) {
        return attestorSources(item).map(({ path: below, source }) => {
          return { role, path: [...path, list, index, ...below], source }
        })
      }
      const source = isRecord(item) ? own(item, field) : undefined
      if (typeof source !== 'string' || source.trim() === '') return []
      const name = own(item, 'name')
      return [
        {
          role,
          path: [...path, list, index, field],
          source,
          ...(role === 'variable' && typeof name === 'string' ? { name } : {}),
        },
      ]
    })
  })
}
