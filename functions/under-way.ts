import type { ClusterConfig } from './config.ts'

/** A review under way, by nothing but when it is over at the latest, epoch milliseconds. */
interface Review {
  endsAt: number
}

/**
 * Counts the reviews under way of each cluster with a limit, and holds nothing else of any. Where a caller hangs up, a platform may give
 * its request up without a word, so that what has to be over by now is taken for it.
 */
export class UnderWay {
  readonly #reviews = new Map<ClusterConfig, Set<Review>>()

  /** Counts a review; the function it gives ends that. Undefined when there are as many as the cluster's limit allows. */
  enter(cluster: ClusterConfig, now: number, endsAt: number): (() => void) | undefined {
    const most = cluster.limits?.concurrentReviews
    if (most === undefined) return () => undefined
    const reviews = this.#reviews.get(cluster) ?? new Set()
    this.#reviews.set(cluster, reviews)
    if (reviews.size >= most) {
      for (const each of reviews) if (each.endsAt <= now) reviews.delete(each)
    }
    if (reviews.size >= most) return undefined
    const review: Review = { endsAt }
    reviews.add(review)
    return () => void reviews.delete(review)
  }
}
