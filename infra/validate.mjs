// Validates CloudFormation templates offline, with the validator that comes with the CDK: `node infra/validate.mjs TEMPLATE.json…`. Prints
// every error and exits with 1 when there is one.
import { createRequire } from 'node:module'
import process from 'node:process'

// It is a part of aws-cdk-lib, so it is found from there.
const fromHere = createRequire(import.meta.url)
const fromCdk = createRequire(fromHere.resolve('aws-cdk-lib/package.json'))
const { CompositeEngine, TemplateFile } = fromCdk('@aws/cloudformation-validate')

const engine = new CompositeEngine()
let failed = false
try {
  for (const file of process.argv.slice(2)) {
    const { diagnostics } = engine.validateTemplate(new TemplateFile(file))
    const serious = diagnostics.filter(
      ({ severity }) => severity === 'FATAL' || severity === 'ERROR',
    )
    for (const { severity, ruleId, entity, propertyPath, message } of serious) {
      const place = [entity?.logicalId, propertyPath].filter((part) => part !== undefined)
      console.log(`${severity} ${ruleId} ${place.join('.')}: ${message}`)
    }
    console.log(`${file}: ${serious.length} errors, ${diagnostics.length - serious.length} notes`)
    failed ||= serious.length > 0
  }
} finally {
  engine.free()
}
process.exitCode = failed ? 1 : 0
