import { createEnvironment } from '#shared/cel/environment.ts'
import type { Activation } from '#shared/cel/frame.ts'
import type { Library } from '#shared/cel/implementation.ts'
import { kubernetesLibrary, kyvernoLibrary, specLibrary } from '#shared/cel/libraries.ts'
import { loadRegex } from '#shared/cel/regex.ts'
import { fromTagged, type TaggedValue } from '#shared/cel/tagged.ts'
import type { Profile, TypeName } from '#shared/cel/types.ts'
import type { Setting } from '#test/generator/invariants.ts'

/** Variables with their types and values. */
export const VARIABLES: Readonly<Record<string, { type: TypeName; value: TaggedValue }>> = {
  b: { type: 'bool', value: { bool: true } },
  i: { type: 'int', value: { int: '7' } },
  u: { type: 'uint', value: { uint: '3' } },
  d: { type: 'double', value: { double: '2.5' } },
  s: { type: 'string', value: { string: 'aä😀' } },
  y: { type: 'bytes', value: { bytes: 'AP8=' } },
  is: { type: 'list(int)', value: { list: [{ int: '3' }, { int: '1' }, { int: '2' }] } },
  ss: { type: 'list(string)', value: { list: [{ string: 'b' }, { string: 'a' }] } },
  si: { type: 'map(string, int)', value: { map: [[{ string: 'a' }, { int: '1' }]] } },
  object: {
    type: 'dyn',
    value: {
      map: [
        [{ string: 'a' }, { map: [[{ string: 'name' }, { string: 'x' }]] }],
        [{ string: 'spec' }, { map: [[{ string: 'containers' }, { list: [{ int: '1' }] }]] }],
        [{ string: 'labels' }, { list: [{ string: 'l' }, { null: true }] }],
      ],
    },
  },
}

const LIBRARIES: Readonly<Record<Profile, Library>> = {
  kubernetes: kubernetesLibrary,
  kyverno: kyvernoLibrary,
  spec: specLibrary,
}

export const PROFILES: readonly Profile[] = ['kubernetes', 'kyverno', 'spec']

/** A profile with `VARIABLES`. */
export async function settingOf(profile: Profile): Promise<Setting> {
  const regex = await loadRegex()
  const entries = Object.entries(VARIABLES)
  const variables = Object.fromEntries(entries.map(([name, { type }]) => [name, type]))
  const activation: Activation = Object.fromEntries(
    entries.map(([name, { value }]) => [name, fromTagged(value)]),
  )
  const environment = createEnvironment({ profile, variables, regex })
  return { profile, environment, implementations: LIBRARIES[profile], regex, activation }
}
