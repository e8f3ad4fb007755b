import { createImageReviewApp } from './image-review.ts'
import { toLambdaHandler } from './lambda.ts'
import { deployment, platform } from './lambda-platform.ts'

/** `index.handler` of the image review function. */
export const handler = toLambdaHandler(createImageReviewApp(deployment, platform))
