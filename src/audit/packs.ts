// Rows that were written many at a time lie packed: a team's that follow each other in a chain are one deflated text. Of
// each row's link the pack keeps the beginning, so that the one that was changed can be named.
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Selectable } from 'kysely'
import type { TeamId } from '../ids.ts'
import type { AuditPackTable } from '../store/tables.ts'
import type { Placed } from './writing/insert.ts'
import { PACKED_BYTES_MAX, rowOf, type Line, type Lines } from './writing/lines.ts'
import type { ChainEnd } from './chain/linking.ts'
import type { Stored } from './chain/seal.ts'

export type Pack = Selectable<AuditPackTable>

/** From so many of a team at a time on; fewer stay rows. */
export const PACKED_FROM = 32
/** Of a time up to the minute; no pack is of two. */
const MINUTE_CHARS = 16
export const PACK_MS = 60_000
/** How much is kept of a link. */
export const MARK_CHARS = 8
/** The fastest: what is alike from row to row is found all the same. */
const LEVEL = 1

/** Puts the lines at the end of the chain: many of a team as packs, what is left as single rows. */
export function placeLines(
  end: ChainEnd,
  lines: Lines,
): { readonly single: readonly Placed[]; readonly packs: readonly Pack[] } {
  const single: Placed[] = []
  const packs: Pack[] = []
  for (const [team, theirs] of lines.teams) {
    for (const run of team === null ? [theirs] : runsOf(theirs)) {
      if (team !== null && run.length >= PACKED_FROM) packs.push(packOf(end, team, lines, run))
      else for (const line of run) single.push(end.place(lines.rowOf(line)))
    }
  }
  return { single, packs }
}

/** Each within a minute and in the order of time, so that a pack is found by it: a clock may be set back. */
function runsOf(lines: readonly Line[]): readonly (readonly Line[])[] {
  const runs: Line[][] = []
  let [latest, end] = ['', '']
  for (const line of lines) {
    if (line.at >= latest && line.at <= end) runs.at(-1)?.push(line)
    else {
      runs.push([line])
      end = minuteEnd(line.at)
    }
    latest = line.at
  }
  return runs
}

/** No row of a pack is newer that has one of this time. */
export function minuteEnd(at: string): string {
  return `${at.slice(0, MINUTE_CHARS)}:59.999Z`
}

function packOf(end: ChainEnd, team_id: TeamId, lines: Lines, run: readonly Line[]): Pack {
  const [first, last] = [run[0], run.at(-1)]
  if (first === undefined || last === undefined) throw new Error('a pack of nothing')
  let marks = ''
  let [first_seq, last_seq, last_link] = [0, 0, '']
  for (const line of run) {
    const { seq, link } = end.placeLine(lines.text(line))
    if (first_seq === 0) first_seq = seq
    last_seq = seq
    last_link = link
    marks += link.slice(0, MARK_CHARS)
  }
  return {
    first_id: lines.rowOf(first).id,
    last_id: lines.rowOf(last).id,
    team_id,
    first_at: first.at,
    last_at: last.at,
    chain: end.chain,
    first_seq,
    last_seq,
    last_link,
    marks,
    packed: deflateRawSync(lines.textOf(run), { level: LEVEL }),
  }
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
    const text = inflateRawSync(packed, { maxOutputLength: PACKED_BYTES_MAX }).toString()
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
