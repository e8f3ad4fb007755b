import http from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { App, Transport } from '#functions/app.ts'
import { startNodeServer } from '#functions/node.ts'

/** An app that answers with the address it was told. */
const echo = {
  fetch: async (_: Request, { address, body, remainingMs }: Transport) =>
    Response.json({
      address,
      adapterHasBody: body !== undefined,
      hasClock: remainingMs !== undefined,
    }),
} as unknown as App

function get(port: number, headers: Record<string, string> = {}) {
  return new Promise<{ headers: http.IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const agent = new http.Agent({ keepAlive: true })
    http
      .get({ host: '127.0.0.1', port, headers, agent }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ headers: response.headers, text }))
      })
      .on('error', reject)
  })
}

describe('startNodeServer', () => {
  test('tells the app the address of the socket, whatever headers claim', async () => {
    const server = await startNodeServer({ app: echo, host: '127.0.0.1' })
    const { text } = await get(server.port, { 'x-forwarded-for': '203.0.113.7' })
    expect(JSON.parse(text)).toEqual({
      address: '127.0.0.1',
      adapterHasBody: false,
      hasClock: false,
    })
    await server.close()
  })

  test('keeps connections longer than the 90 seconds Go keeps them', async () => {
    const server = await startNodeServer({ app: echo, host: '127.0.0.1' })
    const { headers } = await get(server.port)
    expect(Number(/timeout=(\d+)/.exec(String(headers['keep-alive']))?.[1])).toBeGreaterThan(90)
    await server.close()
  })

  test('closes although clients keep idle connections', async () => {
    const server = await startNodeServer({ app: echo, host: '127.0.0.1' })
    await get(server.port)
    const socket = connect(server.port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const ended = new Promise((resolve) => socket.once('close', resolve))
    await server.close()
    await ended
  })

  test('waits for an answer under way when it closes', async () => {
    let finish = () => {}
    const slow = {
      fetch: () =>
        new Promise<Response>((resolve) => {
          finish = () => resolve(new Response('late'))
          started()
        }),
    } as unknown as App
    let started = () => {}
    const isUnderWay = new Promise<void>((resolve) => {
      started = resolve
    })
    const server = await startNodeServer({ app: slow, host: '127.0.0.1' })
    const answer = get(server.port)
    await isUnderWay
    const closed = server.close()
    finish()
    expect((await answer).text).toBe('late')
    await closed
  })

  test('rejects when its port is taken', async () => {
    const server = await startNodeServer({ app: echo, host: '127.0.0.1' })
    const second = startNodeServer({ app: echo, host: '127.0.0.1', port: server.port })
    await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await server.close()
  })
})
