// Reads a team's rows, single and packed, newest first.
import { setImmediate } from 'node:timers/promises'
import type { AuditId, TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Stored } from '../chain/seal.ts'
import { merged } from './merge-streams.ts'
import { packedRow, packedRows } from './packed-rows.ts'
import { fits, isNewer, type AuditScope, type Key } from './row-filter.ts'
import { singleRows } from './single-rows.ts'

/**
 * Yields the rows within the scope that are older than `before`. Also yields positions in time: all later rows are
 * older than the position. With `teamId` null, yields the rows without a team. If `signal` aborts, throws its reason.
 */
export async function* searched(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  scope: AuditScope,
  before: Key | null,
  signal?: AbortSignal,
): AsyncIterable<readonly (Stored | Key)[]> {
  const ids = scope.filter?.ids
  if (ids !== undefined) return yield await found(store, teamId, ids, scope, before)
  const single = singleRows(store, teamId, scope, before, signal)
  // Rows without a team are never packed.
  if (teamId === null) yield* single
  else yield* merged(single, packedRows(store, teamId, scope, before, signal), isNewer)
}

export async function* newest(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
  signal?: AbortSignal,
): AsyncIterable<readonly Stored[]> {
  for await (const keys of searched(store, teamId, scope, before, signal)) {
    const rows = keys.filter((key) => 'chain' in key)
    if (rows.length > 0) yield rows
  }
}

/** The id has an index, so each row is looked up separately. */
async function found(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  ids: readonly AuditId[],
  scope: AuditScope,
  before: Key | null,
): Promise<readonly Stored[]> {
  const rows: Stored[] = []
  for (const id of new Set(ids)) {
    const row = await rowOfTeam(store, teamId, id)
    if (row !== null && fits(row, scope, before)) rows.push(row)
    await setImmediate()
  }
  return rows.sort((a, b) => (isNewer(a, b) ? -1 : 1))
}

export async function rowOfTeam(store: Pick<Store, 'db'>, teamId: TeamId | null, id: AuditId): Promise<Stored | null> {
  const single = store.db.selectFrom('audit').selectAll().where('id', '=', id)
  const row = await single.where('team_id', teamId === null ? 'is' : '=', teamId).executeTakeFirst()
  if (row !== undefined || teamId === null) return row ?? null
  return await packedRow(store, teamId, id)
}

/** Returns milliseconds, or null if there are no rows. */
export async function newestTime({ db }: Pick<Store, 'db'>): Promise<number | null> {
  const single = await db
    .selectFrom('audit')
    .select(({ fn }) => fn.max('at').as('at'))
    .executeTakeFirst()
  const packed = await db
    .selectFrom('audit_packs')
    .select(({ fn }) => fn.max('last_at').as('at'))
    .executeTakeFirst()
  const times = [single?.at, packed?.at].flatMap((at) => (typeof at === 'string' ? [Date.parse(at)] : []))
  return times.length === 0 ? null : Math.max(...times)
}
