import { toLambdaHandler } from './lambda.ts'
import { deployment, platform } from './lambda-platform.ts'
import { createValidateApp } from './validate.ts'

/** `index.handler` of the validate function. */
export const handler = toLambdaHandler(createValidateApp(deployment, platform))
