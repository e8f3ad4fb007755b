import { messageOf } from './documents.ts'
import { placeOf, type Result } from './fold.ts'

const COLUMNS = [
  'time',
  'cluster',
  'namespace',
  'kind',
  'name',
  'subresource',
  'operation',
  'policy',
  'rule',
  'result',
  'action',
  'verdict',
  'image',
  'digest',
  'verifiedBy',
  'exceptions',
  'message',
  'uid',
] as const

/** CSV (RFC 4180) with a header, one row for every image of every result; a result without images has one row. */
export function* csvLines(results: readonly Result[]): Generator<string> {
  yield line(COLUMNS)
  for (const result of results) {
    const images = result.images.length > 0 ? result.images : [undefined]
    for (const image of images) yield line(COLUMNS.map((column) => cellOf(column, result, image)))
  }
}

function cellOf(
  column: (typeof COLUMNS)[number],
  result: Result,
  image: Result['images'][number] | undefined,
): string {
  switch (column) {
    case 'namespace':
    case 'kind':
    case 'subresource':
      return result.resource[column] ?? ''
    case 'name':
      return placeOf(result)
    case 'result':
      return result.status
    case 'image':
    case 'digest':
      return image?.[column] ?? ''
    case 'verifiedBy':
      return image?.verifiedBy.join(' ') ?? ''
    case 'exceptions':
      return result.exceptions?.join(' ') ?? ''
    case 'message':
      return messageOf(result)
    default:
      return result[column] ?? ''
  }
}

function line(cells: readonly string[]): string {
  return `${cells.map(cell).join(',')}\r\n`
}

/** What a spreadsheet would run as a formula gets an apostrophe before it: messages and names come from whoever makes a Pod. */
function cell(text: string): string {
  const plain = /^[\s\0]*[=+\-@|%\t\r\n＝＋－＠]/u.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
