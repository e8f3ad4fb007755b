import { createMutate } from '#shared/engine/mutate.ts'
import { createValidate } from '#shared/engine/validate.ts'
import type { ImageReviews } from './app.ts'
import type { Flows } from './compose.ts'

/** Both phases and image reviews, for apps that answer for all of them. What reviews images is loaded with the first review. */
export const ALL_FLOWS: Flows = {
  mutate: createMutate,
  validate: createValidate,
  imageReviews: (options) => {
    let reviews: ImageReviews | undefined
    return async () => {
      const { createImageReviews } = await import('./image-review-answer.ts')
      reviews ??= createImageReviews(options)
      return reviews
    }
  },
}
