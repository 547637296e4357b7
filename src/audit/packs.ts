// Rows that were written many at a time lie packed: a team's that follow each other in a chain are one deflated text. Of
// each row's link the pack keeps the beginning, so that the one that was changed can be named.
import { inflateRawSync } from 'node:zlib'
import type { Selectable } from 'kysely'
import type { AuditPackTable } from '../store/tables.ts'
import { rowOf, type Stored } from './chain/seal.ts'

export type Pack = Selectable<AuditPackTable>

/** Of a time up to the minute; no pack is of two. */
const MINUTE_CHARS = 16
export const PACK_MS = 60_000
/** Unpacked: a batch is full at a quarter of it, and a line that is longer than half of it stays a row. */
export const PACK_BYTES_MAX = 1 << 21
/** How much is kept of a link. */
export const MARK_CHARS = 8

/** No row of a pack is newer that has one of this time. */
export function minuteEnd(at: string): string {
  return `${at.slice(0, MINUTE_CHARS)}:59.999Z`
}

export interface Unpacked {
  /** Its link is a mark alone, but for the last one's. */
  readonly row: Stored
  /** As it stands there: what the seal reads, or there is another way to write the same, which a filter does not find. */
  readonly text: string
}

/** Its rows, the oldest first; null where it cannot be read. `wanted`: only those whose text has all of these. */
export function unpacked(pack: Pack, wanted: readonly string[] = []): readonly Unpacked[] | null {
  const { chain, first_seq, last_link, marks, packed } = pack
  try {
    const text = inflateRawSync(packed, { maxOutputLength: PACK_BYTES_MAX }).toString()
    if (!wanted.every((part) => text.includes(part))) return []
    const lines = text.split('\n')
    // Behind the last line's end there is nothing.
    const last = lines.length - 2
    const rows: Unpacked[] = []
    for (const [index, line] of lines.slice(0, -1).entries()) {
      if (!wanted.every((part) => line.includes(part))) continue
      const link = index === last ? last_link : marks.slice(index * MARK_CHARS, (index + 1) * MARK_CHARS)
      rows.push({ row: { ...rowOf(line), chain, seq: first_seq + index, link }, text: line })
    }
    return rows
  } catch {
    return null
  }
}

/** Whether all that the pack says of its rows, to be found by, is so, and they are such as lie in one pack. */
export function describes(pack: Pack, all: readonly Unpacked[]): boolean {
  const rows = all.map(({ row }) => row)
  const { first_id, last_id, team_id, first_at, last_at, first_seq, last_seq, marks } = pack
  return (
    rows.length === last_seq - first_seq + 1 &&
    marks.length === rows.length * MARK_CHARS &&
    rows[0]?.id === first_id &&
    rows.at(-1)?.id === last_id &&
    rows[0].at === first_at &&
    rows.at(-1)?.at === last_at &&
    last_at <= minuteEnd(first_at) &&
    rows.every((row) => row.team_id === team_id && row.outcome === 'ANSWERED') &&
    rows.every((row, index) => follows(row, rows[index - 1]))
  )
}

/** Readers go by the first and the last row of a pack. */
function follows(row: Stored, before: Stored | undefined): boolean {
  return before === undefined || (row.id > before.id && row.at >= before.at)
}
