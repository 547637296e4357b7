// Reads a team's rows, both single and packed.
import type { AuditId, TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Stored } from '../chain/seal.ts'
import { merged } from './merge.ts'
import { packedRow, packedRows } from './packed-rows.ts'
import { isNewer, type AuditScope, type Key } from './scope.ts'
import { singleRows } from './single-rows.ts'

/** Returns the rows within the scope that are older than `before`, newest first, in portions. Throws the reason of `signal`. */
export async function* newest(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
  signal?: AbortSignal,
): AsyncIterable<readonly Stored[]> {
  const single: AsyncIterable<readonly (Stored | Key)[]> = singleRows(store, teamId, scope, before, signal)
  for await (const keys of merged(single, packedRows(store, teamId, scope, before, signal), isNewer)) {
    const rows = keys.filter((key) => 'chain' in key)
    if (rows.length > 0) yield rows
  }
}

/** Returns one row, or null if the team has no row with this id. */
export async function rowOfTeam(store: Pick<Store, 'db'>, teamId: TeamId, id: AuditId): Promise<Stored | null> {
  const single = store.db.selectFrom('audit').selectAll().where('id', '=', id).where('team_id', '=', teamId)
  return (await single.executeTakeFirst()) ?? (await packedRow(store, teamId, id))
}
