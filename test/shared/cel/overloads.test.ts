import { describe, expect, test } from 'vitest'
import { BINARY, UNARY } from '#shared/cel/call.ts'
import { createEnvironment } from '#shared/cel/environment.ts'
import type { Library } from '#shared/cel/implementation.ts'
import { kubernetesLibrary, kyvernoLibrary, specLibrary } from '#shared/cel/libraries.ts'
import { NEWEST_MINOR, OLDEST_MINOR } from '#shared/cel/profiles.ts'
import type { Profile } from '#shared/cel/types.ts'

/** Both sides of the checker: what it lets through must have something that runs, and what runs must be reachable. */

const LIBRARIES: Readonly<Record<Profile, Library>> = {
  kubernetes: kubernetesLibrary,
  kyverno: kyvernoLibrary,
  spec: specLibrary,
}

/** Functions the planner has steps of its own for, whatever the overload. */
const PLANNED: ReadonlySet<string> = new Set([
  ...Object.keys(UNARY),
  ...Object.keys(BINARY),
  ...['_?_:_', '_&&_', '_||_', '@not_strictly_false', '_==_', '_!=_'],
  ...['_[_]', '_?._', '_[?_]', 'or', 'orValue'],
])

/** Implementations that only other profiles, or no profile, may call; they are shared. */
const ELSEWHERE: Readonly<Record<Profile, readonly string[]>> = {
  kubernetes: ['string_reverse', 'cidr_is_mask'],
  kyverno: ['string_reverse', 'cidr_is_mask'],
  spec: [
    'regex_extract_string_string',
    'regex_extractAll_string_string',
    'regex_replaceAll_string_string_string',
    'regex_replaceCount_string_string_string_int',
  ],
}

interface Declared {
  name: string
  arity: number
}

function declaredIn(profile: Profile, minor?: number): ReadonlyMap<string, Declared> {
  const environment = createEnvironment({
    profile,
    variables: {},
    patchTypes: profile !== 'spec',
    ...(minor === undefined ? {} : { minor }),
  })
  const found = new Map<string, Declared>()
  for (const { name, overloads } of environment.declarations())
    for (const { id, args } of overloads) found.set(id, { name, arity: args.length })
  return found
}

describe.each<Profile>(['kubernetes', 'kyverno', 'spec'])('in the %s profile', (profile) => {
  const declared = declaredIn(profile)
  const library = LIBRARIES[profile]

  test('every overload that is declared has an implementation', () => {
    const missing = [...declared].filter(
      ([id, { name }]) => !PLANNED.has(name) && !Object.hasOwn(library, id),
    )
    expect(missing).toEqual([])
  })

  test('every implementation is declared, or shared with a profile that declares it', () => {
    const undeclared = Object.keys(library).filter((id) => !declared.has(id))
    expect(undeclared.sort()).toEqual([...ELSEWHERE[profile]].sort())
  })

  test('both sides agree on the name of the function and the number of arguments', () => {
    const differing = Object.entries(library).filter(([id, { fn, args }]) => {
      const declaration = declared.get(id)
      if (declaration === undefined) return false
      return declaration.name !== fn || (args !== undefined && args.length !== declaration.arity)
    })
    expect(differing).toEqual([])
  })
})

test('what a Kubernetes minor declares, the next one declares too', () => {
  let older = declaredIn('kubernetes', OLDEST_MINOR)
  for (let minor = OLDEST_MINOR + 1; minor <= NEWEST_MINOR; minor++) {
    const newer = declaredIn('kubernetes', minor)
    expect([...older.keys()].filter((id) => !newer.has(id))).toEqual([])
    older = newer
  }
})
