import { stdout } from 'node:process'
import { generate, KINDS } from '#test/generator/generate.ts'
import { PROFILES, VARIABLES } from '#test/generator/settings.ts'

/**
 * Prints random expressions for comparison with other implementations: `npm run generate -- PROFILE KIND SEED COUNT`. The first line has
 * the variables, their types and tagged values; every other line one expression with what this implementation makes of it.
 */
function oneOf<T extends string>(names: readonly T[], name: string): T {
  const found = names.find((each) => each === name)
  if (found === undefined) throw new RangeError(`${name} is none of ${names.join(', ')}`)
  return found
}

const [profileName = 'spec', kindName = 'sound', seed = '1', count = '100'] = process.argv.slice(2)
const profile = oneOf(PROFILES, profileName)
const kind = oneOf(KINDS, kindName)

stdout.write(`${JSON.stringify({ profile, kind, seed, variables: VARIABLES })}\n`)
for await (const each of generate(profile, kind, Number(seed), Number(count))) {
  stdout.write(`${JSON.stringify(each)}\n`)
}
