import { afterEach, describe, expect, test, vi } from 'vitest'
import { defaultAwsCredentials } from '#functions/kms.ts'

afterEach(() => vi.unstubAllEnvs())

describe('the AWS credentials of this machine', () => {
  test('are what the chain of the SDK finds', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDEXAMPLE')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret')
    vi.stubEnv('AWS_SESSION_TOKEN', 'session')
    expect(await defaultAwsCredentials()).toEqual({
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'secret',
      sessionToken: 'session',
    })
  })

  test('are a fault where there are none', async () => {
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_PROFILE']) {
      vi.stubEnv(name, '')
    }
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
    vi.stubEnv('AWS_CONFIG_FILE', '/nowhere/config')
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nowhere/credentials')
    await expect(defaultAwsCredentials()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})
