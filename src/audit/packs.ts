// A pack stores consecutive rows of one team as one compressed text. Each row is linked to the previous row by a hash
// (see chain/seal.ts). The pack keeps the first characters of each hash, so that verification can name the changed row.
import { inflateRawSync } from 'node:zlib'
import type { Selectable } from 'kysely'
import type { AuditPackTable } from '../store/tables.ts'
import { rowOf, type Stored } from './chain/seal.ts'

export type Pack = Selectable<AuditPackTable>

/** All rows of a pack are within one minute. In a time, this many characters come before the seconds. */
const MINUTE_CHARS = 16
export const PACK_MS = 60_000
/** A batch is full at a quarter of this uncompressed size. A line longer than half of it is not packed. */
export const PACK_BYTES_MAX = 1 << 21
export const MARK_CHARS = 8

/** Returns the latest time of a row in the same pack as a row of the time `at`. */
export function minuteEnd(at: string): string {
  return `${at.slice(0, MINUTE_CHARS)}:59.999Z`
}

export interface Unpacked {
  /** Except for the last row, `link` is only the beginning of the link. */
  readonly row: Stored
  /**
   * Verification hashes this text. Hashing the parsed row would not be enough: in another JSON form of the same row, a
   * text filter would not find it.
   */
  readonly text: string
}

/**
 * Returns the rows whose text contains all `wanted` and passes `holds`, oldest first. Null if the pack is unreadable.
 */
export function unpacked(
  pack: Pack,
  wanted: readonly string[] = [],
  holds: (text: string) => boolean = () => true,
): readonly Unpacked[] | null {
  const { chain, first_seq, last_link, marks, packed } = pack
  try {
    const text = inflateRawSync(packed, { maxOutputLength: PACK_BYTES_MAX }).toString()
    if (!wanted.every((part) => text.includes(part)) || !holds(text)) return []
    const lines = text.split('\n')
    // The text ends with a line break.
    const last = lines.length - 2
    const rows: Unpacked[] = []
    for (const [index, line] of lines.slice(0, -1).entries()) {
      if (!wanted.every((part) => line.includes(part)) || !holds(line)) continue
      const link = index === last ? last_link : marks.slice(index * MARK_CHARS, (index + 1) * MARK_CHARS)
      rows.push({ row: { ...rowOf(line), chain, seq: first_seq + index, link }, text: line })
    }
    return rows
  } catch {
    return null
  }
}

/** Returns true if the pack's columns match its rows, and the rows may be in one pack. */
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

/** Readers rely on this order within a pack. */
function follows(row: Stored, before: Stored | undefined): boolean {
  return before === undefined || (row.id > before.id && row.at >= before.at)
}
