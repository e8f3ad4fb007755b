/** What to do with the key instead of naming it by this scheme. */
const REFUSALS: Readonly<Record<string, string>> = {
  gcpkms: 'keys in Google Cloud KMS are not supported yet',
  azurekms: 'keys in Azure Key Vault are not supported yet',
  k8s: 'keys in Kubernetes Secrets are not read, functions have no access to the cluster',
  gitlab: 'keys in variables of a GitLab project are not read',
  pkcs11: 'no function can reach a hardware token',
  http: 'keys are not downloaded, whoever serves them could change them',
  https: 'keys are not downloaded, whoever serves them could change them',
  file: 'functions read no files',
  env: 'functions take no keys from their environment',
}

const ADVICE = 'put the public key into cosign.key.data as PEM'

/** Why references of a scheme are refused and what to do instead, or undefined when the scheme is unknown or supported. */
export function schemeRefusal(scheme: string): string | undefined {
  const name = scheme.toLowerCase()
  return Object.hasOwn(REFUSALS, name) ? `${REFUSALS[name]}; ${ADVICE}` : undefined
}

/** The same for text that is no reference but the path of a file. */
export function pathRefusal(text: string): string | undefined {
  const isPath = /^(?:\.{0,2}\/|~\/|[A-Za-z]:[\\/])|\.(?:pub|pem|key|crt|der)$/.test(text)
  return isPath ? `it is the path of a file, and ${REFUSALS.file}; ${ADVICE}` : undefined
}
