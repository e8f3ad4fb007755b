// The variables that a config names, and those that functions would not have: nothing notices before their first review, which is then denied.

/** Names and the places in the config that name them, each name once. A key that is `env` or ends in `Env` names one. */
function named(value, path = '') {
  if (typeof value !== 'object' || value === null) return new Map()
  const found = new Map()
  for (const [key, member] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    const below =
      /^env$|Env$/.test(key) && typeof member === 'string' ? [[member, at]] : named(member, at)
    for (const [name, place] of below) if (!found.has(name)) found.set(name, place)
  }
  return found
}

/** Faults of an environment. Bundles may be of some clusters alone, so that what only clusters name is left to whoever deploys. */
function variableFaults({ clusters: _, ...config }, environment) {
  return [...named(config)]
    .filter(([name]) => !name.startsWith('AWS_') && !Object.hasOwn(environment, name))
    .map(
      ([name, place]) =>
        `${name}: the config names it at ${place}, so it has to be in infra/serverless/environment.yml`,
    )
}

module.exports = { variableFaults }
