import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Bytes, equal, fromUtf8 } from '#shared/bytes.ts'
import type { Descriptor } from '#shared/registry/types.ts'
import { openCose } from '#shared/signature/notary/cose.ts'
import { openJws } from '#shared/signature/notary/jws.ts'
import type { NotaryEnvelope, NotaryPolicy } from '#shared/signature/notary/types.ts'
import { COSE_TYPE, JWS_TYPE, verifyNotary } from '#shared/signature/notary/verify.ts'
import { type Certificate, parseCertificate } from '#shared/signature/x509/certificate.ts'
import { certificatesFromPem } from '#shared/signature/x509/pem.ts'
import type { SuiteResult } from '#test/conformance/cel.ts'

/** What the layout holds, and what the others are about: an image that is not in the folder. */
const LAYOUT_IMAGE = 'layout'
const OTHER_IMAGE: Descriptor = {
  mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
  digest: 'sha256:c0669ef34cdc14332c0f1ab0c2c01acb91d96014b172f1a76f3a39e63d1f0bda',
  size: 528,
}

/** While the self-signed certificates of the ordinary envelopes are valid, and after the ones that last to 2033 are not. */
const NOW = Date.parse('2026-01-01T00:00:00Z')
const LATER = Date.parse('2040-01-01T00:00:00Z')

interface Envelope {
  file: string
  image: Descriptor | typeof LAYOUT_IMAGE
  /** Certificate file of the signer; the one inside the envelope when the folder has none. */
  trust?: string
  /** What it gives with certificates valid now demanded, and with a timestamp demanded instead. */
  alone: 'verified' | 'rejected'
  timestamped: 'verified' | 'rejected'
}

/** What specs/signatures.md 1.5 and the names of the files say. */
const ENVELOPES: readonly Envelope[] = [
  { file: 'jws_signature.sig', image: LAYOUT_IMAGE, alone: 'verified', timestamped: 'rejected' },
  { file: 'cose_signature.sig', image: LAYOUT_IMAGE, alone: 'verified', timestamped: 'rejected' },
  {
    file: 'withoutTimestamp.sig',
    image: OTHER_IMAGE,
    trust: 'TestTimestamp.crt',
    alone: 'verified',
    timestamped: 'rejected',
  },
  {
    file: 'coseWithTimestamp.sig',
    image: OTHER_IMAGE,
    trust: 'TestTimestamp.crt',
    alone: 'verified',
    timestamped: 'verified',
  },
  {
    file: 'jwsExpiredWithTimestamp.sig',
    image: OTHER_IMAGE,
    alone: 'rejected',
    timestamped: 'verified',
  },
  {
    file: 'timestampAfterNotAfter.sig',
    image: OTHER_IMAGE,
    alone: 'rejected',
    timestamped: 'rejected',
  },
]

/** Every how many bytes an envelope is touched once. */
const TAMPER_STEP = 13

/** Real Notary Project envelopes: whom they are by, what they are about, when they were signed, and each of them touched. */
export async function runNotation(casesDir: string): Promise<SuiteResult> {
  const dir = join(casesDir, 'signatures', 'notation')
  const suite = new Suite(dir)
  for (const envelope of ENVELOPES) await suite.examine(envelope)
  return suite.result()
}

class Suite {
  readonly #dir: string
  readonly #tsa: readonly Certificate[]
  #passed = 0
  readonly #failures: { id: string; expected: string; got: string }[] = []

  constructor(dir: string) {
    this.#dir = dir
    this.#tsa = [this.#certificate('globalsignRoot.cer')]
  }

