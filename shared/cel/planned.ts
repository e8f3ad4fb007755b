import { type Attribute, resolver, type Step } from './attribute.ts'
import { Frame } from './frame.ts'
import { type CelResult, Optional } from './values.ts'

/** Why no program can be made; thrown while a tree is planned, and caught by `plan`. */
export class PlanFault {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** A planned node: cel-go's distinction between constants, attributes (which selections extend) and the rest. */
export type Planned =
  | { kind: 'const'; value: CelResult }
  | { kind: 'attribute'; attribute: Attribute; test?: true }
  | { kind: 'step'; step: Step }

/** The step that evaluates a planned node as a whole and pays for it; a presence test costs `presenceCost` itself. */
export function stepOf(planned: Planned, presenceCost: 0 | 1): Step {
  if (planned.kind === 'step') return planned.step
  if (planned.kind === 'const') {
    const { value } = planned
    return () => value
  }
  const own = planned.attribute.root.kind === 'conditional' ? 0 : 1
  if (planned.test !== true) return resolver(planned.attribute, own)
  const resolve = resolver(planned.attribute, own - 1 + presenceCost)
  return (frame) => {
    const value = resolve(frame)
    return value instanceof Optional ? value.value !== undefined : value
  }
}

/** What a step without variables gives. */
export function constantOf(step: Step): CelResult {
  return step(new Frame({}, 0, { limit: Number.POSITIVE_INFINITY }))
}
