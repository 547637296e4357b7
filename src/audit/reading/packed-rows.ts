// Reads the rows in a team's packs, newest first. Packs of several processes may overlap in time, so the rows of all
// open packs are merged.
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { asId, type AuditId, type TeamId } from '../../ids.ts'
import type { Store } from '../../store/open.ts'
import type { Stored } from '../chain/seal.ts'
import { minuteEnd, PACK_MS, unpacked, type Pack } from '../packs.ts'
import { headOf, msOf } from '../make-rows.ts'
import { fits, isNewer, needsEscapes, type AuditScope, type Key } from './row-filter.ts'

/**
 * Yields the rows in batches. Before it opens a pack, it yields a position in time, and all later rows are older than
 * this position. So a reader that has enough rows need not open the pack. Skips unreadable packs, which `audit verify`
 * reports. If `signal` aborts, throws its reason.
 */
export async function* packedRows(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly (Stored | Key)[]> {
  const { outcomes, codes } = scope.filter ?? {}
  if (codes !== undefined || outcomes?.includes('ANSWERED') === false) return
  const wanted = wantedOf(scope)
  const holds = textSearch(scope.filter?.text)
  let open: readonly Stored[] = []
  for await (const pack of packsOf(store, teamId, scope, before)) {
    signal?.throwIfAborted()
    const ready = open.findIndex((row) => row.at <= pack.last_at)
    const [newer, rest] = ready === -1 ? [open, []] : [open.slice(0, ready), open.slice(ready)]
    yield [...newer, { at: pack.last_at, id: BEFORE_ALL }]
    const rows = (unpacked(pack, wanted, holds) ?? []).map(({ row }) => row).filter((row) => fits(row, scope, before))
    open = [...rest, ...rows].sort((a, b) => (isNewer(a, b) ? -1 : 1))
    await setImmediate()
  }
  if (open.length > 0) yield open
}

/** Greater than all ids, so it comes first among the rows of one time. */
const BEFORE_ALL = asId<AuditId>('~')

export async function packedRow(store: Pick<Store, 'db'>, teamId: TeamId, id: AuditId): Promise<Stored | null> {
  const ms = msOf(id)
  if (ms === null) return null
  // There is no condition on the team, because SQLite would then read all packs of the team.
  const packs = await store.db
    .selectFrom('audit_packs')
    .select(['first_id', 'team_id'])
    .where('first_id', '<=', id)
    .where('first_id', '>=', asId<AuditId>(headOf(ms - PACK_MS)))
    .where('last_id', '>=', id)
    .execute()
  for (const { first_id, team_id } of packs) {
    if (team_id !== teamId) continue
    const whole = store.db.selectFrom('audit_packs').selectAll().where('first_id', '=', first_id)
    const pack = await whole.executeTakeFirst()
    const rows = pack === undefined ? null : unpacked(pack, [JSON.stringify(id)])
    const found = rows?.find(({ row }) => row.id === id)
    if (found !== undefined) return found.row
    await setImmediate()
  }
  return null
}

/** Yields the packs one by one. The pack with the newest last row comes first. */
async function* packsOf(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
): AsyncIterable<Pack> {
  const { from, to } = scope.filter ?? {}
  const { after } = scope
  let packs = store.db.selectFrom('audit_packs').selectAll().where('team_id', '=', teamId)
  if (from !== undefined) packs = packs.where('last_at', '>=', from)
  if (after !== undefined) packs = packs.where('last_at', '>=', after.at)
  const [latest] = [to, before?.at].filter((at) => at !== undefined).sort()
  if (latest !== undefined) packs = packs.where('first_at', '<=', latest)
  // Each query has only one upper bound of `last_at`. With two bounds, SQLite might use the less strict one for the
  // search.
  let rest = latest === undefined ? packs : packs.where('last_at', '<=', minuteEnd(latest))
  for (;;) {
    const last = await rest.orderBy('last_at', 'desc').orderBy('first_id', 'desc').limit(1).executeTakeFirst()
    if (last === undefined) return
    yield last
    rest = packs.where(sql<boolean>`(last_at, first_id) < (${last.last_at}, ${last.first_id})`)
  }
}

/**
 * Returns a test whether a line may contain the text, without parsing. Undefined if JSON may write the text
 * differently.
 */
function textSearch(text: string | undefined): ((line: string) => boolean) | undefined {
  if (text === undefined || needsEscapes(text)) return undefined
  return (line) => line.toLowerCase().includes(text)
}

/** Returns strings that the JSON of each matching row contains. Searching for them is faster than parsing. */
function wantedOf({ filter = {} }: AuditScope): readonly string[] {
  const { datasourceId, accountId, keyIds, actions } = filter
  return [datasourceId, accountId, only(keyIds), only(actions)]
    .filter((value) => value !== undefined)
    .map((value) => JSON.stringify(value))
}

/** Returns the only value of a filter. With several values, no single string is in all matching rows. */
function only<T>(values: readonly T[] | undefined): T | undefined {
  return values?.length === 1 ? values[0] : undefined
}
