import { describe, expect, test } from 'vitest'
import { isPinned, pinnedDigest, pinPatches } from '#shared/image/pin.ts'

const D = `sha256:${'a'.repeat(64)}`

describe('pinPatches', () => {
  const image = (pointer: string, text: string) => ({
    extractor: 'containers',
    pointer,
    image: text,
  })

  test('appends the digest to the text as it was written, in order', () => {
    const images = [
      image('/spec/containers/0/image', 'nginx'),
      image('/spec/containers/1/image', 'docker.io/nginx:1'),
      image('/spec/initContainers/0/image', 'nginx'),
    ]
    const digests = new Map([
      ['nginx', D],
      ['docker.io/nginx:1', D],
    ])
    expect(pinPatches(images, digests)).toEqual([
      { op: 'replace', path: '/spec/containers/0/image', value: `nginx@${D}` },
      { op: 'replace', path: '/spec/containers/1/image', value: `docker.io/nginx:1@${D}` },
      { op: 'replace', path: '/spec/initContainers/0/image', value: `nginx@${D}` },
    ])
  })

  test.each([
    { name: 'an image without known digest', text: 'nginx', digests: new Map([['nginx:1', D]]) },
    { name: 'an image that is pinned', text: `nginx@${D}`, digests: new Map([[`nginx@${D}`, D]]) },
  ])('leaves $name alone', ({ text, digests }) => {
    expect(pinPatches([image('/p', text)], digests)).toEqual([])
  })

  test('refuses to pin what is not a reference', () => {
    expect(() => pinPatches([image('/p', 'NO!')], new Map([['NO!', D]]))).toThrow(
      expect.objectContaining({ code: 'IMAGE_REFERENCE_INVALID' }),
    )
  })
})

describe('isPinned', () => {
  test.each([
    { text: `nginx@${D}`, digest: D },
    { text: `nginx:1@${D}`, digest: D },
    { text: 'nginx', digest: undefined },
    { text: 'nginx@sha256:abc', digest: undefined },
    { text: `nginx@${D}@${D}`, digest: undefined },
    { text: `nginx@${D} `, digest: undefined },
    { text: `nginx@sha256:${'A'.repeat(64)}`, digest: undefined },
  ])('$text', ({ text, digest }) => {
    expect(pinnedDigest(text)).toBe(digest)
    expect(isPinned(text)).toBe(digest !== undefined)
  })
})
