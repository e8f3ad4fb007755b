import type { Attribute } from './attribute.ts'
import type { Planned } from './planned.ts'
import { TypeValue } from './values.ts'

/** Names that stand for types when no variable has them. */
const TYPE_NAMES = new Map<string, TypeValue>(
  (
    'bool bytes double int list map null_type string type uint optional_type ' +
    'google.protobuf.Timestamp google.protobuf.Duration net.IP net.CIDR'
  )
    .split(' ')
    .map((name) => [name, new TypeValue(name)]),
)

/** A name the checker has resolved: a variable, or a type as a constant. A leading dot says that it is no local one. */
export function checkedName(spelled: string): Planned {
  const name = spelled.startsWith('.') ? spelled.slice(1) : spelled
  const type = TYPE_NAMES.get(name)
  if (type !== undefined) return { kind: 'const', value: type }
  return { kind: 'attribute', attribute: { root: { kind: 'name', name }, qualifiers: [] } }
}

/** A name of an unchecked tree: a variable or type, within the container or without it, that selections may lengthen. */
export function uncheckedName(container: string, spelled: string): Planned {
  const absolute = spelled.startsWith('.')
  const parts = absolute || container === '' ? [] : container.split('.')
  const names = parts.map((_, i) => [...parts.slice(0, parts.length - i), spelled].join('.'))
  const root: Attribute['root'] = {
    kind: 'candidates',
    names: [...names, absolute ? spelled.slice(1) : spelled],
    types: TYPE_NAMES,
  }
  return { kind: 'attribute', attribute: { root, qualifiers: [] } }
}
