// Reading the audit: a team's rows, newest first, page by page or all of them. Rows that no filter lets through are read
// in slices, so that a rare one among a million holds nobody up.
import { setImmediate } from 'node:timers/promises'
import type { SelectQueryBuilder } from 'kysely'
import { z } from 'zod'
import { invalidRequest } from '../errors.ts'
import { asId, type AccountId, type ApiKeyId, type AuditId, type DatasourceId, type TeamId } from '../ids.ts'
import type { Store } from '../store/open.ts'
import type { AuditTable, Tables } from '../store/tables.ts'
import { FIRST_PORTION, nextPortion } from './portion.ts'
import { charsOf } from './rows.ts'
import type { Stored } from './seal.ts'

/** A row as GET …/audit shows it; what does not apply is left out. */
export interface AuditItem {
  readonly id: string
  readonly at: string
  readonly actor: { readonly accountId: string | null; readonly keyId?: string; readonly client?: string }
  readonly via: AuditTable['via']
  readonly action: string
  readonly outcome: AuditTable['outcome']
  readonly datasourceId?: string
  readonly code?: string
  readonly blocked?: z.infer<typeof Blocked>
  readonly query?: string
  readonly printed?: string
  /** Their literals were taken out, or they are left out for that. */
  readonly redacted?: true
  readonly rowCount?: number
  readonly bytes?: number
  readonly durationMs?: number
  /** How many calls the row stands for, where more than one. */
  readonly times?: number
}

/** Only rows that fit all of it. */
export interface AuditFilter {
  readonly datasourceId?: DatasourceId
  readonly accountId?: AccountId
  readonly keyId?: ApiKeyId
  readonly action?: string
  readonly outcome?: AuditTable['outcome']
  readonly code?: string
  /** ISO 8601, UTC, to the millisecond: from then on. */
  readonly from?: string
  /** Before then. */
  readonly to?: string
}

/** Which rows of a team. */
export interface AuditScope {
  /** Only rows of these datasources and of none; absent: all, also of deleted ones. */
  readonly datasourceIds?: readonly DatasourceId[]
  readonly filter?: AuditFilter
}

