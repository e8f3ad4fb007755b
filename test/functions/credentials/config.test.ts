import { describe, expect, test } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { knownRegistries } from '#functions/credentials/sources.ts'
import { missingVariables } from '#functions/ports.ts'
import type { AdmissionError } from '#shared/errors.ts'
import { AMAZON, AZURE_ENTRY, GITHUB, GOOGLE_ENTRY } from './setup.ts'

const SECRETS = [
  { name: 'regcred', dockerConfigEnv: 'REGCRED' },
  { name: 'kyverno/ghcr', dockerConfigEnv: 'GHCR' },
]

function configOf(registries: unknown) {
  return parseConfig({
    policies: 'policies',
    endpoint: 'https://admission.example.com',
    outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
    clusters: [{ name: 'prod', tokens: ['a'.repeat(64)] }],
    registries,
  })
}

/** `path: message` of every fault. */
function faultsOf(registries: unknown): string[] {
  try {
    configOf(registries)
    return []
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'CONFIG_INVALID' })
    return (thrown as AdmissionError).faults.map(({ path, message }) => `${path}: ${message}`)
  }
}

describe('registries in the config', () => {
  test('have providers and Secrets by the names of their variables', () => {
    const credentials = [
      AMAZON,
      GOOGLE_ENTRY,
      { ...AZURE_ENTRY, hosts: ['shop.azurecr.io'] },
      GITHUB,
    ]
    expect(configOf({ credentials, secrets: SECRETS }).registries).toEqual({
      plainHttp: [],
      credentials: [
        { kind: 'amazon' },
        { kind: 'google', serviceAccountKeyEnv: 'GOOGLE_KEY' },
        {
          kind: 'azure',
          tenantEnv: 'AZURE_TENANT',
          clientIdEnv: 'AZURE_CLIENT',
          clientSecretEnv: 'AZURE_SECRET',
          hosts: ['shop.azurecr.io'],
        },
        { kind: 'github', tokenEnv: 'GITHUB_TOKEN' },
      ],
      secrets: SECRETS,
    })
  })

  const azure = { provider: 'azure', tenantEnv: 'A', clientIdEnv: 'B' }
  test.each<{ name: string; registries: object; faults: string[] }>([
    {
      name: 'an entry of nothing',
      registries: { credentials: [{}] },
      faults: [
        'registries.credentials[0]: give either host and usernameEnv and passwordEnv, or dockerConfigEnv, or provider',
      ],
    },
    {
      name: 'an unknown provider',
      registries: { credentials: [{ provider: 'alibaba' }] },
      faults: [
        'registries.credentials[0].provider: expected "amazon" or "azure" or "google" or "github"',
      ],
    },
    {
      name: 'a provider from the prototype',
      registries: { credentials: [{ provider: 'constructor' }] },
      faults: [
        'registries.credentials[0].provider: expected "amazon" or "azure" or "google" or "github"',
      ],
    },
    {
      name: 'a provider without its variables',
      registries: { credentials: [azure, { provider: 'google' }, { provider: 'github' }] },
      faults: [
        'registries.credentials[0].clientSecretEnv: is required by provider: azure',
        'registries.credentials[1].serviceAccountKeyEnv: is required by provider: google',
        'registries.credentials[2].tokenEnv: is required by provider: github',
      ],
    },
    {
      name: 'variables of another provider',
      registries: { credentials: [{ provider: 'amazon', tokenEnv: 'T', dockerConfigEnv: 'D' }] },
      faults: ['dockerConfigEnv', 'tokenEnv'].map(
        (field) =>
          `registries.credentials[0].${field}: is not for provider: amazon, which has provider, hosts`,
      ),
    },
    {
      name: 'a login beside a provider',
      registries: {
        credentials: [{ ...AMAZON, host: 'a.example', usernameEnv: 'U', passwordEnv: 'P' }],
      },
      faults: [
        'registries.credentials[0]: give either host and usernameEnv and passwordEnv, or dockerConfigEnv, or provider',
        ...['host', 'usernameEnv', 'passwordEnv'].map(
          (field) =>
            `registries.credentials[0].${field}: is not for provider: amazon, which has provider, hosts`,
        ),
      ],
    },
    {
      name: 'registries of somebody else',
      registries: {
        credentials: [
          { ...GOOGLE_ENTRY, hosts: ['gcr.io', 'gcr.io.evil.example', 'ghcr.io'] },
          { ...AMAZON, hosts: ['111122223333.dkr.ecr.eu-central-1.amazonaws.com:443'] },
        ],
      },
      faults: [
        'registries.credentials[0].hosts[1]: is no registry of provider: google',
        'registries.credentials[0].hosts[2]: is no registry of provider: google',
        'registries.credentials[1].hosts[0]: is no registry of provider: amazon',
      ],
    },
    {
      name: 'a secret where a name belongs',
      registries: { credentials: [{ provider: 'github', tokenEnv: 'ghp_s3cr3t' }] },
      faults: [
        'registries.credentials[0].tokenEnv: expected the NAME of an environment variable or binding (A-Z, 0-9, _); secrets never stand in this file',
      ],
    },
    {
      name: 'two Secrets of one name, and names that are none',
      registries: {
        secrets: [
          ...SECRETS,
          { name: 'regcred', dockerConfigEnv: 'X' },
          ...['A', 'a/b/c', '/a', 'a/', ''].map((name) => ({ name, dockerConfigEnv: 'X' })),
        ],
      },
      faults: [
        'registries.secrets[2].name: repeats registries.secrets[0].name',
        ...[3, 4, 5, 6, 7].map(
          (at) => `registries.secrets[${at}].name: expected name or namespace/name of a Secret`,
        ),
      ],
    },
  ])('are refused with $name', ({ registries, faults }) => {
    expect(faultsOf(registries)).toEqual(faults)
  })

  test('say which of their variables are missing', () => {
    const config = configOf({
      credentials: [AMAZON, GOOGLE_ENTRY, AZURE_ENTRY, GITHUB, { dockerConfigEnv: 'DOCKER' }],
      secrets: SECRETS,
    })
    expect(missingVariables(config, { SEAL: 's', AZURE_TENANT: 't', GHCR: '{}' })).toEqual([
      'GOOGLE_KEY',
      'AZURE_CLIENT',
      'AZURE_SECRET',
      'GITHUB_TOKEN',
      'DOCKER',
      'REGCRED',
    ])
  })

  test.each<{ name: string; credentials: object[]; providers: string[] }>([
    { name: 'nothing', credentials: [], providers: [] },
    { name: 'a docker config', credentials: [{ dockerConfigEnv: 'D' }], providers: ['default'] },
    {
      name: 'a host and providers',
      credentials: [{ host: 'a.example', usernameEnv: 'U', passwordEnv: 'P' }, AMAZON, GITHUB],
      providers: ['default', 'amazon', 'github'],
    },
  ])('let policies name what is there: $name', ({ credentials, providers }) => {
    const { registries } = configOf({ credentials, secrets: SECRETS, plainHttp: ['localhost'] })
    expect(knownRegistries(registries)).toEqual({
      secrets: ['regcred', 'kyverno/ghcr'],
      providers,
      plainHttp: ['localhost'],
    })
  })
})
