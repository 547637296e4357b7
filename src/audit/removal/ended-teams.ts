// The audit rows of a deleted team stay until their retention ends. That retention is stored here.
import type { Transaction } from 'kysely'
import { inSlices } from '../../event-loop-slices.ts'
import { asId, type TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import { forgetUsage } from '../usage-by-day.ts'

const MARK = 'days of the audit of the ended team '

export async function keepTeam(tx: Transaction<Tables>, teamId: TeamId, retentionDays: number): Promise<void> {
  await tx
    .insertInto('marks')
    .values({ name: MARK + teamId, value: String(retentionDays) })
    .execute()
}

/**
 * Returns the retention in days of each deleted team that still has rows. Deletes the usage counters of deleted teams,
 * and the entries of teams without rows. Ignores invalid entries, and entries of teams that exist.
 */
export async function endedTeams(
  store: Pick<Store, 'db' | 'dialect' | 'commit' | 'append'>,
): Promise<ReadonlyMap<TeamId, number>> {
  const days = new Map<TeamId, number>()
  const pause = inSlices()
  for await (const { name, value } of marksIn(store)) {
    // SQLite answers synchronously, so let other requests run.
    await pause()
    const teamId = asId<TeamId>(name.slice(MARK.length))
    const hasRows = (await hasSome(store, 'audit', teamId)) || (await hasSome(store, 'audit_packs', teamId))
    const lives = await store.db.selectFrom('teams').select('id').where('id', '=', teamId).executeTakeFirst()
    if (lives === undefined) await forgetUsage(store, teamId)
    if (hasRows && lives === undefined && /^[1-9]\d{0,3}$/.test(value)) days.set(teamId, Number(value))
    else if (!hasRows) await store.append((tx) => tx.deleteFrom('marks').where('name', '=', name).execute())
  }
  return days
}

const MARKS_AT_ONCE = 500

/** In portions, because there may be 100,000. */
async function* marksIn({ db }: Pick<Store, 'db'>) {
  for (let last = ''; ;) {
    const marks = await db
      .selectFrom('marks')
      .selectAll()
      .where('name', 'like', `${MARK}%`)
      .where('name', '>', last)
      .orderBy('name')
      .limit(MARKS_AT_ONCE)
      .execute()
    yield* marks
    if (marks.length < MARKS_AT_ONCE) return
    last = marks.at(-1)?.name ?? last
  }
}

async function hasSome(store: Pick<Store, 'db'>, table: 'audit' | 'audit_packs', teamId: TeamId): Promise<boolean> {
  const row = await store.db
    .selectFrom(table)
    .select('team_id')
    .where('team_id', '=', teamId)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
