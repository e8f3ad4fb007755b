import { toLambdaHandler } from './lambda.ts'
import { deployment, platform } from './lambda-platform.ts'
import { createMutateApp } from './mutate.ts'

/** `index.handler` of the mutate function. */
export const handler = toLambdaHandler(createMutateApp(deployment, platform))
