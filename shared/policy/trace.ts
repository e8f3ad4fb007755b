/** Images that one review has or has not together: a review of `pods` has those that are to run, one of `pods/ephemeralcontainers` those beside them. */
export type Group = 'workload' | 'ephemeral' | 'either'

/** The groups of the lists of a Pod. */
export const GROUPS: ReadonlyMap<string, Group> = new Map([
  ['containers', 'workload'],
  ['initContainers', 'workload'],
  ['ephemeralContainers', 'ephemeral'],
])

/** What reading a part of an expression went through. */
export class Trace {
  /** Whose images it looks at. */
  readonly groups = new Set<Group>()
  /** Fields that not every Pod has and that are read as if: where they are not there it is an error. */
  readonly absent = new Set<string>()
  /** What it says of the images of several groups does not follow from what it says of those of each. */
  isJoint = false

  get isOfSeveral(): boolean {
    return this.groups.size > 1
  }

  /** Twice those of either may be those of both. */
  read(group: Group): void {
    if (group === 'either' && this.groups.has(group)) this.readAll()
    this.groups.add(group)
  }

  readAll(): void {
    for (const group of GROUPS.values()) this.groups.add(group)
  }

  add({ groups, absent, isJoint }: Trace): void {
    for (const group of groups) this.read(group)
    for (const name of absent) this.absent.add(name)
    this.isJoint ||= isJoint
  }

  /** Where the fields of these names are known to be there. */
  forgive(names: readonly string[]): void {
    for (const name of names) this.absent.delete(name)
  }

  /** Both look at images, and not at those of one group only. */
  isAcross(other: Trace): boolean {
    if (this.groups.size === 0 || other.groups.size === 0) return false
    const all = new Set([...this.groups, ...other.groups])
    return all.size > 1 || all.has('either')
  }
}
