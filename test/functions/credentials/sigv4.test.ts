import { describe, expect, test } from 'vitest'
import { signed } from '#functions/credentials/sigv4.ts'
import { nodeHash } from '#functions/hash-node.ts'
import { portableHash } from '#functions/hash-portable.ts'

const keys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const request = {
  host: 'example.amazonaws.com',
  region: 'us-east-1',
  service: 'service',
  headers: {},
  body: '',
}
const now = Date.parse('2015-08-30T12:36:00.789Z')

describe('Signature Version 4', () => {
  // `post-vanilla` of the test suite that AWS published for it.
  test.each([
    ['Node', nodeHash],
    ['JavaScript', portableHash],
  ])('is that of AWS with the hashes of %s', (_, hash) => {
    expect(signed(request, keys, hash, now)).toEqual({
      'x-amz-date': '20150830T123600Z',
      authorization:
        'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    })
  })

  test.each([
    { name: 'host', change: { host: 'example.amazonaws.com.evil.example' } },
    { name: 'region', change: { region: 'eu-central-1' } },
    { name: 'service', change: { service: 'ecr' } },
    { name: 'a header', change: { headers: { 'x-amz-target': 'A.B' } } },
    { name: 'body', change: { body: '{}' } },
  ])('is another for another $name', ({ change }) => {
    const signature = (more: object) =>
      signed({ ...request, ...more }, keys, nodeHash, now).authorization?.slice(-64)
    expect(signature(change)).not.toBe(signature({}))
  })

  test('covers the session and every header given', () => {
    const headers = { 'x-amz-target': 'A.B', 'content-type': 'text/plain' }
    const all = signed({ ...request, headers }, { ...keys, sessionToken: 't' }, nodeHash, now)
    expect(all).toMatchObject({ ...headers, 'x-amz-security-token': 't' })
    expect(all.authorization).toContain(
      'SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,',
    )
  })
})
