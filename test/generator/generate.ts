import type { Profile } from '#shared/cel/types.ts'
import { ExpressionGenerator } from '#test/generator/cel.ts'
import { type Examined, examine } from '#test/generator/invariants.ts'
import { mutate } from '#test/generator/mutate.ts'
import { Random } from '#test/generator/random.ts'
import { settingOf, VARIABLES } from '#test/generator/settings.ts'

/** `sound`: of the wanted type throughout; `flawed`: a part here and there is not; `damaged`: hardly an expression any more. */
export type Kind = 'sound' | 'flawed' | 'damaged'

export const KINDS: readonly Kind[] = ['sound', 'flawed', 'damaged']

const FLAWS: Readonly<Record<Kind, number>> = { sound: 0, flawed: 0.05, damaged: 0 }

/** Random expressions and what became of them: the same for the same seed. */
export async function* generate(
  profile: Profile,
  kind: Kind,
  seed: number,
  count: number,
): AsyncGenerator<Examined> {
  const setting = await settingOf(profile)
  const random = new Random(seed)
  const names = Object.keys(VARIABLES)
  const generator = new ExpressionGenerator(setting.environment, names, random, FLAWS[kind])
  for (let i = 0; i < count; i++) {
    const source = generator.next(1 + random.below(5))
    yield examine(kind === 'damaged' ? mutate(source, random) : source, setting)
  }
}
