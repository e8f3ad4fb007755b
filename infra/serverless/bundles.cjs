// Which functions were built, and those that are to be packaged and were not: osls finds no files for them, and says no more than that.
const { existsSync } = require('node:fs')
const path = require('node:path')

const ROOT = path.resolve(__dirname, '../..')

/** Faults of functions by the folder they were built to; `clusters` are those of the config. */
function bundleFaults({ bundles, imageReview }, clusters) {
  const isBuilt = (name) => existsSync(path.resolve(ROOT, bundles, 'lambda', name, 'index.mjs'))
  const isAsked = clusters.some((cluster) => cluster.imageReview)
  if (imageReview === 'function' && !isAsked) {
    return ['imageReview: expected none, since no cluster of the config has imageReview']
  }
  // Bundles may be of other clusters of the config alone: what they answer is what was built.
  if (imageReview === 'none' && isAsked && isBuilt('image-review')) {
    return ['imageReview: expected function, since a cluster of the config has imageReview']
  }
  return ['mutate', 'validate', ...(imageReview === 'function' ? ['image-review'] : [])]
    .filter((name) => !isBuilt(name))
    .map(
      (name) =>
        `bundles: ${bundles}/lambda/${name} is not there: run \`countersign build --out ${bundles}\``,
    )
}

module.exports = { bundleFaults }
