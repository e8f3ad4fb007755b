// What is wrong with the parameters, everything at once, before anything is packaged: a slip in one would leave a permission or a door out
// without a word, or fail halfway through a deployment. And what follows from them.

const { bundleFaults } = require('./bundles.cjs')
const { variableFaults } = require('./variables.cjs')

const ANSWERS = {
  frontDoor: ['http-api', 'function-url'],
  imageReview: ['none', 'function'],
  sealingKey: ['kms', 'none'],
  signingKeys: ['kms', 'none'],
  verifyRemotely: ['true', 'false'],
  registries: ['amazon', 'none'],
  policyBundle: ['s3', 'url', 'none'],
  policyKey: ['kms', 'none'],
  tracing: ['PassThrough', 'Active'],
}
/** Of a function that is never to run, the API server would get no answer, and webhooks that fail open would admit everything. */
const LEAST = {
  mutateConcurrency: 1,
  validateConcurrency: 1,
  imageReviewConcurrency: 1,
  provisioned: 0,
  throttleRate: 1,
  throttleBurst: 1,
}
const ARNS = {
  signingKeyArns: 'kms',
  ecrRepositoryArns: 'ecr',
  eventBusArn: 'events',
  policyBundleArn: 's3',
  policyKeyArn: 'kms',
}

/** Seconds; the default of policyBundle.maxAgeSeconds. */
const DEFAULT_MAX_AGE = 3600

function faultsOf(given, { endpoint, clusters, policyBundle, outcomes }) {
  const faults = []
  for (const [name, answers] of Object.entries(ANSWERS)) {
    if (!answers.includes(given[name])) faults.push(`${name}: expected ${answers.join(' or ')}`)
  }
  for (const [name, least] of Object.entries(LEAST)) {
    if (!/^[0-9]+$/.test(given[name]) || Number(given[name]) < least) {
      faults.push(`${name}: expected a number from ${least} on`)
    }
  }
  const concurrencies = ['mutateConcurrency', 'validateConcurrency']
  if (given.imageReview === 'function') concurrencies.push('imageReviewConcurrency')
  for (const name of concurrencies) {
    if (Number(given.provisioned) > Number(given[name])) {
      faults.push(`provisioned: expected no more than ${name}, which it counts against`)
    }
  }
  for (const [name, service] of Object.entries(ARNS)) {
    // What the stack wrote is known when CloudFormation reads it.
    if (given[name] === '' || given[name].startsWith('{{resolve:')) continue
    const wrong = given[name].split(',').filter((arn) => !isArn(arn, service))
    if (wrong.length > 0) faults.push(`${name}: expected ARNs of ${service}, with commas between`)
  }
  if (given.registries === 'amazon' && given.ecrRepositoryArns === '') {
    faults.push('ecrRepositoryArns: expected the repositories that registries: amazon reads')
  }
  if (given.sealingKey === 'kms' && outcomes?.key?.secrets !== undefined) {
    faults.push('sealingKey: expected none, since outcomes.key of the config is secrets')
  }
  faults.push(...bundleFaults(given, clusters), ...policyFaults(given, policyBundle))
  if (given.frontDoor === 'http-api') faults.push(...domainFaults(given, endpoint))
  return faults
}

/** Functions look for bundles where the config says, whatever their roles let them read. */
function policyFaults(given, policyBundle) {
  if (policyBundle?.r2 !== undefined) {
    return ['policyBundle of the config: r2 is for Workers, and no function here can read it']
  }
  const wanted = {
    policyBundle: policyBundle === null ? 'none' : policyBundle.s3 === undefined ? 'url' : 's3',
    policyKey: policyBundle?.key?.kms === undefined ? 'none' : 'kms',
  }
  return Object.entries(wanted)
    .filter(([name, answer]) => ANSWERS[name].includes(given[name]) && given[name] !== answer)
    .map(([name, answer]) => `${name}: expected ${answer}, by policyBundle of the config`)
}

/** IAM follows no alias of a key, and one that is named would be a key that nobody may read. */
function isArn(text, service) {
  return text.startsWith('arn:') && text.split(':')[2] === service && !text.includes(':alias/')
}

function domainFaults({ mtlsDomain }, endpoint) {
  // A URL for each function is told of by domain.cjs.
  if (typeof endpoint !== 'string') return []
  const host = /^https:\/\/([a-z0-9.-]+)\/?$/i.exec(endpoint)?.[1]
  if (host === undefined) {
    return ['endpoint of the config: expected https://host, which the API has a domain for']
  }
  return host === mtlsDomain
    ? ['mtlsDomain: expected another domain than that of the endpoint, which asks for none']
    : []
}

/** Calls in a minute at which four fifths of what the API lets through are used up. */
function busyMinute({ throttleRate }) {
  return Math.floor(Number(throttleRate) * 60 * 0.8)
}

module.exports = async ({ resolveVariable }) => {
  const names = new Set(
    [ANSWERS, LEAST, ARNS].flatMap((each) => Object.keys(each)).concat('mtlsDomain', 'bundles'),
  )
  const given = {}
  for (const name of names) given[name] = String(await resolveVariable(`param:${name}`))
  const config = await resolveVariable('param:config')
  const part = (name) => resolveVariable(`file(${config}):${name}, null`)
  const [endpoint, clusters] = [await part('endpoint'), (await part('clusters')) ?? []]
  const policyBundle = (await part('policyBundle')) ?? null
  const outcomes = await part('outcomes')
  const faults = faultsOf(given, { endpoint, clusters, policyBundle, outcomes })
  const environment = (await resolveVariable('self:provider.environment, null')) ?? {}
  faults.push(...variableFaults(await resolveVariable(`file(${config})`), environment))
  if (faults.length === 0) {
    const policyMaxAge = policyBundle?.maxAgeSeconds ?? DEFAULT_MAX_AGE
    return { busyMinute: busyMinute(given), policyMaxAge }
  }
  const error = new Error(`parameters:\n  ${faults.join('\n  ')}`)
  // osls prints it, and where this file stands helps nobody.
  error.stack = `${error.name}: ${error.message}`
  throw error
}
