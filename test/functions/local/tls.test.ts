import { X509Certificate } from 'node:crypto'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createDevCertificates, type DevCertificates } from '#functions/local/tls.ts'

const hosts = ['localhost', 'webhook.example', '127.0.0.1', '::1']

/** Answers one GET over TLS from a server with these certificates, trusting `ca` and asking for `servername`. */
async function get(server: DevCertificates, ca: string, servername: string): Promise<string> {
  const listener = https.createServer(
    { cert: server.cert, key: server.key },
    (_request, response) => {
      response.end('ok')
    },
  )
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as AddressInfo
  try {
    return await new Promise<string>((resolve, reject) => {
      https
        .get({ host: '127.0.0.1', port, ca, servername, agent: false }, (response) => {
          response.setEncoding('utf8')
          response.on('data', resolve)
        })
        .on('error', reject)
    })
  } finally {
    listener.close()
  }
}

describe('createDevCertificates', () => {
  test('the server certificate names every host and is signed by the CA, which signs nothing but servers', async () => {
    const made = await createDevCertificates({ hosts, now: new Date('2030-05-01T00:00:00Z') })
    const ca = new X509Certificate(made.ca)
    const leaf = new X509Certificate(made.cert)
    expect(leaf.subjectAltName).toBe(
      'DNS:localhost, DNS:webhook.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1',
    )
    expect(leaf.checkHost('webhook.example')).toBe('webhook.example')
    expect(leaf.checkHost('other.example')).toBeUndefined()
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(leaf.verify(ca.publicKey)).toBe(true)
    expect(leaf.checkIssued(ca)).toBe(true)
    expect([ca.ca, leaf.ca]).toEqual([true, false])
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1'])
    expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' })
    expect([new Date(leaf.validFrom).toISOString(), new Date(leaf.validTo).toISOString()]).toEqual([
      '2030-04-30T00:00:00.000Z',
      '2031-05-01T00:00:00.000Z',
    ])
  })

  test.each(['localhost', 'webhook.example'])(
    'a client that trusts the CA connects to %s',
    async (name) => {
      const made = await createDevCertificates({ hosts })
      expect(await get(made, made.ca, name)).toBe('ok')
    },
  )

  test('a client refuses a host that the certificate does not name', async () => {
    const made = await createDevCertificates({ hosts })
    await expect(get(made, made.ca, 'other.example')).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
  })

  test('a client that trusts another CA of the same name refuses the certificate', async () => {
    const [made, other] = await Promise.all([
      createDevCertificates({ hosts }),
      createDevCertificates({ hosts }),
    ])
    await expect(get(made, other.ca, 'localhost')).rejects.toMatchObject({
      code: expect.stringMatching(
        /^(CERT_SIGNATURE_FAILURE|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT_LOCALLY)$/,
      ),
    })
  })

  test('no host is a programmer error', async () => {
    await expect(createDevCertificates({ hosts: [] })).rejects.toThrow(TypeError)
  })
})
