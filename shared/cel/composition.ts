import { compile } from './compile.ts'
import type { ObjectTypes } from './declare/admission.ts'
import type { Environment } from './environment.ts'
import { printType, type Type } from './type.ts'
import type { CompileResult, TypeName } from './types.ts'

/** Variables of a policy, compiled in order, and the environment in which expressions see all of them. */
export interface Composition {
  variables: readonly { name: string; result: CompileResult }[]
  environment: Environment
}

/**
 * Compiles the variables of a policy in the order they are listed: each sees those before it as `variables.<name>`, by the
 * type the API server gives it. One that does not compile is `dyn` to the others (kubernetes-admission.md 5.5).
 */
export function compose(
  environment: Environment,
  variables: readonly { name: string; expression: string }[],
  typeName: TypeName = 'kubernetes.variables',
): Composition {
  const fields: Record<string, TypeName> = {}
  const compiled: { name: string; result: CompileResult }[] = []
  const extended = () => {
    const objectTypes: ObjectTypes = { [typeName]: { ...fields } }
    return environment.extend({ variables: typeName }, objectTypes)
  }
  let visible = extended()
  for (const { name, expression } of variables) {
    const result = compile(expression, visible)
    compiled.push({ name, result })
    fields[name] = result.ok ? declaredType(visible.type(result.checked.type)) : 'dyn'
    visible = extended()
  }
  return { variables: compiled, environment: visible }
}

const DECLARABLE: ReadonlySet<Type['kind']> = new Set<Type['kind']>([
  'any',
  'bool',
  'bytes',
  'double',
  'duration',
  'int',
  'null',
  'string',
  'timestamp',
  'uint',
])

/** The type of a variable as its field declares it: scalars, lists and maps stay, everything else is `dyn`. */
function declaredType(type: Type): TypeName {
  if (DECLARABLE.has(type.kind)) return printType(type)
  const params = type.params.map(declaredType).join(', ')
  return type.kind === 'list' || type.kind === 'map' ? `${type.kind}(${params})` : 'dyn'
}
