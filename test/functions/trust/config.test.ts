import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseConfig } from '#functions/config.ts'
import { readConfig } from '#functions/files.ts'
import type { AdmissionError } from '#shared/errors.ts'
import { SIGNED_AT, SigstoreWorld } from '#test/fakes/sigstore.ts'

const NOW = SIGNED_AT * 1000
const base = {
  policies: 'policies',
  endpoint: 'https://admission.example.com',
  outcomes: { key: { secrets: [{ id: 'a', env: 'SEAL' }] } },
  clusters: [{ name: 'prod', tokens: ['a'.repeat(64)] }],
}

function faultsOf(trust: unknown) {
  try {
    parseConfig({ ...base, trust })
    return []
  } catch (thrown) {
    return (thrown as AdmissionError).faults.map(
      ({ path: where, message }) => `${where}: ${message}`,
    )
  }
}

const MIRROR =
  'expected https://host[/path] without user, query or fragment (http:// only for this machine itself)'

describe('trust in a config', () => {
  test('is kept as it is', () => {
    const trust = [
      { trustedRoot: 'public.json' },
      {
        mirror: 'https://tuf-repo.github.com',
        trustedRoot: 'github.json',
        root: 'github-root.json',
      },
      { mirror: 'http://127.0.0.1:8080/tuf', trustedRoot: 'own.json' },
    ]
    expect(parseConfig({ ...base, trust }).trust).toEqual(trust)
    expect(parseConfig(base).trust).toBeUndefined()
  })

  test.each([
    { name: 'is no list', trust: {}, faults: ['trust: expected a list, found an object'] },
    { name: 'is empty', trust: [], faults: ['trust: expected at least 1 entries, found 0'] },
    {
      name: 'has an entry without a file',
      trust: [{}],
      faults: ['trust[0].trustedRoot: is required'],
    },
    {
      name: 'has an empty file name',
      trust: [{ trustedRoot: ' ', root: '' }],
      faults: [
        'trust[0].trustedRoot: expected a file, such as trusted_root.json',
        'trust[0].root: expected a file, such as root.json',
      ],
    },
    {
      name: 'has an unknown key',
      trust: [{ trustedRoot: 'a.json', mirrors: 'https://a.example.com' }],
      faults: ['trust[0].mirrors: unknown key; did you mean "mirror"?'],
    },
    ...[
      'tuf.example.com',
      'http://tuf.example.com',
      'https://me:secret@tuf.example.com',
      'https://tuf.example.com?token=1',
      'https://tuf.example.com#a',
      'http://127.0.0.1.example.com',
      '',
    ].map((mirror) => ({
      name: `names the mirror "${mirror}"`,
      trust: [{ mirror, trustedRoot: 'a.json' }],
      faults: [`trust[0].mirror: ${MIRROR}`],
    })),
    {
      name: 'names a mirror twice',
      trust: [
        { mirror: 'https://tuf.example.com', trustedRoot: 'a.json' },
        { trustedRoot: 'b.json' },
        { mirror: 'https://TUF.example.com/', trustedRoot: 'c.json' },
        { mirror: 'https://tuf-repo-cdn.sigstore.dev/', trustedRoot: 'd.json' },
      ],
      faults: [
        'trust[2]: is for the same mirror as trust[0]: keep the one whose trusted root counts',
        'trust[3]: is for the same mirror as trust[1]: keep the one whose trusted root counts',
      ],
    },
  ])('is refused when it $name', ({ trust, faults }) => {
    expect(faultsOf(trust)).toEqual(faults)
  })
})

describe('readConfig', () => {
  let folder: string
  const at = (name: string) => path.join(folder, name)
  const write = (trust: string) =>
    writeFile(
      at('countersign.yaml'),
      `${JSON.stringify(base).slice(0, -1)},\n"trust":\n[${trust}]}`,
    )

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'countersign-'))
    await writeFile(at('root.json'), JSON.stringify(new SigstoreWorld().trustedRoot()))
  })
  afterAll(() => rm(folder, { recursive: true }))

  test('reads the trusted roots beside it for whoever loads policies', async () => {
    await write('{"mirror": "https://tuf.example.com", "trustedRoot": "root.json"}')
    const { policyOptions } = await readConfig(at('countersign.yaml'), NOW)
    expect(
      JSON.parse(policyOptions.trustedRoot?.('https://tuf.example.com/') ?? ''),
    ).toHaveProperty('tlogs')
    expect(policyOptions.trustedRoot?.('https://other.example.com')).toBeUndefined()
  })

  test('says in which line an entry is whose file is missing', async () => {
    await write(
      '{"trustedRoot": "root.json", "mirror": "https://tuf.example.com"},\n {"trustedRoot": "no.json"}',
    )
    await expect(readConfig(at('countersign.yaml'), NOW)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: `${at('countersign.yaml')}: 1 fault`,
      faults: [
        {
          path: `${at('countersign.yaml')}:4:18`,
          message: `trust[1].trustedRoot: no file ${at('no.json')}; \`countersign trust --out ${at('no.json')}\` writes it`,
        },
      ],
    })
  })

  test('says in which line an entry is that ends soon', async () => {
    await write('{"mirror": "https://tuf.example.com", "trustedRoot": "root.json"}')
    const { policyOptions, trust } = await readConfig(at('countersign.yaml'), NOW)
    policyOptions.trustedRoot?.('https://tuf.example.com')
    expect(trust.notes()).toEqual([
      {
        path: expect.stringMatching(/countersign\.yaml:3:\d+$/),
        message: expect.stringContaining(
          'its last timestamp authority ends on 2025-06-19; `countersign trust',
        ),
      },
    ])
  })
})