  result(): SuiteResult {
    const failures = this.#failures
    return { passed: this.#passed, failed: failures.length, known: 0, skipped: 0, failures }
  }

  async examine({ file, image, trust, alone, timestamped }: Envelope): Promise<void> {
    const bytes = this.#read(file)
    const mediaType = bytes[0] === 0x7b ? JWS_TYPE : COSE_TYPE
    const open = mediaType === JWS_TYPE ? openJws : openCose
    const artifact = image === LAYOUT_IMAGE ? this.#layoutImage() : image
    const opened = open(bytes)
    const root = trust === undefined ? opened.certificates.slice(-1) : [this.#certificate(trust)]
    const plain = policy({ ca: root })
    const demanding = policy({ ca: root, tsa: this.#tsa })
    const check = async (what: string, expected: string, now = NOW, rules = plain) => {
      const got = await verifyNotary({ mediaType, envelope: bytes, artifact }, rules, now)
      this.#record(`${file} ${what}`, expected, got.status)
    }
    await check('with certificates valid now', alone)
    await check('with a timestamp', timestamped, NOW, demanding)
    await check('with a timestamp, years later', timestamped, LATER, demanding)
    await check(
      'with the store of another signer',
      'rejected',
      NOW,
      policy({ ca: this.#strangers() }),
    )
    await check(
      'with the store of another scheme',
      'rejected',
      NOW,
      policy({ signingAuthority: root }),
    )
    for (const name of ['GlobalSignRootCA.crt', 'DigiCertTSARootSHA384.cer']) {
      const other = policy({ ca: root, tsa: [this.#certificate(name)] })
      await check(`with the timestamp root ${name}`, 'rejected', NOW, other)
    }
    const rules = timestamped === 'verified' ? demanding : plain
    if (alone === 'rejected' && timestamped === 'rejected') return
    for (const change of [
      { size: 1 },
      { mediaType: 'text/plain' },
      { digest: `sha256:${'0'.repeat(64)}` },
    ]) {
      const other = { mediaType, envelope: bytes, artifact: { ...artifact, ...change } }
      const got = await verifyNotary(other, rules, NOW)
      this.#record(`${file} for another ${Object.keys(change)}`, 'rejected', got.status)
    }
    await this.#tamper(file, bytes, opened, async (envelope) => {
      const got = await verifyNotary({ mediaType, envelope, artifact }, rules, NOW)
      return got.status === 'verified' ? open(envelope) : undefined
    })
  }

  /**
   * One bit of every so many bytes: either it is refused, or nothing that is signed was touched. Only unsigned headers and the
   * certificates that a timestamp carries without needing them are such places.
   */
  async #tamper(
    file: string,
    bytes: Bytes,
    original: NotaryEnvelope,
    verified: (envelope: Bytes) => Promise<NotaryEnvelope | undefined>,
  ): Promise<void> {
    for (let at = 0; at < bytes.length; at += TAMPER_STEP) {
      const touched = bytes.slice()
      touched[at] = (touched[at] ?? 0) ^ 1
      const accepted = await verified(touched)
      const harmless = accepted === undefined || sameSigned(accepted, original)
      this.#record(`${file} with byte ${at} touched`, 'true', String(harmless))
    }
  }

  #record(id: string, expected: string, got: string): void {
    if (expected === got) this.#passed++
    else this.#failures.push({ id, expected, got })
  }

  #strangers(): Certificate[] {
    return ['wabbit-networks.io.crt', 'NotationTestRoot.pem', 'TestTimestampNotYetValid.crt'].map(
      (name) => this.#certificate(name),
    )
  }

  #layoutImage(): Descriptor {
    const index = JSON.parse(fromUtf8(this.#read('oci-layout/index.json')))
    const { mediaType, digest, size } = index.manifests[0]
    return { mediaType, digest, size }
  }

  #certificate(name: string): Certificate {
    const bytes = this.#read(`certs/${name}`)
    // DER begins with a SEQUENCE, PEM with a dash.
    const [certificate] =
      bytes[0] === 0x30 ? [parseCertificate(bytes)] : certificatesFromPem(fromUtf8(bytes))
    if (certificate === undefined) throw new TypeError(`${name} holds no certificate`)
    return certificate
  }

  #read(name: string): Bytes {
    return new Uint8Array(readFileSync(join(this.#dir, name)))
  }
}

function policy(stores: Partial<NotaryPolicy['trustStores']>): NotaryPolicy {
  return {
    level: 'strict',
    trustStores: { ca: [], signingAuthority: [], ...stores },
    trustedIdentities: [{ any: true }],
    revocation: { mode: 'skip' },
  }
}

function sameSigned(a: NotaryEnvelope, b: NotaryEnvelope): boolean {
  const chains = a.certificates.length === b.certificates.length
  const same = a.certificates.every(({ der }, i) =>
    equal(der, b.certificates[i]?.der ?? der.slice(1)),
  )
  return chains && same && equal(a.message, b.message) && equal(a.signature, b.signature)
}
