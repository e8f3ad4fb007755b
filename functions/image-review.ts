import type { App } from './app.ts'
import { compose } from './compose.ts'
import type { Deployment } from './deployment.ts'
import { createImageReviews } from './image-review-answer.ts'
import { createLive } from './live.ts'
import type { Platform } from './ports.ts'

/**
 * The image review function: door → engine → answer, for API servers that ask about images with ImagePolicyWebhook. A review has no seal,
 * so that nearly every call talks to a registry, and that part is loaded with it.
 */
export function createImageReviewApp(deployment: Deployment, platform: Platform): App {
  const imageReviews = (options: Parameters<typeof createImageReviews>[0]) => {
    const reviews = createImageReviews(options)
    return async () => reviews
  }
  return compose(deployment, platform, { imageReviews }, async () => ({ createLive }))
}
