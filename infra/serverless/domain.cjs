// The host of the token-only domain: that of the config's `endpoint`. An API has one domain for all functions, so that an endpoint with a URL
// for each function belongs to the other front door.
module.exports = async ({ resolveVariable }) => {
  const config = await resolveVariable('param:config')
  const endpoint = await resolveVariable(`file(${config}):endpoint`)
  if (typeof endpoint === 'string') return { endpoint }
  const error = new Error(
    `${config}: endpoint has a URL for each function, and --param=frontDoor=http-api has one domain for all of them: give endpoint one URL, or deploy with --param=frontDoor=function-url`,
  )
  // osls prints it, and where this file stands helps nobody.
  error.stack = `${error.name}: ${error.message}`
  throw error
}
