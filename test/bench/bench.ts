import { admissionRows } from './admission.ts'
import { celReport, printCel } from './cel.ts'
import { growthFault, growthRows } from './growth.ts'
import { print } from './measure.ts'
import { printRegex, regexReport } from './regex.ts'
import { signatureFault, signatureRows } from './signature.ts'

// Speed as ratios within one run; absolute figures depend on the machine and on what else it does. Exit 1 when a target is missed.
console.log(`Node ${process.versions.node}`)
print('Admission, CPU for one review', await admissionRows())
const growth = await growthRows()
print('Admission by policies and containers, CPU for one sealed review', growth)
const signatures = await signatureRows()
print('Signatures, CPU for one', signatures)
for (const fault of [growthFault(growth), signatureFault(signatures)]) {
  if (fault === undefined) continue
  console.log(`  missed: ${fault}`)
  process.exitCode = 1
}
if (!printCel(await celReport())) process.exitCode = 1
if (!printRegex(regexReport())) process.exitCode = 1
