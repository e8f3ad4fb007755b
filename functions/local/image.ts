import { gzipSync } from 'node:zlib'
import type { Descriptor } from '#shared/registry/types.ts'
import {
  describe,
  OCI_INDEX,
  OCI_MANIFEST,
  type PushTarget,
  pushBlob,
  pushManifest,
} from './push.ts'

const OCI_CONFIG = 'application/vnd.oci.image.config.v1+json'
const OCI_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'

/** What goes into a small image. */
export interface ImageContents {
  /** The one file of its one layer, as `/hello`. Different text gives a different digest. */
  text: string
  tag?: string
  /** Default `amd64`. */
  architecture?: string
  labels?: Record<string, string>
}

/** The descriptor of a real one-layer Linux image as it was pushed. The same contents give the same digest. */
export async function pushImage(target: PushTarget, contents: ImageContents): Promise<Descriptor> {
  const tar = tarOf('hello', Buffer.from(contents.text))
  const config = {
    architecture: contents.architecture ?? 'amd64',
    os: 'linux',
    config: { Cmd: ['/hello'], Labels: contents.labels ?? {} },
    rootfs: { type: 'layers', diff_ids: [describe(tar, OCI_LAYER).digest] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'COPY hello /hello' }],
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: await pushBlob(target, Buffer.from(JSON.stringify(config)), OCI_CONFIG),
    layers: [await pushBlob(target, gzipSync(tar), OCI_LAYER)],
  }
  return pushManifest(target, manifest, contents.tag === undefined ? {} : { tag: contents.tag })
}

/** The descriptors of a multi-arch index and of its two platform images, as they were pushed. */
export async function pushMultiArchImage(
  target: PushTarget,
  contents: Omit<ImageContents, 'architecture'>,
): Promise<{ index: Descriptor; platforms: Record<'amd64' | 'arm64', Descriptor> }> {
  const { tag, ...untagged } = contents
  const amd64 = await pushImage(target, { ...untagged, architecture: 'amd64' })
  const arm64 = await pushImage(target, { ...untagged, architecture: 'arm64' })
  const manifests = Object.entries({ amd64, arm64 }).map(([architecture, descriptor]) => ({
    ...descriptor,
    platform: { architecture, os: 'linux' },
  }))
  const body = { schemaVersion: 2, mediaType: OCI_INDEX, manifests }
  const index = await pushManifest(target, body, tag === undefined ? {} : { tag })
  return { index, platforms: { amd64, arm64 } }
}

/** A tar archive (ustar) with one executable file. */
function tarOf(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0, 'latin1')
  header.write('0000755\0', 100, 'latin1')
  header.write('0000000\0'.repeat(2), 108, 'latin1')
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  header.write('00000000000\0', 136, 'latin1')
  // The checksum is taken with its own field as spaces.
  header.write('        0', 148, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  const padding = Buffer.alloc((512 - (content.length % 512)) % 512)
  return Buffer.concat([header, content, padding, Buffer.alloc(1024)])
}