export interface AuditAsk extends AuditScope {
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface AuditPage {
  readonly items: readonly AuditItem[]
  readonly nextCursor: string | null
}

/** As a refusal names it (contract.md), read back from the store. */
export const Blocked = z.object({
  kind: z.enum(['table', 'column', 'function', 'type', 'operator', 'statement', 'stage', 'cost', 'limit']),
  name: z.string(),
})

/** A place in the order of rows. */
interface Key {
  readonly at: string
  readonly id: AuditId
}

/** Rows looked at in one go: some milliseconds. */
const SLICE_ROWS = 5_000
/** Of a page. */
const PAGE_CHARS_MAX = 8 << 20

/** Throws INVALID_REQUEST for a cursor not ours. A page of very long texts has fewer rows than asked. */
export async function readPage(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  ask: AuditAsk,
  signal?: AbortSignal,
): Promise<AuditPage> {
  const before = ask.cursor === undefined ? null : readCursor(ask.cursor)
  const rows: Stored[] = []
  let chars = 0
  for await (const portion of portions(store, teamId, ask, before, signal)) {
    rows.push(...portion)
    chars += portion.reduce((sum, row) => sum + charsOf(row), 0)
    if (rows.length > ask.limit || chars > PAGE_CHARS_MAX) break
  }
  // Whether there is a next page is not known where this one was cut for its length: then there is one, maybe empty.
  const isCut = rows.length > ask.limit || chars > PAGE_CHARS_MAX
  const shown = rows.slice(0, ask.limit)
  const last = shown.at(-1)
  return { items: shown.map(itemOf), nextCursor: isCut && last !== undefined ? writeCursor(last) : null }
}

/** All of them, a portion at a time: what is written meanwhile is not among them. */
export async function* readAll(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  signal?: AbortSignal,
): AsyncIterable<readonly AuditItem[]> {
  for await (const rows of portions(store, teamId, scope, null, signal)) yield rows.map(itemOf)
}

async function* portions(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly Stored[]> {
  let [key, count] = [before, FIRST_PORTION]
  for (let more = true; more;) {
    const end: Key | null = picks(scope) ? await sliceEnd(store, teamId, scope, key) : null
    for (let full = true; full;) {
      signal?.throwIfAborted()
      const rows: readonly Stored[] = await slice(store, teamId, scope, key, end, count)
      if (rows.length > 0) yield rows
      full = rows.length === count
      key = rows.at(-1) ?? key
      count = nextPortion(rows)
      // The embedded store answers at once: others must have their turn all the same.
      await setImmediate()
    }
    key = end
    more = end !== null
  }
}

async function slice(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
  scope: AuditScope,
  before: Key | null,
  end: Key | null,
  count: number,
): Promise<readonly Stored[]> {
  let query = filtered(within(store, teamId, scope, before).selectAll(), scope)
  if (end !== null) {
    query = query.where('at', '>=', end.at).where((eb) => eb.or([eb('at', '>', end.at), eb('id', '>=', end.id)]))
  }
  return await query.orderBy('at', 'desc').orderBy('id', 'desc').limit(count).execute()
}

/** The last row of the next slice; null where it is the last slice. */
async function sliceEnd(
  store: Pick<Store, 'db'>,
  teamId: TeamId,
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

/** Whether rows of the range may be left out. */
function picks(scope: AuditScope): boolean {
  const { from: _from, to: _to, ...rest } = scope.filter ?? {}
  return scope.datasourceIds !== undefined || Object.keys(rest).length > 0
}

type Query<O> = SelectQueryBuilder<Tables, 'audit', O>

/** What the index of a team's rows can tell. */
function within(store: Pick<Store, 'db'>, teamId: TeamId, scope: AuditScope, before: Key | null) {
  const { from, to } = scope.filter ?? {}
  let query = store.db.selectFrom('audit').where('team_id', '=', teamId)
  if (from !== undefined) query = query.where('at', '>=', from)
  if (to !== undefined) query = query.where('at', '<', to)
  if (before === null) return query
  // The first condition says nothing more than the second, but an index knows what to do with it.
  return query.where('at', '<=', before.at).where((eb) => eb.or([eb('at', '<', before.at), eb('id', '<', before.id)]))
}

function filtered<O>(query: Query<O>, { datasourceIds: ids, filter = {} }: AuditScope): Query<O> {
  let picked = query
  if (ids !== undefined) {
    picked = picked.where((eb) =>
      ids.length === 0
        ? eb('datasource_id', 'is', null)
        : eb.or([eb('datasource_id', 'is', null), eb('datasource_id', 'in', ids)]),
    )
  }
  const { datasourceId, accountId, keyId, action, outcome, code } = filter
  if (datasourceId !== undefined) picked = picked.where('datasource_id', '=', datasourceId)
  if (accountId !== undefined) picked = picked.where('account_id', '=', accountId)
  if (keyId !== undefined) picked = picked.where('key_id', '=', keyId)
  if (action !== undefined) picked = picked.where('action', '=', action)
  if (outcome !== undefined) picked = picked.where('outcome', '=', outcome)
  if (code !== undefined) picked = picked.where('code', '=', code)
  return picked
}

function itemOf(row: Stored): AuditItem {
  return {
    id: row.id,
    at: row.at,
    actor: {
      accountId: row.account_id,
      ...(row.key_id !== null && { keyId: row.key_id }),
      ...(row.client !== null && { client: row.client }),
    },
    via: row.via,
    action: row.action,
    outcome: row.outcome,
    ...(row.datasource_id !== null && { datasourceId: row.datasource_id }),
    ...(row.code !== null && { code: row.code }),
    ...(row.blocked !== null && { blocked: Blocked.parse(JSON.parse(row.blocked)) }),
    ...(row.query !== null && { query: row.query }),
    ...(row.printed !== null && { printed: row.printed }),
    ...(row.redacted === 1 && { redacted: true }),
    ...(row.row_count !== null && { rowCount: row.row_count }),
    ...(row.bytes !== null && { bytes: row.bytes }),
    ...(row.duration_ms !== null && { durationMs: row.duration_ms }),
    ...(row.times > 1 && { times: row.times }),
  }
}

function writeCursor({ at, id }: Key): string {
  return Buffer.from(`${at}|${id}`).toString('base64url')
}

function readCursor(cursor: string): Key {
  const [at, id, ...more] = Buffer.from(cursor, 'base64url').toString('latin1').split('|')
  if (
    at === undefined ||
    id === undefined ||
    more.length > 0 ||
    !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(at) ||
    !/^[\w-]{1,64}$/.test(id)
  ) {
    throw invalidRequest(['cursor: not one of ours'])
  }
  return { at, id: asId<AuditId>(id) }
}
