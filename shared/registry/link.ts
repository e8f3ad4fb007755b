const LINK = /<([^<>]*)>([^<]*)/g
/** One parameter at a time and its value to the end, so that no header takes longer than it is long. */
const PARAMETER = /;[ \t]*([^\s;="]*)[ \t]*(?:=[ \t]*(?:"([^"]*)"?|([^;,"]*)))?/g

/**
 * The URL of the next page in a `Link` header, or undefined when there is none. Resolved against the page it came with; the
 * caller checks where it leads.
 *
 * @example nextPage('</v2/app/referrers/sha256:…?n=2>; rel="next"', page)
 */
export function nextPage(header: string | null, page: URL): URL | undefined {
  for (const [, target = '', parameters = ''] of (header ?? '').matchAll(LINK)) {
    const isNext = [...parameters.matchAll(PARAMETER)].some(([, name, quoted, token]) =>
      isNextRelation(name, quoted ?? token),
    )
    if (isNext && URL.canParse(target, page.href)) return new URL(target, page)
  }
  return undefined
}

/** A relation may be one of several in a list with spaces. */
function isNextRelation(name: string | undefined, value = ''): boolean {
  return name?.toLowerCase() === 'rel' && value.toLowerCase().split(/[ \t]/).includes('next')
}
