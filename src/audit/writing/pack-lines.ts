// Appends lines to a chain. Many consecutive lines of a team become a pack. All other lines become single rows.
import { deflateRawSync } from 'node:zlib'
import type { TeamId } from '../../ids.ts'
import type { ChainEnd, Placed } from '../chain/append-rows.ts'
import { MARK_CHARS, minuteEnd, type Pack } from '../packs.ts'
import type { Line, Lines } from './waiting-lines.ts'

export const PACKED_FROM = 32
/** The fastest level of compression is enough, because the rows resemble each other. */
const LEVEL = 1

export function placeLines(
  end: ChainEnd,
  lines: Lines,
): { readonly single: readonly Placed[]; readonly packs: readonly Pack[] } {
  const single: Placed[] = []
  const packs: Pack[] = []
  for (const [team, teamLines] of lines.teams) {
    for (const run of team === null ? [teamLines] : runsOf(teamLines)) {
      if (team !== null && run.length >= PACKED_FROM) packs.push(packOf(end, team, lines, run))
      else for (const line of run) single.push(end.place(lines.rowOf(line)))
    }
  }
  return { single, packs }
}

/**
 * Splits the lines of a team into runs that can become packs. Packs are searched by time, so the lines of a run are
 * within one minute and in the order of time. If the clock was set back, a new run starts.
 */
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

function packOf(end: ChainEnd, team_id: TeamId, lines: Lines, run: readonly Line[]): Pack {
  const [first, last] = [run[0], run.at(-1)]
  if (first === undefined || last === undefined) throw new Error('a pack without rows')
  const first_seq = end.head.head_seq + 1
  let marks = ''
  for (const line of run) marks += end.placeLine(lines.text(line)).slice(0, MARK_CHARS)
  const { head_seq: last_seq, head_link: last_link } = end.head
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
