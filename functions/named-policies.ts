/**
 * The policy names of `/v1/<cluster>/<token>/<scope>/<phase>/<policy>…`; empty segments are none (`specs/image-validating-policy.md` 6). A
 * path without any name means every policy; upstream, a slash at its end would mean none of them and admit everything.
 */
export function namedPolicies(path: string): string[] {
  return path
    .split('/')
    .slice(6)
    .filter((segment) => segment !== '')
    .map(decoded)
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    // No policy is named like this, so it is reported as not loaded.
    return segment
  }
}
