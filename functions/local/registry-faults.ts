/** What an embedded registry can be told to do wrong. */
export type RegistryFault =
  /** The connection is cut without an answer. */
  | { kind: 'down' }
  /** The request is read and never answered. */
  | { kind: 'stall' }
  /** The right answer, a byte every `everyMs`. */
  | { kind: 'slow'; everyMs: number }
  /** A body that never ends. */
  | { kind: 'endless' }
  /** Some other content under the digest or tag asked for. */
  | { kind: 'wrong-bytes' }
  /** `302` to a fixed URL. */
  | { kind: 'redirect'; to: string }
  /** `302` to the same server, for ever. */
  | { kind: 'redirect-loop' }
  /** A content length of so many bytes, and then nothing. */
  | { kind: 'content-length'; bytes: number }
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string }
  /** The right content under another content type. */
  | { kind: 'media-type'; mediaType: string }
  /** A tag that means the next of these digests each time it is asked for, the last one from then on. */
  | { kind: 'moving-tag'; digests: readonly string[] }

/** Where and how often a fault strikes: every request until removed, unless said otherwise. */
export interface FaultScope {
  /** Tested against `GET /v2/app/manifests/latest`, `GET /token`. */
  on?: RegExp
  times?: number
}

/** The faults of one registry, switched on and off while it runs. */
export class RegistryFaults {
  readonly #rules: {
    fault: RegistryFault
    on: RegExp | undefined
    left: number
    struck: number
  }[] = []

  /** Adds a fault and returns what removes it. Of several that match, the one added first strikes. */
  add(fault: RegistryFault, scope: FaultScope = {}): () => void {
    const rule = { fault, on: scope.on, left: scope.times ?? Number.POSITIVE_INFINITY, struck: 0 }
    this.#rules.push(rule)
    return () => {
      rule.left = 0
    }
  }

  clear(): void {
    this.#rules.length = 0
  }

  /** The fault that strikes this request, counted; or undefined. */
  strike(request: string): RegistryFault | undefined {
    const rule = this.#rules.find(
      ({ on, left }) => left > 0 && (on === undefined || on.test(request)),
    )
    if (rule === undefined) return undefined
    rule.left--
    const { fault } = rule
    const passed = rule.struck++
    if (fault.kind !== 'moving-tag') return fault
    // Its first digest is the one for this request.
    return { ...fault, digests: fault.digests.slice(Math.min(passed, fault.digests.length - 1)) }
  }
}
