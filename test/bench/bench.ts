import { admissionRows } from './admission.ts'
import { print } from './measure.ts'

// Speed as ratios to a baseline of the same run; absolute figures depend on the machine and on what else it does.
console.log(`Node ${process.versions.node}`)
print('Admission, CPU for one review', await admissionRows())
