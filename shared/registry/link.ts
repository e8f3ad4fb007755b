/**
 * The URL of the next page in a `Link` header, or undefined when there is none. Resolved against the page it came with; the
 * caller checks where it leads.
 *
 * @example nextPage('</v2/app/referrers/sha256:…?n=2>; rel="next"', page)
 */
export function nextPage(header: string | null, page: URL): URL | undefined {
  for (const [, target, params] of (header ?? '').matchAll(/<([^<>]*)>([^<]*)/g)) {
    const isNext =
      /;[ \t]*rel[ \t]*=[ \t]*(?:"(?:[^"]* )?next(?: [^"]*)?"|next[ \t]*(?:[;,]|$))/i.test(
        params ?? '',
      )
    if (isNext && target !== undefined && URL.canParse(target, page.href))
      return new URL(target, page)
  }
  return undefined
}
