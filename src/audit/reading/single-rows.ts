// Reads a team's rows that are not in packs, newest first. A filter may match only a few of a million rows, so one
// statement searches a limited number of rows.
import { setImmediate } from 'node:timers/promises'
import { sql, type SelectQueryBuilder } from 'kysely'
import type { TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Tables } from '../../store/tables.ts'
import type { Stored } from '../chain/seal.ts'
import { FIRST_PORTION, nextPortion, rowsWithin, sizeOfRow } from './portion-size.ts'
import { fitsContent, type AuditScope, type Key } from './row-filter.ts'

/** This takes a few milliseconds. */
const SLICE_ROWS = 5_000

/**
 * Yields the rows in batches. Between batches, it yields a position in time, and all later rows are older than this
 * position. If `signal` aborts, throws its reason.
 */
export async function* singleRows(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  scope: AuditScope,
  before: Key | null,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly (Stored | Key)[]> {
  let [key, count] = [before, FIRST_PORTION]
  for (let more = true; more;) {
    const end: Key | null = isFiltered(scope) ? await sliceEnd(store, teamId, scope, key) : null
    for (let full = true; full;) {
      signal?.throwIfAborted()
      const sizes = await sizesOf(store, teamId, scope, key, end, count)
      const wanted = rowsWithin(sizes)
      const rows: readonly Stored[] = await slice(store, teamId, scope, key, end, wanted)
      const last = rows.at(-1)
      if (last !== undefined) yield [...rows.filter((row) => fitsContent(row, scope)), { at: last.at, id: last.id }]
      full = sizes.length === count || wanted < sizes.length
      key = rows.at(-1) ?? key
      count = nextPortion(rows)
      // SQLite answers synchronously, so let other requests run.
      await setImmediate()
    }
    key = end
    more = end !== null
    if (end !== null) yield [end]
  }
}

async function sizesOf(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  scope: AuditScope,
  before: Key | null,
  end: Key | null,
  count: number,
): Promise<readonly number[]> {
  const sizes = await next(store, teamId, scope, before, end).select(sizeOfRow).limit(count).execute()
  return sizes.map(({ size }) => size)
}

async function slice(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  scope: AuditScope,
  before: Key | null,
  end: Key | null,
  count: number,
): Promise<readonly Stored[]> {
  return await next(store, teamId, scope, before, end).selectAll().limit(count).execute()
}

function next(store: Pick<Store, 'db'>, teamId: TeamId | null, scope: AuditScope, before: Key | null, end: Key | null) {
  let query = filtered(within(store, teamId, scope, before), scope)
  if (end !== null) {
    query = query.where(sql<boolean>`(at, id) >= (${end.at}, ${end.id})`)
  }
  return query.orderBy('at', 'desc').orderBy('id', 'desc')
}

/** Returns null if the next slice is the last. */
async function sliceEnd(
  store: Pick<Store, 'db'>,
  teamId: TeamId | null,
  scope: AuditScope,
  before: Key | null,
): Promise<Key | null> {
  const row = await within(store, teamId, scope, before)
    .select(['at', 'id'])
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .offset(SLICE_ROWS - 1)
    .executeTakeFirst()
  return row ?? null
}

/**
 * True if a statement may read many rows that do not match. `from` and `to` use the index. `text` is compared later.
 */
function isFiltered(scope: AuditScope): boolean {
  const { from: _from, to: _to, text: _text, ...rest } = scope.filter ?? {}
  return scope.datasourceIds !== undefined || Object.keys(rest).length > 0
}

type Query<O> = SelectQueryBuilder<Tables, 'audit', O>

/** Uses only conditions for the index on team and time. */
function within(store: Pick<Store, 'db'>, teamId: TeamId | null, scope: AuditScope, before: Key | null) {
  const { from, to } = scope.filter ?? {}
  const { after } = scope
  let query = store.db.selectFrom('audit')
  query = teamId === null ? query.where('team_id', 'is', null) : query.where('team_id', '=', teamId)
  if (after !== undefined) query = query.where(sql<boolean>`(at, id) > (${after.at}, ${after.id})`)
  if (from !== undefined) query = query.where('at', '>=', from)
  if (to !== undefined) query = query.where('at', '<', to)
  if (before === null) return query
  // With separate conditions on `at` and `id`, the store would use the index only for the team.
  return query.where(sql<boolean>`(at, id) < (${before.at}, ${before.id})`)
}

function filtered<O>(query: Query<O>, { datasourceIds: ids, filter = {} }: AuditScope): Query<O> {
  let selected = query
  if (ids !== undefined) {
    selected = selected.where((eb) =>
      ids.length === 0
        ? eb('datasource_id', 'is', null)
        : eb.or([eb('datasource_id', 'is', null), eb('datasource_id', 'in', ids)]),
    )
  }
  const { datasourceId, accountId, keyIds, actions, kinds, outcomes, codes, vias, clients, blocked } = filter
  if (datasourceId !== undefined) selected = selected.where('datasource_id', '=', datasourceId)
  if (accountId !== undefined) selected = selected.where('account_id', '=', accountId)
  if (keyIds !== undefined) selected = selected.where('key_id', 'in', keyIds)
  if (actions !== undefined) selected = selected.where('action', 'in', actions)
  if (kinds !== undefined) selected = selected.where('action', kinds.others ? 'not in' : 'in', [...kinds.names])
  if (outcomes !== undefined) selected = selected.where('outcome', 'in', outcomes)
  if (codes !== undefined) selected = selected.where('code', 'in', codes)
  if (vias !== undefined) selected = selected.where('via', 'in', vias)
  if (clients !== undefined) selected = selected.where('client', 'in', clients)
  if (blocked !== undefined) selected = selected.where('blocked', 'is not', null)
  return selected
}
