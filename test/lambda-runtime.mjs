// What AWS runs around a function: asks the Runtime API for the next event, calls the handler, reports what came of it. Plain JavaScript,
// because it runs on whichever Node the emulator was given, against a bundle as it would be deployed.
const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime`

async function report(path, error) {
  const body = { errorType: error?.name ?? 'Error', errorMessage: String(error?.message ?? error) }
  await fetch(`${api}/${path}`, { method: 'POST', body: JSON.stringify(body) })
}

async function load() {
  try {
    const { handler } = await import(process.env.ENTRY)
    if (typeof handler !== 'function') throw new TypeError('the bundle exports no handler')
    return handler
  } catch (error) {
    await report('init/error', error)
    process.exit(1)
  }
}

const handler = await load()
for (;;) {
  const next = await fetch(`${api}/invocation/next`)
  const id = next.headers.get('lambda-runtime-aws-request-id')
  const deadline = Number(next.headers.get('lambda-runtime-deadline-ms'))
  const event = await next.json()
  const context = {
    awsRequestId: id,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  }
  try {
    const result = await handler(event, context)
    await fetch(`${api}/invocation/${id}/response`, {
      method: 'POST',
      body: JSON.stringify(result),
    })
  } catch (error) {
    await report(`invocation/${id}/error`, error)
  }
}
