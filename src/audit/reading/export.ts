// Writes audit rows as lines of a file. The rows contain text from callers, so the file must not contain formulas that
// a spreadsheet would run.
import type { AuditItem } from './page.ts'

export type ExportFormat = 'csv' | 'jsonl'

/** For CSV see RFC 4180 §3. JSON Lines has no official media type. */
export const CONTENT_TYPE: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  jsonl: 'application/jsonl; charset=utf-8',
}

export function headOf(format: ExportFormat): string {
  return format === 'csv' ? [...line(CELLS.map(([name]) => name))].join('') : ''
}

const PIECE_CHARS = 1 << 15

/** Yields pieces, because writing a row of a million characters at once would block the event loop. */
export function* piecesOf(format: ExportFormat, item: AuditItem): Iterable<string> {
  if (format === 'csv') return yield* line(CELLS.map(([, cell]) => cell(item)))
  let before = '{'
  for (const [name, value] of Object.entries(item)) {
    yield `${before}${JSON.stringify(name)}:`
    yield* typeof value === 'string' ? jsonText(value) : [JSON.stringify(value)]
    before = ','
  }
  yield '}\n'
}

function* jsonText(text: string): Iterable<string> {
  let from = 0
  while (text.length - from > PIECE_CHARS) {
    // A piece must not end within a surrogate pair, because JSON.stringify() would escape both halves.
    const to = from + PIECE_CHARS - (/[\ud800-\udbff]/.test(text.charAt(from + PIECE_CHARS - 1)) ? 1 : 0)
    const piece = JSON.stringify(text.slice(from, to))
    yield piece.slice(from === 0 ? 0 : 1, -1)
    from = to
  }
  yield JSON.stringify(text.slice(from)).slice(from === 0 ? 0 : 1)
}

type Cell = string | number | undefined

const CELLS: readonly (readonly [string, (item: AuditItem) => Cell])[] = [
  ['id', (item) => item.id],
  ['at', (item) => item.at],
  ['accountId', (item) => item.actor.accountId ?? undefined],
  ['accountName', (item) => item.actor.name],
  ['keyId', (item) => item.actor.keyId],
  ['keyName', (item) => item.keyName],
  ['grantId', (item) => item.actor.grantId],
  ['grantName', (item) => item.grantName],
  ['client', (item) => item.actor.client],
  ['via', (item) => item.via],
  ['action', (item) => item.action],
  ['datasourceId', (item) => item.datasourceId],
  ['targetKind', (item) => item.target?.kind],
  ['targetId', (item) => item.target?.id],
  ['targetName', (item) => item.target?.name],
  ['changes', (item) => json(item.changes)],
  ['outcome', (item) => item.outcome],
  ['code', (item) => item.code],
  ['blockedKind', (item) => item.blocked?.kind],
  ['blockedName', (item) => item.blocked?.name],
  ['error', (item) => item.error],
  ['hint', (item) => item.hint],
  ['position', (item) => item.position],
  ['estimate', (item) => item.estimate],
  ['limit', (item) => item.limit],
  ['query', (item) => item.query],
  ['params', (item) => json(item.params)],
  ['printed', (item) => item.printed],
  ['tables', (item) => json(item.tables)],
  ['redacted', (item) => (item.redacted === true ? 'true' : undefined)],
  ['rowCount', (item) => item.rowCount],
  ['bytes', (item) => item.bytes],
  ['durationMs', (item) => item.durationMs],
  ['times', (item) => item.times ?? 1],
  ['requestId', (item) => item.requestId],
]

function json(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

/**
 * Spreadsheets treat a cell that begins with one of these characters as a formula (OWASP, CSV injection), even in
 * quotes, after spaces, or as full-width characters.
 */
const FORMULA = /^[\s\0]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/

/** Texts are in quotes, quotes are doubled, and a line ends with CR LF (RFC 4180). */
function* line(cells: readonly Cell[]): Iterable<string> {
  let written = ''
  for (const [n, cell] of cells.entries()) {
    if (n > 0) written += ','
    if (cell === undefined) continue
    if (typeof cell === 'number') {
      written += cell
      continue
    }
    written += FORMULA.test(cell) ? `"'` : '"'
    for (let at = 0; at < cell.length; at += PIECE_CHARS) {
      written += cell.slice(at, at + PIECE_CHARS).replaceAll('"', '""')
      if (written.length < PIECE_CHARS) continue
      yield written
      written = ''
    }
    written += '"'
  }
  yield `${written}\r\n`
}
